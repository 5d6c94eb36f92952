"""Parameters of the `carla` task, and what they mean for its environment."""

import os
import re
from typing import Any

from agents.run import errors
from agents.run import files
from planet.envs.carla import choice
from planet.envs.carla import env_config
from planet.scripts import parameters
from planet.tools.attr_dict import AttrDict

PARAMETERS = {
  'host': 'carla_host',
  'port': 'carla_port',
  'tm_port': 'carla_tm_port',
  'timeout': 'carla_timeout',
  'scenarios': 'carla_scenario',
  'reward_function': 'carla_reward',
  'reward_scale': 'carla_reward_scale',
  'termination': 'carla_termination',
  'vehicles': 'carla_vehicles',
  'pedestrians': 'carla_pedestrians',
  'weather': 'carla_weather',
  'seed': 'carla_seed',
  'dt': 'carla_dt',
  'state': 'carla_state',
  'fov': 'carla_fov',
  'allow_version_mismatch': 'carla_allow_version_mismatch',
}


def choose_image_size(params: AttrDict) -> int:
  """Size of the images of all tasks.

  The carla task has a parameter and a default of its own, which hold for
  tasks that are trained together with it, too.

  Args:
    params: Given parameters; `image_size` is filled in if it was left out.

  Returns:
    Height and width in pixels.

  Raises:
    UsageError: If two different sizes are given.
  """
  if 'carla' not in parameters.read(params, 'tasks'):
    return parameters.read(params, 'image_size')
  size = parameters.read(params, 'carla_size')
  if 'image_size' in params:
    image_size = parameters.read(params, 'image_size')
    if 'carla_size' in params and size != image_size:
      raise errors.UsageError(
        f'Parameters image_size and carla_size are {image_size} and {size}; '
        'give one of them.'
      )
    return image_size
  with params.unlocked:
    params.image_size = size
  return size


def define_settings(config: AttrDict, params: AttrDict) -> dict[str, Any]:
  """Settings of the environment from the parameters.

  Args:
    config: Configuration so far; the backend is noted in `carla_backend`.
    params: Given parameters.

  Returns:
    Dict of keys of `env_config.ENV_CONFIG`.

  Raises:
    UsageError: If a value is not allowed, or the run has begun with another
      backend.
  """
  settings = {
    key: parameters.read(params, name) for key, name in PARAMETERS.items()
  }
  given_map = parameters.read(params, 'carla_map')
  settings['map'] = _offline_map(given_map)
  complete = env_config.complete(settings)
  backend = _choose_backend(params, complete)
  settings['backend'] = config.carla_backend = backend
  if backend == 'server':
    settings['server_map'] = given_map
    settings['server_map'] = env_config.complete(settings)['server_map']
    logdir = params.get('logdir')
    if logdir:
      logdir = os.path.expanduser(logdir)
      settings['server_log'] = os.path.join(logdir, 'carla_server.log')
  return settings


def _offline_map(name):
  """Towns are replaced by a map that suits the scenario."""
  if name is None or re.fullmatch(r'(.*/)?Town\d+\w*', name):
    return None
  return name


def _choose_backend(params, complete):
  wanted = parameters.read(params, 'carla_backend')
  before = _recorded_backend(params)
  change = parameters.read(params, 'carla_allow_backend_change')
  if before and wanted == 'auto' and not change:
    return before
  backend = choice.choose(
    wanted,
    complete['host'],
    complete['port'],
    complete['timeout'],
    complete['allow_version_mismatch'],
    complete['map'],
  )
  if before and before != backend and not change:
    raise errors.UsageError(
      f'This run has begun with carla_backend {before}, now it is {backend}. '
      'Episodes of two worlds must not mix; use another logdir, or give '
      'carla_allow_backend_change: true.'
    )
  return backend


def _recorded_backend(params):
  """Backend that an existing run has begun with, or None."""
  logdir = params.get('logdir')
  if not logdir:
    return None
  try:
    path = os.path.join(os.path.expanduser(logdir), 'config.yaml')
    stored = files.read_yaml(path)
  except (OSError, ValueError):
    return None
  return ((stored or {}).get('values') or {}).get('carla_backend')
