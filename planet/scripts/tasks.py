"""Tasks: environments with their observations and time limits.

Environment constructors can be pickled and do not import TensorFlow, because
they run in separate processes.
"""

import contextlib
import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

from agents.envs import declared, opengl
from agents.run import errors
from planet.envs import constructors, dummy_env, gym_pixels, suite
from planet.envs.constructors import Task
from planet.scripts import added, parameters, renamed, table
from planet.scripts.parameters import Parameters
from planet.tools.attr_dict import AttrDict

_EPISODE_STEPS = 1000
# Parameters that all tasks depend on.
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
# Settings of environments that declare some, and what they were called before.
_SETTINGS = 'env', *renamed.NAMES


def define_all(
  params: Parameters, env: Any = None, trains: bool = True
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
    # Tasks that differ share nothing but images, see `environments`.
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


def define(name: str, params: Parameters, env: Any = None) -> Task:
  """Define a task.

  Args:
    name: See `table.find_row`.
    params: Parameters.
    env: Environment to use instead of the id, or a function that returns it.

  Raises:
    UsageError: If the task is unknown.
  """
  row = table.find_row(name)
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
    env = row.task if env is None else env
    make, args = gym_pixels.make, [env, 1 if inside else repeat, length]
    kwargs['min_length'] = params.required_length
    kwargs['observation_is_image'] = not row.components
    needed = params.state_diagnostics or params.observations == 'both'
    kwargs['state'] = needed and bool(row.components)
    # Settings may belong to another task, which declares them.
    if settings or not table.find_settings(params.tasks):
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
    # Even without need: the control suite reads the variable on import.
    opengl.select_backend()
  given = {x: y for x, y in params if x in params.model_fields_set}
  if params.action_repeat:
    # Perhaps from the preset, as in the original's `debug`.
    given['action_repeat'] = params.action_repeat
  function: Any = added.find(__name__, name)
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
  given = {**config, **params}
  read = (*_READ, *_SETTINGS) if table.find_settings([name]) else _READ
  given = {x: given[x] for x in read if given.get(x) is not None}
  values = parameters.build('default', {**given, 'tasks': [name]})
  return _define_row(name, table.TABLE[name], values)


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


# For functions that users add.
globals().update({x: functools.partial(_call_row, x) for x in table.TABLE})
# For `added.find`: other values of these names are from users.
_OURS = dict(globals())
