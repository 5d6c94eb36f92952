"""Tasks: environments with their observations and time limits.

Environment constructors can be pickled and do not import TensorFlow, because
they run in separate processes.
"""

import contextlib
import functools
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import gymnasium

from agents.envs import adapters, contract, declared, opengl, probe
from agents.run import errors
from planet.envs import constructors, dummy_env, gym_pixels, interface, suite
from planet.envs.constructors import Task
from planet.scripts import added
from planet.tools.attr_dict import AttrDict

if TYPE_CHECKING:
  from planet.scripts.configs import Config
  from planet.scripts.parameters import Parameters

_EPISODE_STEPS = 1000
# Parameters that tasks depend on, without settings of environments.
_READ = (
  'action_repeat',
  'batch_shape',
  'camera_id',
  'episode_length',
  'image_size',
  'num_chunks',
  'observations',
  'state_diagnostics',
)


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
  repeats.update({'gym_<id>': 1, 'my_module:<id or function>': 1})
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
  return name_task(env)


def name_task(name: str) -> str:
  """Return the name of a task: ids of environments are `gym_<id>`."""
  is_id = re.search('-v[0-9]|:', name) and not name.startswith('gym_')
  return f'gym_{name}' if is_id else name


def list_replaced(names: Sequence[str]) -> list[str]:
  """Return those of the standard tasks that users replace by functions."""
  return [x for x in names if x in TABLE and added.find(x, globals())]


