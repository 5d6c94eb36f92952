"""Names of tasks and what they stand for.

Imports no task, so that names can be checked first.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import gymnasium

from agents.envs import adapters, declared
from agents.run import errors
from planet.scripts import added

# Where users add functions of the original's form.
PLACE = 'planet.scripts.tasks'


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
  return [x for x in names if x in TABLE and added.find(PLACE, x)]


def find_row(name: str) -> Row:
  """Return the declaration of a task.

  Args:
    name: Name of a function that was added to `PLACE`, row of the table,
      `gym_<id>` for a gymnasium or PyBullet environment that is rendered to
      images, or `gym_<module:function>` for the environment that the function
      returns.

  Raises:
    UsageError: If the task is unknown.
  """
  if added.find(PLACE, name):
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
