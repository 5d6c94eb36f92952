"""Tasks: environments with their observations and time limits.

Environment constructors can be pickled and do not import TensorFlow, because
they run in separate processes.
"""

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import gymnasium

from agents.envs import adapters, declared, opengl, probe
from agents.run import errors
from planet.envs import constructors, dummy_env, gym_pixels, suite
from planet.envs.constructors import Task

_EPISODE_STEPS = 1000


class Row(NamedTuple):
  """Declaration of a task.

  Attributes:
    domain: Control suite domain, `gym`, or `dummy`.
    task: Task of the domain, or id of a gymnasium or PyBullet environment.
    action_repeat: Simulator steps per action.
    components: Names of the observations in addition to images; none if the
      gymnasium or PyBullet environment observes images.
    name: Name in summaries, if it differs from the name of the row.
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
  'carla': Row('gym', 'planet.envs.carla:Driving-v0', 1, ('state',)),
}


def describe() -> str:
  """Return a table of the tasks for `--help`."""
  repeats = {name: row.action_repeat for name, row in TABLE.items()}
  repeats.update({'gym_<id>': 1})
  lines = [f'  {name:28} {repeat}' for name, repeat in repeats.items()]
  return '\n'.join(['tasks (name, action repeat in simulator steps):', *lines])


def describe_settings() -> str:
  """Return tables of the settings that environments of tasks declare."""
  lines = []
  for name in TABLE:
    if settings := find_settings([name]):
      lines += ['', f'settings of tasks: [{name}], as env: {{NAME: VALUE}}:']
      lines += settings.table()
  return '\n'.join(lines)


def name_env(env: Any) -> str:
  """Return the task name of an environment, its id, or its constructor."""
  if not isinstance(env, str) or env in gymnasium.registry:
    return f'gym_{adapters.name_of(env)}'
  other = re.search('-v[0-9]|:', env) and not env.startswith('gym_')
  return f'gym_{env}' if other else env


def find_row(name: str) -> Row:
  """Return the declaration of a task.

  Args:
    name: Row of the table, `gym_<id>` for a gymnasium or PyBullet environment
      that is rendered to images, or `gym_<module:function>` for the environment
      that the function returns.

  Raises:
    UsageError: If the task is unknown.
  """
  if name in TABLE:
    return TABLE[name]
  if name.startswith('gym_'):
    return Row('gym', name.removeprefix('gym_'), 1, ('state',))
  raise errors.UsageError(
    f'Task {name!r} is unknown. {errors.suggest(name, TABLE)} Use gym_<id> for '
    'any gymnasium or PyBullet environment, such as gym_Pendulum-v1.'
  )


def find_settings(names: Sequence[str]) -> type[declared.EnvSettings] | None:
  """Return the settings that the environments of tasks declare, or None.

  Raises:
    UsageError: If a task is unknown, or environments declare different ones.
  """
  rows = [find_row(x) for x in names]
  found = [declared.find(x.task) for x in rows if x.domain == 'gym']
  first, *others = dict.fromkeys(x for x in found if x) or [None]
  if others:
    raise errors.UsageError(
      f'Several environments of the tasks {list(names)} declare settings; '
      'train them apart.'
    )
  return first


def define_all(params: Any, env: Any = None) -> list[Task]:
  """Define the tasks of a run; settings may split one into several.

  Args:
    params: `Parameters`.
    env: Environment of the only task, or a function that returns it.

  Raises:
    UsageError: If a task is unknown or its episodes are too short.
  """
  names = params.tasks
  if len(set(names)) < len(names):
    raise errors.UsageError(f'Tasks {names} repeat; give each task once.')
  tasks = [x for name in names for x in _split(define(name, params, env))]
  for task in tasks:
    # The reset adds one observation.
    length = task.max_length + 1
    if length < max(2, params.required_length):
      raise errors.UsageError(
        f'Episodes of {task.name} have {length} observations, too few for '
        f'{params.num_chunks} chunks of {params.batch_shape[1]}; lower '
        'batch_shape or action_repeat.'
      )
  if not are_alike(tasks):
    # Tasks that differ share nothing but images, see `prepare`.
    tasks = [x._replace(state_components=['reward']) for x in tasks]
  return tasks


def are_alike(tasks: Sequence[Task]) -> bool:
  """Return whether all tasks have the same observations and actions."""
  return len(tasks) == 1 or all(x.declared for x in tasks)


def _split(task):
  """Return the tasks that the settings of one describe."""
  if not task.declared:
    return [task]
  found = task.declared.split(task.settings)
  return [
    task._replace(name=task.name + end).with_settings(**settings)
    for end, settings in found.items()
  ]


def define(name: str, params: Any, env: Any = None) -> Task:
  """Define a task.

  Args:
    name: See `find_row`.
    params: `Parameters`.
    env: Environment to use instead of the id, or a function that returns it.

  Raises:
    UsageError: If the task is unknown.
  """
  row = find_row(name)
  repeat = params.action_repeat or row.action_repeat
  length = _EPISODE_STEPS // repeat
  kwargs: dict[str, Any] = {'image_size': params.image_size}
  make: Callable = dummy_env.make
  args = [repeat, length]
  settings = None
  if row.domain != 'dummy':
    kwargs['pixels'] = params.observations == 'image'
  if row.domain == 'gym':
    settings = declared.find(row.task) if env is None else None
    if settings:
      length = params.env.get('max_length', _EPISODE_STEPS) // repeat
    # Steps are repeated once, by the environment if it does that.
    inside = settings and 'action_repeat' in settings.told
    env = adapters.portable(row.task) if env is None else env
    make, args = gym_pixels.make, [env, 1 if inside else repeat, length]
    kwargs['min_length'] = params.required_length
    kwargs['observation_is_image'] = not row.components
    # Those of another task may be declared.
    if settings or not find_settings(params.tasks):
      kwargs['settings'] = _check_settings(params.env, env)
  elif row.domain != 'dummy':
    make, args = suite.make, [row.domain, row.task, *args]
    kwargs['camera_id'] = params.camera_id
  # TensorFlow limits the characters of a scope.
  scope = re.sub(r'[^A-Za-z0-9_.-]', '_', row.name or name)
  make = functools.partial(make, *args, **kwargs)
  components = ['reward', *row.components]
  given = params.env if settings else None
  task = Task(scope, make, length, components, repeat, given, settings)
  return task.tell(action_repeat=repeat)


def _check_settings(given, env):
  """Return the settings of an environment; only those with ids take any."""
  if given and not isinstance(env, str):
    raise errors.UsageError(
      f'Parameter env is {given}, but only environments that are given by an '
      'id take settings; omit it.'
    )
  return given


def end_early(task: Task) -> Task:
  """Let episodes end as early as the environment."""
  make: Any = task.env_ctor
  if 'min_length' not in make.keywords:
    return task
  return task._replace(env_ctor=functools.partial(make, min_length=0))


def prepare(
  config: Any, logdir: str, evaluates: bool = False
) -> dict[str, tuple[int, ...]]:
  """Complete the tasks of a configuration by looking at their environments.

  Creates each environment once, in a separate process. Lets environments choose
  settings, and unifies the observations and actions of several tasks.

  Args:
    config: Locked configuration, whose tasks are completed in place.
    logdir: Folder of the run.
    evaluates: Whether the run only plays, one environment after the other.

  Returns:
    Dict from the names of recorded data to the shape of one step.

  Raises:
    UsageError: If settings do not suit the run, something is missing, or an
      environment does not fit.
  """
  tasks, spaces, images = {}, [], {}
  _choose_settings(config, logdir, evaluates)
  for task in config.tasks:
    if adapters.is_environment(task.env_ctor.args[0]):
      report = {**_look(task.env_ctor()), 'renderer': None, 'messages': []}
    else:
      report = probe.inspect(task.env_ctor, _look)
    for message in report['messages']:
      print(message)
    renderer = report['renderer'] if config.isolate_envs != 'process' else None
    if renderer and opengl.is_software(renderer):
      raise errors.UsageError(
        f'Task {task.name} renders with {renderer}, which crashes in one '
        'process with TensorFlow; use isolate_envs: process.'
      )
    spaces.append(report['action_space'])
    tasks[task.name] = task
    shapes = report['shapes']
    images[task.name] = shapes.get('image')
  if len(set(images.values())) > 1:
    raise errors.UsageError(
      f'Images of the tasks have different shapes, {images}, but share a '
      'model; train the tasks apart.'
    )
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
        task = tasks[collect.task.name]
        collect.task = task.tell(initial=True) if kind == 'random' else task
  return shapes


def _choose_settings(config, logdir, evaluates):
  """Let environments that declare settings choose those of the run."""
  collects = [*config.train_collects.values(), *config.test_collects.values()]
  num_envs = sum(x.num_agents for x in collects if x.task.declared)
  tasks: list[Task] = []
  chosen: dict[str, Any] = {}
  for task in config.tasks:
    if task.declared:
      before = config.source.get('chosen', {})
      settings = task.declared.begin(
        # All tasks share the choice of the first.
        {**task.settings, **chosen},
        before,
        1 if evaluates else num_envs,
      )
      task = task.with_settings(**settings).tell(logdir=logdir)
      chosen = {x: settings[x] for x in task.declared.chosen}
    tasks.append(task)
  with config.unlocked:
    config.tasks = tasks
    if chosen:
      config.source.chosen = chosen


def _look(env):
  return {'shapes': probe.measure(env), 'action_space': env.action_space}
