"""Settings of the environment: names, defaults and checks."""

import copy

from agents.tools import errors
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
  'server_map': 'Town02',
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
  'verbose': False,
}
_CHOICES = {
  'backend': ('offline', 'server'),
  'reward_function': tuple(rewards.REWARDS),
  'termination': ('fork', 'rllib', 'time'),
  'framestack': (1, 2),
  'state': ('full', 'zero'),
}


def complete(given):
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
  _check_numbers(config)
  found = scenarios.find(config['scenarios'])
  if config['weather'] is not None:
    config['weather'] = scenarios.find_weather(config['weather'])
  if config['reward_function'] in rewards.PLANNED:
    config['enable_planner'] = True
  if config['map'] is None:
    turns = {'one_curve', 'nav'} & {x for y in found for x in y.kinds}
    config['map'] = 'grid' if turns else 'loop'
  return config


def _check_numbers(config):
  for width in ('x', 'y'):
    small, large = config[f'{width}_res'], config[f'render_{width}_res']
    if not 8 <= small <= large:
      raise errors.UsageError(
        f'Images of {small} pixels cannot be made of {large} rendered ones; '
        f'give {width}_res from 8 to render_{width}_res.'
      )
  for key, low, high in (
    ('dt', 0.005, 0.5),
    ('fov', 10, 170),
    ('port', 1, 65533),
    ('tm_port', 1, 65535),
  ):
    if not low <= config[key] <= high:
      raise errors.UsageError(
        f'Setting {key!r} of the carla environment is {config[key]!r}; give '
        f'a number from {low} to {high}.'
      )