def find_row(name: str) -> Row:
  """Return the declaration of a task.

  Args:
    name: Name of a function that was added to this module, row of the table,
      `gym_<id>` for a gymnasium or PyBullet environment that is rendered to
      images, or `gym_<module:function>` for the environment that the function
      returns.

  Raises:
    UsageError: If the task is unknown.
  """
  if added.find(name, globals()):
    return Row('function', name, 1, ())
  if name in TABLE:
    return TABLE[name]
  if name.startswith('gym_'):
    return Row('gym', name.removeprefix('gym_'), 1, ('state',))
  raise errors.UsageError(
    f'Task {name!r} is unknown. {errors.suggest(name, TABLE)} Use the id '
    'of any gymnasium or PyBullet environment, such as Pendulum-v1.'
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


def define_all(
  params: 'Parameters', env: Any = None, trains: bool = True
) -> list[Task]:
  """Define the tasks of a run; settings may split one into several.

  Args:
    params: Parameters.
    env: Environment of the only task, or a function that returns it.
    trains: Whether episodes have to be long enough to learn from.

  Raises:
    UsageError: If a task is unknown, its episodes are too short, or parameters
      name heads that it does not have.
  """
  names = params.tasks
  if len(set(names)) < len(names):
    raise errors.UsageError(f'Tasks {names} repeat; give each task once.')
  tasks = [x for name in names for x in _split(define(name, params, env))]
  for task in tasks:
    # The reset adds one observation.
    length = task.max_length + 1
    named = task.declared and 'max_length' in task.declared.names()
    limit = 'env: {max_length: N}' if named else 'episode_length'
    if length < 2 and not trains:
      raise errors.UsageError(
        f'Episodes of {task.name} have no action, as each is repeated for '
        f'{task.action_repeat} steps; raise {limit}.'
      )
    if trains and length < max(2, params.required_length):
      raise errors.UsageError(
        f'Episodes of {task.name} have {length} observations, too few for '
        f'{params.num_chunks} chunks of {params.batch_shape[1]}; lower '
        f'batch_shape or action_repeat, or raise {limit}.'
      )
  if not are_alike(tasks):
    # Tasks that differ share nothing but images, see `prepare`.
    tasks = [x._replace(state_components=['reward']) for x in tasks]
  params.check_heads(tasks[0].state_components)
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


def define(name: str, params: 'Parameters', env: Any = None) -> Task:
  """Define a task.

  Args:
    name: See `find_row`.
    params: Parameters.
    env: Environment to use instead of the id, or a function that returns it.

  Raises:
    UsageError: If the task is unknown.
  """
  row = find_row(name)
  if row.domain == 'function':
    return _call(name, params)
  return _define_row(name, row, params, env)


def _define_row(name, row, params, env=None):
  repeat = params.action_repeat or row.action_repeat
  length = (params.episode_length or _EPISODE_STEPS) // repeat
  kwargs: dict[str, Any] = {'image_size': params.image_size}
  make: Callable = dummy_env.make
  args: list[Any] = [repeat, length]
  settings = None
  if row.domain != 'dummy':
    kwargs['pixels'] = params.observations != 'vector'
  if row.domain == 'gym':
    settings = declared.find(row.task) if env is None else None
    if settings and 'max_length' in settings.names():
      if params.episode_length:
        raise errors.UsageError(
          f'Parameter episode_length is {params.episode_length}, but {name} '
          'declares its own; set env: {max_length: N}.'
        )
      length = params.env['max_length'] // repeat
    # Steps are repeated once, by the environment if it does that.
    inside = settings and 'action_repeat' in settings.told
    env = adapters.portable(row.task) if env is None else env
    make, args = gym_pixels.make, [env, 1 if inside else repeat, length]
    kwargs['min_length'] = params.required_length
    kwargs['observation_is_image'] = not row.components
    needed = params.state_diagnostics or params.observations == 'both'
    kwargs['state'] = needed and bool(row.components)
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


def _call(name, params):
  """Return the task of a function of the original's form."""
  with contextlib.suppress(errors.UsageError):
    # It may need no OpenGL, but the control suite reads the variable on import.
    opengl.select_backend()
  given = {x: y for x, y in params if x in params.model_fields_set}
  if params.action_repeat:
    # Perhaps from the preset, as in the original's `debug`.
    given['action_repeat'] = params.action_repeat
  function: Any = added.find(name, globals())
  task = function(AttrDict(dict(params)), AttrDict(given))
  if not isinstance(task, Task):
    # Forks define the named tuple themselves.
    names = Task._fields[:4]
    if not all(hasattr(task, x) for x in names):
      raise errors.UsageError(
        f'Function {name} of planet.scripts.tasks returns {task!r}; return a '
        f'Task with {", ".join(names)}.'
      )
    task = Task(*(getattr(task, x) for x in names))
  return task._replace(
    env_ctor=functools.partial(constructors.create, task.env_ctor),
    action_repeat=params.action_repeat or task.action_repeat,
  )


def _call_row(name, config, params):
  """Return the task of a row of the table, in the original's form."""
  from planet.scripts import parameters

  given = {**config, **params}
  given = {x: given[x] for x in _READ if given.get(x) is not None}
  values = parameters.build('default', {**given, 'tasks': [name]})
  return _define_row(name, TABLE[name], values)


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
  config: 'Config', logdir: str, evaluates: bool = False
) -> tuple['Config', dict[str, tuple[int, ...]]]:
  """Complete the tasks of a configuration by looking at their environments.

  Creates each environment once, in a separate process, or in this one if its
  constructor can run only here. Lets environments choose settings, and unifies
  the observations and actions of several tasks.

  Args:
    config: Configuration.
    logdir: Folder of the run.
    evaluates: Whether the run only plays, one environment after the other.

  Returns:
    Tuple of the configuration with complete tasks, and a dict from the names of
    recorded data to the shape of one step.

  Raises:
    UsageError: If settings do not suit the run, something is missing, or an
      environment does not fit.
  """
  tasks, chosen = _choose_settings(config, logdir, evaluates)
  reports = [_inspect(x, config.isolate_envs) for x in tasks]
  images = {x.name: y['shapes'].get('image') for x, y in zip(tasks, reports)}
  if len(set(images.values())) > 1:
    raise errors.UsageError(
      f'Images of the tasks have different shapes, {images}, but share a '
      'model; train the tasks apart.'
    )
  shapes = reports[-1]['shapes']
  if not are_alike(tasks):
    spaces = [x['action_space'] for x in reports]
    size = max(x.shape[0] for x in spaces)
    shapes = {'image': shapes['image'], 'action': (size,), 'reward': ()}
    tasks = [
      x._replace(
        env_ctor=functools.partial(constructors.unified_env, x.env_ctor, spaces)
      )
      for x in tasks
    ]
  predicted = {*tasks[-1].state_components} & {*config.recorded_keys}
  if missing := sorted(predicted - {'reward', *shapes}):
    raise errors.UsageError(
      f'The environment of {tasks[-1].name} observes {sorted(shapes)}, but not '
      f'{missing}; add it there, or remove it from state_components.'
    )
  named = {x.name: x for x in tasks}
  own = {x.name: y['interface'] for x, y in zip(tasks, reports)}
  collects = {}
  for kind in ('random_collects', 'train_collects', 'test_collects'):
    entries = {}
    for name, collect in config[kind].items():
      task = named[collect.task.name]
      if kind == 'random_collects':
        task = task.tell(initial=True)
      entries[name] = AttrDict(collect, task=task)
    collects[kind] = AttrDict(entries)
  source = AttrDict(config.source, interfaces=own)
  if chosen:
    source = AttrDict(source, chosen=chosen)
  told = [_tell_length(x, y['time_limit']) for x, y in zip(tasks, reports)]
  report = (*config.report, *(x for x in told if x))
  config = config.replace(tasks=tasks, source=source, report=report, **collects)
  return config, shapes


