"""Tasks: environments with their observations and time limits.

Constructors of environments are picklable and import no TensorFlow, because
they run in processes of their own.
"""

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from agents.envs import adapters, opengl, probe
from agents.run import errors
from planet.envs import constructors, dummy_env, gym_pixels, suite
from planet.envs.constructors import Task
from planet.scripts import driving

_EPISODE_STEPS = 1000


class Row(NamedTuple):
  """Declaration of a task.

  Attributes:
    domain: Domain of the control suite, `gym`, or `dummy`.
    task: Task of the domain, or the id of an environment of gymnasium or
      PyBullet.
    action_repeat: Simulator steps per action.
    components: Names of the observations besides images; none if the
      environment of gymnasium or PyBullet observes images itself.
    name: Name in summaries where it differs from that of the row.
  """

  domain: str
  task: str
  action_repeat: int
  components: tuple[str, ...]
  name: str | None = None


TABLE = {
  'dummy': Row('dummy', 'dummy', 1, ()),
  'cartpole_balance': Row('cartpole', 'balance', 8, ('position', 'velocity')),
  'cartpole_swingup': Row('cartpole', 'swingup', 8, ('position', 'velocity')),
  'finger_spin': Row('finger', 'spin', 2, ('position', 'velocity', 'touch')),
  'cheetah_run': Row('cheetah', 'run', 4, ('position', 'velocity')),
  'cup_catch': Row('ball_in_cup', 'catch', 4, ('position', 'velocity')),
  'walker_walk': Row(
    'walker', 'walk', 2, ('height', 'orientations', 'velocity')
  ),
  'reacher_easy': Row(
    'reacher', 'easy', 4, ('position', 'velocity', 'to_target')
  ),
  'gym_cheetah': Row('gym', 'HalfCheetah-v3', 1, ('state',)),
  'gym_racecar': Row('gym', 'CarRacing-v0', 1, (), 'gym_racing'),
}


def describe() -> str:
  """Return a table of the tasks for `--help`."""
  repeats = {name: row.action_repeat for name, row in TABLE.items()}
  repeats.update({'carla': 1, 'gym_<id>': 1})
  lines = [f'  {name:28} {repeat}' for name, repeat in repeats.items()]
  return '\n'.join(['tasks (name, action repeat in simulator steps):', *lines])


def name_env(env: Any) -> str:
  """Return the name of the task for whatever the user calls an environment."""
  name = adapters.name_of(env)
  other = not isinstance(env, str) or re.search('-v[0-9]|:', env)
  return f'gym_{name}' if other and not name.startswith('gym_') else name


def define_all(params: Any, env: Any = None) -> list[Task]:
  """Define the tasks of a run, of which `carla` may be several.

  Args:
    params: `Parameters`.
    env: Environment, or function that returns one, of the only task.

  Raises:
    UsageError: If there is no such task, or its episodes are too short.
  """
  names = params.tasks
  if len(set(names)) < len(names):
    raise errors.UsageError(f'Tasks {names} repeat; name each of them once.')
  tasks: list[Task] = []
  for name in names:
    if name == 'carla':
      tasks += driving.define_tasks(params)
    else:
      tasks.append(define(name, params, env))
  for task in tasks:
    # An episode also has the observation of its reset.
    length = task.max_length + 1
    if length < max(2, params.required_length):
      raise errors.UsageError(
        f'Episodes of {task.name} have {length} observations, too few for '
        f'{params.num_chunks} chunks of {params.batch_shape[1]}; lower '
        'batch_shape or action_repeat.'
      )
  if not are_alike(tasks):
    # Those of `prepare` show nothing but images.
    tasks = [x._replace(state_components=['reward']) for x in tasks]
  return tasks


def are_alike(tasks: Sequence[Task]) -> bool:
  """Whether tasks have the same observations and actions anyway."""
  return len(tasks) == 1 or all(x.is_driving for x in tasks)


