"""Names that parameters of driving had before `env`.

They stay accepted in commands and in stored runs.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from agents.envs import declared
from agents.run import errors
from planet.scripts import table

TASK = 'carla'
# Current names, inside of `env`.
NAMES = {
  'max_length': 'max_length',
  'carla_size': 'image_size',
  'carla_scenario': 'scenarios',
  'carla_reward': 'reward_function',
  'carla_sensor': 'use_sensor',
  **{
    f'carla_{name}': name
    for name in """
      adapter allow_backend_change backend convert_images_to_video dt expert fov
      host image_timeout load_map log_folder log_images log_measurements map
      map_timeout pedestrians port quality random_throttle render_x_res
      render_y_res retries retry_pause reward_scale seed server_flags servers
      start_timeout state stereo_baseline termination timeout tm_port vehicles
      weather
    """.split()
  },
}


def check(params: Mapping[str, Any]) -> dict[str, Any]:
  """Return those of the parameters that have other names today, checked.

  Raises:
    UsageError: If a value is not allowed.
  """
  old = {x: y for x, y in params.items() if x in NAMES}
  if old:
    settings = declared.find(table.TABLE[TASK].task)
    assert settings, TASK
    for name, value in old.items():
      today = NAMES[name]
      checked = settings.check({today: value}, f'Parameter {name!r}')
      old[name] = checked[today]
  return old


def translate(
  params: Mapping[str, Any], tasks: Sequence[str]
) -> dict[str, Any]:
  """Return parameters with the current names.

  Leaves those of driving out if the tasks have nothing to do with it.

  Args:
    params: Checked parameters.
    tasks: Names of the tasks.

  Raises:
    UsageError: If a parameter is given under both names.
  """
  old = {NAMES[x]: y for x, y in params.items() if x in NAMES}
  result = {x: y for x, y in params.items() if x not in NAMES}
  if not old or TASK not in tasks:
    return result
  settings = result.get('env', {})
  for name in params:
    if NAMES.get(name) in settings:
      raise errors.UsageError(
        f'Parameters {name} and env: {{{NAMES[name]}}} are the same; give one '
        'of them.'
      )
  return {**result, 'env': {**old, **settings}}


def explain(params: Mapping[str, Any], tasks: Sequence[str]) -> list[str]:
  """Return sentences for the user about given parameters with old names."""
  names = ', '.join(x for x in params if x in NAMES)
  if not names:
    return []
  if TASK not in tasks:
    return [f'Parameters {names} have no effect with tasks {list(tasks)}.']
  today = ', '.join(NAMES[x] for x in params if x in NAMES)
  return [
    f'Parameters {names} are settings of the environment now, '
    f'env: {{{today}}}; the old names stay accepted.'
  ]


def translate_run(
  stored: Mapping[str, Any], tasks: Sequence[str]
) -> dict[str, Any]:
  """Return the content of a `config.yaml` with the current names.

  Args:
    stored: Content of the file, with `params` and `values`.
    tasks: Tasks of the run.
  """
  found = dict(stored)
  if 'carla_backend' in found:
    found['chosen'] = {'backend': found.pop('carla_backend')}
  for part in ('params', 'values'):
    found[part] = translate(found[part], tasks)
  if TASK in tasks:
    # Earlier versions did not observe routes.
    settings = {'state': 'full', **found['values'].get('env', {})}
    found['values'] = {**found['values'], 'env': settings}
  return found
