"""Tasks: environments with their observations and time limits.

A task is a row of `TABLE` in `planet/scripts/choices.py`. Constructors of
environments are picklable and import no TensorFlow, because they run in
processes of their own.
"""

import functools
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from agents.run import errors
from agents.tools.attr_dict import AttrDict
from planet.control import wrappers
from planet.envs import constructors, dummy_env, gym_pixels, suite
from planet.envs.carla import task_env
from planet.scripts import driving, parameters
from planet.scripts.choices import TABLE, Row

_EPISODE_STEPS = 1000


class Task(NamedTuple):
  """Environment to train in.

  Attributes:
    name: Name in summaries and of collections.
    env_ctor: Function without arguments that returns the environment.
    max_length: Number of decisions of the longest episode.
    state_components: Names of what a model can predict besides images.
    action_repeat: Steps of the environment that a decision lasts.
    is_driving: Whether it is driving, of which there may be several towns.
  """

  name: str
  env_ctor: Callable
  max_length: int
  state_components: list[str]
  action_repeat: int = 1
  is_driving: bool = False


def define_all(
  names: Sequence[str], config: AttrDict, params: AttrDict
) -> list[Task]:
  """Define tasks by their names, of which `carla` may be several.

  Args:
    names: Names of tasks.
    config: See `define`.
    params: See `define`.

  Raises:
    UsageError: If there is no such task.
  """
  return [
    task
    for name in names
    for task in (
      _define_carla(config, params)
      if name == 'carla'
      else [define(name, config, params)]
    )
  ]


def are_alike(tasks: Sequence[Task]) -> bool:
  """Tell whether tasks have the same observations and actions anyway."""
  return len(tasks) == 1 or all(x.is_driving for x in tasks)


def define(name: str, config: AttrDict, params: AttrDict) -> Task:
  """Define a task other than `carla`.

  Besides `dummy` and the rows of the table, `gym_<id>` is the environment of
  this id in gymnasium or PyBullet, rendered to images.

  Args:
    name: Name of the task.
    config: Configuration so far, with `batch_shape`, `num_chunks`,
      `image_size` and `observation`.
    params: Given parameters.

  Raises:
    UsageError: If there is no such task.
  """
  if name == 'dummy':
    return _define_dummy(config, params)
  row = TABLE.get(name)
  match = re.fullmatch(r'gym_(.*-v\d+)', name)
  if not row and match:
    row = Row('gym', match.group(1), 1, ('state',))
  if not row:
    known = ['dummy', 'carla', *TABLE]
    raise errors.UsageError(
      f'Task {name!r} is unknown. {errors.suggest(name, known)} Any '
      'environment of gymnasium or PyBullet is available as gym_<id>, such '
      'as gym_Pendulum-v1.'
    )
  action_repeat = parameters.read(params, 'action_repeat') or row.action_repeat
  max_length = _EPISODE_STEPS // action_repeat
  define_env = _define_gym_env if row.domain == 'gym' else _define_suite_env
  return Task(
    # The name becomes part of scopes in the graph.
    re.sub(r'[^A-Za-z0-9_.-]', '_', row.name or name),
    define_env(row, action_repeat, max_length, config, params),
    max_length,
    ['reward', *row.components],
    action_repeat,
  )


def prepare(config: AttrDict, logdir: str) -> None:
  """Ask environments and servers what a configuration cannot know.

  The `carla` task gets the world that it drives in, and several tasks get
  common observations and actions.

  Args:
    config: Locked configuration, whose tasks are completed in place.
    logdir: Folder of the run.

  Raises:
    UsageError: If the run has begun with another world, or there are too few
      servers for a batch.
  """
  tasks = {x.name: x for x in config.tasks}
  with config.unlocked:
    for name, task in tasks.items():
      if task.is_driving:
        tasks[name] = _choose_world(task, config, logdir)
    if not are_alike(config.tasks):
      tasks = _unify(tasks)
    config.tasks = list(tasks.values())
    for kind in ('random', 'train', 'test'):
      for collect in config[f'{kind}_collects'].values():
        collect.task = tasks[collect.task.name]


def required_length(config: AttrDict) -> int:
  """Return the number of observations that an episode needs for training."""
  return config.batch_shape[1] * config.num_chunks


def _define_suite_env(row, action_repeat, max_length, config, params):
  return functools.partial(
    suite.make,
    row.domain,
    row.task,
    action_repeat,
    max_length,
    image_size=config.image_size,
    camera_id=parameters.read(params, 'camera_id'),
    pixels=config.observation == 'image',
  )


def _define_gym_env(row, action_repeat, max_length, config, unused_params):
  return functools.partial(
    gym_pixels.make,
    row.task,
    action_repeat,
    max_length,
    min_length=required_length(config),
    image_size=config.image_size,
    observation_is_image=not row.components,
    pixels=config.observation == 'image',
  )


def _define_dummy(config, params):
  """Define random images and rewards, without a simulator."""
  action_repeat = parameters.read(params, 'action_repeat') or 1
  max_length = _EPISODE_STEPS // action_repeat
  env_ctor = functools.partial(
    dummy_env.make, action_repeat, max_length, image_size=config.image_size
  )
  return Task('dummy', env_ctor, max_length, ['reward'], action_repeat)


def _define_carla(config, params):
  """Define driving, on CARLA servers or in the world that needs none.

  There is a task for each town.
  """
  action_repeat = parameters.read(params, 'action_repeat') or 1
  max_length = parameters.read(params, 'max_length') // action_repeat
  if not max_length:
    raise errors.UsageError(
      f'Parameter action_repeat is {action_repeat}, more than the steps of an '
      'episode; lower it or raise max_length.'
    )
  config.carla_backend = parameters.read(params, 'carla_backend')
  config.carla_allow_backend_change = parameters.read(
    params, 'carla_allow_backend_change'
  )
  return [
    Task(
      name,
      functools.partial(
        task_env.make,
        action_repeat,
        max_length,
        'carla',
        config.image_size,
        min_length=required_length(config),
        pixels=config.observation == 'image',
        settings=settings,
      ),
      max_length,
      ['reward', 'state'],
      action_repeat,
      is_driving=True,
    )
    for name, settings in driving.define_settings(params).items()
  ]


def _choose_world(task, config, logdir):
  settings = task.env_ctor.keywords['settings']
  settings = driving.choose_backend(
    # All towns are of the world that is chosen for the first one.
    {**settings, 'backend': config.carla_backend},
    logdir,
    config.carla_allow_backend_change,
  )
  config.carla_backend = settings['backend']
  totals = []
  for collects in (config.train_collects, config.test_collects):
    sizes = [x.num_agents for x in collects.values() if x.task.is_driving]
    driving.check_servers(settings, max(sizes, default=1))
    totals.append(sum(sizes))
  config.collect_in_turn = max(totals) > driving.count_servers(settings)
  env_ctor = functools.partial(task.env_ctor, settings=settings)
  return task._replace(env_ctor=env_ctor)


def _unify(tasks):
  """Give several tasks common observations and actions."""
  spaces = []
  for task in tasks.values():
    env = wrappers.Async(task.env_ctor, 'process')
    try:
      spaces.append(env.action_space)
    finally:
      env.close()
  return {
    name: task._replace(
      env_ctor=functools.partial(
        constructors.unified_env, task.env_ctor, spaces
      )
    )
    for name, task in tasks.items()
  }