def define(name: str, params: Any, env: Any = None) -> Task:
  """Define a task other than `carla`.

  Besides `dummy` and the rows of the table, `gym_<id>` is the environment of
  this id in gymnasium or PyBullet, rendered to images; `gym_<module:function>`
  is what the function returns.

  Args:
    name: Name of the task.
    params: `Parameters`.
    env: Environment, or function that returns one, instead of that id.

  Raises:
    UsageError: If there is no such task.
  """
  row = TABLE.get(name)
  if not row and name.startswith('gym_'):
    row = Row('gym', name.removeprefix('gym_'), 1, ('state',))
  if not row:
    raise errors.UsageError(
      f'Task {name!r} is unknown. {errors.suggest(name, ["carla", *TABLE])} '
      'Any environment of gymnasium or PyBullet is available as gym_<id>, such '
      'as gym_Pendulum-v1.'
    )
  repeat = params.action_repeat or row.action_repeat
  length = _EPISODE_STEPS // repeat
  kwargs: dict[str, Any] = {'image_size': params.image_size}
  make: Callable = dummy_env.make
  args = [repeat, length]
  if row.domain != 'dummy':
    kwargs['pixels'] = params.observations == 'image'
  if row.domain == 'gym':
    make, args = gym_pixels.make, [row.task if env is None else env, *args]
    kwargs['min_length'] = params.required_length
    kwargs['observation_is_image'] = not row.components
  elif row.domain != 'dummy':
    make, args = suite.make, [row.domain, row.task, *args]
    kwargs['camera_id'] = params.camera_id
  # The name becomes part of scopes in the graph.
  scope = re.sub(r'[^A-Za-z0-9_.-]', '_', row.name or name)
  make = functools.partial(make, *args, **kwargs)
  return Task(scope, make, length, ['reward', *row.components], repeat)


def prepare(config: Any, logdir: str) -> dict[str, tuple[int, ...]]:
  """Ask environments and servers what a configuration cannot know.

  Each environment is built once, in a process of its own. The `carla` task
  gets the world that it drives in, and several tasks get common observations
  and actions.

  Args:
    config: Locked configuration, whose tasks are completed in place.
    logdir: Folder of the run.

  Returns:
    Dict from the names of what is recorded to the shape of one step.

  Raises:
    UsageError: If the run has begun with another world, there are too few
      servers for a batch, or an environment does not fit.
  """
  tasks, spaces = {}, []
  for task in config.tasks:
    if task.is_driving:
      settings = task.env_ctor.keywords['settings']
      settings = driving.choose_world(settings, config, logdir)
      env_ctor = functools.partial(task.env_ctor, settings=settings)
      task = task._replace(env_ctor=env_ctor)
    if adapters.is_environment(task.env_ctor.args[0]):
      report = {**_look(task.env_ctor()), 'renderer': None, 'messages': []}
    else:
      report = probe.inspect(task.env_ctor, _look)
    for message in report['messages']:
      print(message)
    renderer = report['renderer'] if config.isolate_envs != 'process' else None
    if renderer and opengl.is_software(renderer):
      raise errors.UsageError(
        f'Task {task.name} renders with {renderer}, which crashes in the '
        'process of TensorFlow; use isolate_envs: process.'
      )
    spaces.append(report['action_space'])
    tasks[task.name] = task
  shapes = report['shapes']
  if not are_alike(config.tasks):
    size = max(x.shape[0] for x in spaces)
    shapes = {'image': shapes['image'], 'action': (size,), 'reward': ()}
    for name, task in tasks.items():
      make = functools.partial(constructors.unified_env, task.env_ctor, spaces)
      tasks[name] = task._replace(env_ctor=make)
  with config.unlocked:
    config.tasks = list(tasks.values())
    for kind in ('random', 'train', 'test'):
      for collect in config[f'{kind}_collects'].values():
        collect.task = tasks[collect.task.name]
  return shapes


def _look(env):
  return {'shapes': probe.measure(env), 'action_space': env.action_space}