def _tell_length(task, limit):
  """Return a sentence if episodes are shorter than a collection, or None."""
  steps = task.max_length * task.action_repeat
  if not limit or limit >= steps:
    return None
  return (
    f'Episodes of {task.name} have at most {limit} environment steps. A '
    f'collection plays {steps} (episode_length), so it records several.'
  )


def _inspect(task, isolate_envs):
  """Return shapes, action space and renderer of the environment of a task."""
  if adapters.is_environment(task.env_ctor.args[0]):
    return {**_look(task.env_ctor()), 'renderer': None, 'messages': []}
  reason = _find_why_not_pickled(task.env_ctor)
  if reason and isolate_envs == 'process':
    raise errors.UsageError(
      f'The constructor of {task.name} cannot be sent to a process, '
      f'{reason}; create what it needs inside of it, or use isolate_envs: '
      'thread or none.'
    )
  if reason:
    report = {**probe.inspect_here(task.env_ctor, _look), 'messages': []}
    # Known once the environment has rendered.
    software = opengl.is_loaded_in_software()
    report['renderer'] = 'llvmpipe' if software else None
  else:
    report = probe.inspect(task.env_ctor, _look)
  for message in report['messages']:
    print(message)
  renderer = report['renderer'] if isolate_envs != 'process' else None
  if renderer and opengl.is_software(renderer):
    raise errors.UsageError(
      f'Task {task.name} renders with {renderer}, which crashes in one '
      'process with TensorFlow; use isolate_envs: process.'
    )
  return report


def _find_why_not_pickled(env_ctor):
  """Return why a constructor cannot be sent to a process, None if it can."""
  import cloudpickle

  try:
    cloudpickle.dumps(env_ctor)
  except Exception as error:
    # Whatever the user's objects raise.
    return f'{type(error).__name__}: {error}'
  return None


def _choose_settings(config, logdir, evaluates):
  """Let environments that declare settings choose those of the run.

  Returns:
    Tuple of the tasks, and of the settings that the run keeps.
  """
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
  return tasks, chosen


def _look(env):
  return {
    'shapes': probe.measure(env),
    'action_space': env.action_space,
    'time_limit': contract.find_time_limit(env),
    'interface': interface.find(env).to_plain(),
  }


# For functions that users add. A row of `module:id` has settings, which belong
# to a run.
globals().update(
  {
    x: functools.partial(_call_row, x)
    for x, y in TABLE.items()
    if ':' not in y.task
  }
)
# For `added.find`: other values of these names are from users.
_OURS = dict(globals())
