"""Settings of the environment: names, defaults and checks."""

import copy
import numbers
from typing import Any

from agents.run import errors
from planet.envs.carla import rewards
from planet.envs.carla import scenarios

ENV_CONFIG = {
  # World.
  'backend': 'offline',
  'host': '127.0.0.1',
  'port': 2000,
  'tm_port': 8000,
  'timeout': 10.0,
  'map_timeout': 60.0,
  'retries': 5,
  'retry_pause': 2.0,
  'server_binary': None,
  'server_log': None,
  'allow_version_mismatch': False,
  'ego_filter': 'vehicle.lincoln.mkz_2020',
  # Town that a server loads, by scenario if None.
  'server_map': None,
  # Name or file for the offline world, by scenario if None.
  'map': None,
  'dt': 0.1,
  'seed': None,
  # Episodes; None leaves the choice to the scenario.
  'scenarios': 'TOWN2_ONE_CURVE_0',
  'vehicles': None,
  'pedestrians': None,
  'weather': None,
  'enable_planner': False,
  'reward_function': 'custom3',
  'reward_scale': 1.0,
  'termination': 'fork',
  'early_terminate_on_collision': True,
  # Observations and actions.
  'render_x_res': 400,
  'render_y_res': 175,
  'x_res': 128,
  'y_res': 128,
  'fov': 120.0,
  'camera': (2.0, 0.0, 1.4),
  'offline_direct_render': True,
  'framestack': 1,
  'state': 'full',
  'discrete_actions': False,
  'squash_action_logits': False,
  'use_sensor': 'use_rgb',
  # Reports. Images go to $CARLA_OUT or ~/carla_out if there is no folder.
  'verbose': False,
  'log_images': False,
  'convert_images_to_video': False,
  'image_folder': None,
}
# Smallest and largest numbers, the latter None if there is no limit. A server
# uses the two ports after its own, too.
LIMITS = {
  'port': (1, 65533),
  'tm_port': (1, 65535),
  'timeout': (0.1, None),
  'dt': (0.005, 0.5),
  'fov': (10, 170),
  'vehicles': (0, None),
  'pedestrians': (0, None),
  'reward_scale': (0, None),
}
_WHOLE = ('port', 'tm_port', 'vehicles', 'pedestrians')
_CHOICES = {
  'backend': ('offline', 'server'),
  'reward_function': tuple(rewards.REWARDS),
  'termination': ('fork', 'rllib', 'time'),
  'framestack': (1, 2),
  'state': ('full', 'zero'),
  'use_sensor': ('use_rgb',),
}


def complete(given: dict[str, Any]) -> dict[str, Any]:
  """Fill in defaults and check what was given.

  Args:
    given: Dict of some of the keys of `ENV_CONFIG`.

  Returns:
    Dict of all keys.

  Raises:
    UsageError: If a key is unknown, or a value is not allowed.
  """
  for key in given:
    if key not in ENV_CONFIG:
      raise errors.UsageError(
        f'Setting {key!r} of the carla environment is unknown. '
        f'{errors.suggest(key, ENV_CONFIG)}'
      )
  config = {**copy.deepcopy(ENV_CONFIG), **copy.deepcopy(dict(given))}
  for key, options in _CHOICES.items():
    if config[key] not in options:
      raise errors.UsageError(
        f'Setting {key!r} of the carla environment is {config[key]!r}; give '
        f'one of {", ".join(map(str, options))}.'
      )
  _check_flags(config)
  _check_numbers(config)
  found = config['scenarios'] = scenarios.find(config['scenarios'])
  if config['weather'] is not None:
    config['weather'] = scenarios.find_weather(config['weather'])
  if config['reward_function'] in rewards.PLANNED:
    config['enable_planner'] = True
  if config['map'] is None:
    turns = {'one_curve', 'nav'} & {x for y in found for x in y.kinds}
    config['map'] = 'grid' if turns else 'loop'
  if config['server_map'] is None and config['backend'] == 'server':
    config['server_map'] = scenarios.find_town(found)
  return config


def _check_flags(config):
  for key, default in ENV_CONFIG.items():
    if isinstance(default, bool) and not isinstance(config[key], bool):
      raise errors.UsageError(
        f'Setting {key!r} of the carla environment is {config[key]!r}; give '
        'true or false.'
      )


def _check_numbers(config):
  for width in ('x', 'y'):
    small, large = config[f'{width}_res'], config[f'render_{width}_res']
    if not 8 <= small <= large:
      raise errors.UsageError(
        f'Images of {small} pixels cannot be made of {large} rendered ones; '
        f'give {width}_res from 8 to render_{width}_res.'
      )
  for key, (low, high) in LIMITS.items():
    value = config[key]
    if value is None and ENV_CONFIG[key] is None:
      continue
    if not _is_between(value, low, high, key in _WHOLE):
      kind = 'a whole number' if key in _WHOLE else 'a number'
      limits = f'of at least {low}' if high is None else f'from {low} to {high}'
      raise errors.UsageError(
        f'Setting {key!r} of the carla environment is {value!r}; give {kind} '
        f'{limits}.'
      )


def _is_between(value, low, high, whole):
  if not isinstance(value, numbers.Real) or isinstance(value, bool):
    return False
  if whole and not float(value).is_integer():
    return False
  return low <= value and (high is None or value <= high)
