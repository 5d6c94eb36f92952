"""Parameters of the `carla` task, and what they mean for its environment."""

import dataclasses
import math
import os
import re
from typing import Any

from agents.run import errors
from planet.envs.carla import choice, env_config, episode_log, sensors
from planet.envs.carla import scenarios as scenarios_lib
from planet.envs.carla.server import connect
from planet.scripts import parameters


def define_settings(params: Any) -> dict[str, dict[str, Any]]:
  """Translate parameters to the settings of one environment per town.

  Args:
    params: `Parameters`. There are several towns if `carla_map` lists
      them, or without it if the scenarios are in several.

  Returns:
    Dict from the names of tasks to dicts of keys of `env_config.ENV_CONFIG`.
    The entry `backend` may be `auto`; see `choose_backend`.

  Raises:
    UsageError: If a value is not allowed.
  """
  common = {
    key: getattr(params, name) for key, name in parameters.DRIVING.items()
  }
  towns = _find_towns(params)
  settings = {name: {**common, **town} for name, town in towns.items()}
  for values in settings.values():
    env_config.complete(values)
    _check_channels(values, params)
  backend = params.carla_backend
  return {name: {**x, 'backend': backend} for name, x in settings.items()}


def choose_expert(params: Any) -> str | None:
  """Return who drives in the first episodes, None for random actions.

  Args:
    params: `Parameters`.

  Raises:
    UsageError: If other tasks than driving are trained.
  """
  expert = params.carla_expert
  tasks = params.tasks
  if expert and tasks != ['carla']:
    raise errors.UsageError(
      f'Parameter carla_expert is for the carla task alone, not for {tasks}; '
      'omit it.'
    )
  return expert


def choose_backend(
  settings: dict[str, Any],
  logdir: str,
  before: str | None = None,
  may_change: bool = False,
) -> dict[str, Any]:
  """Decide in which world to drive, for which servers may be asked.

  A run keeps the world that it has begun with. What is logged goes to its
  folder unless another one is given.

  Args:
    settings: Settings of the environment.
    logdir: Folder of the run.
    before: Backend that the run has begun with, None for a new run.
    may_change: Whether a run may go on in another world.

  Returns:
    The settings, in which `backend` is `server` or `offline`.

  Raises:
    UsageError: If the run has begun with another backend.
  """
  wanted = backend = settings['backend']
  if before and wanted == 'auto' and not may_change:
    backend = before
  elif wanted == 'auto':
    settings = {**settings, 'backend': 'offline'}
    backend = choice.choose(env_config.complete(settings))
  if before and before != backend and not may_change:
    raise errors.UsageError(
      f'This run has begun with carla_backend {before}, now it is {backend}. '
      'Episodes of two worlds must not mix; use another logdir, or give '
      'carla_allow_backend_change: true.'
    )
  settings = {**settings, 'backend': backend}
  logdir = os.path.expanduser(logdir)
  if not (settings['log_folder'] or episode_log.FOLDER_VARIABLE in os.environ):
    settings['log_folder'] = os.path.join(logdir, 'carla_log')
  if backend == 'server':
    settings['server_map'] = env_config.complete(settings)['server_map']
    settings['server_log'] = os.path.join(logdir, 'carla_server.log')
  return settings


def count_servers(settings: dict[str, Any]) -> float:
  """Return how many environments can play at once, which may be infinite.

  Args:
    settings: Settings of the environment, with the chosen backend.
  """
  config = env_config.complete(settings)
  if config['backend'] != 'server' or connect.find_binary(config):
    return math.inf
  return len(set(connect.list_addresses(config)))


def check_servers(settings: dict[str, Any], num_envs: int) -> None:
  """Refuse more environments at once than there are servers.

  Args:
    settings: Settings of the environment, with the chosen backend.
    num_envs: Number of environments that play at the same time.

  Raises:
    UsageError: If they had to share servers.
  """
  if num_envs > count_servers(settings):
    addresses = connect.list_addresses(env_config.complete(settings))
    raise errors.UsageError(
      f'Episodes are played in {num_envs} environments at once (collect_batch, '
      'or batch_size of a collection), and each needs a CARLA server, but '
      'there is only '
      f'{connect.join_addresses(addresses)}. Give more by carla_servers: '
      f'[host:port, ...], set {connect.SERVER_VARIABLE} so that each starts '
      'its own, or play fewer at once.'
    )


def _find_towns(params):
  """Dict from the names of tasks to the settings in which they differ."""
  given = params.carla_map
  scenarios = params.carla_scenario
  found = scenarios_lib.find(scenarios)
  cities = list(dict.fromkeys(x.city for x in found))
  if isinstance(given, str) or (given is None and len(cities) == 1):
    return {'carla': {'map': _offline_map(given), 'server_map': given}}
  labels = [_label(x) for x in given or cities]
  if len(set(labels)) < len(labels):
    raise errors.UsageError(
      f'Parameter carla_map is {given}; give each town once.'
    )
  shares = scenarios_lib.share_out(found, labels)
  return {
    f'carla_{label}' if len(labels) > 1 else 'carla': {
      # Towns of scenarios are on servers.
      'map': _offline_map(town) if given else None,
      'server_map': town,
      'scenarios': [dataclasses.asdict(x) for x in share],
    }
    for label, town, share in zip(labels, given or cities, shares)
  }


def _label(town):
  """Return the name of a map as part of the name of a task."""
  name = os.path.basename(town).removesuffix('_Opt').partition('.xodr')[0]
  return re.sub(r'[^A-Za-z0-9_.-]', '_', name)


def _check_channels(settings, params):
  """Refuse images that other tasks of the same model do not have."""
  name = settings['use_sensor']
  channels = sensors.SENSORS[name].channels
  if channels != 3 and len(params.tasks) > 1:
    raise errors.UsageError(
      f'Parameter carla_sensor is {name}, whose images have {channels} '
      'channels, but those of other tasks have 3; train the carla task alone, '
      'or give use_rgb or use_semantic.'
    )


def _offline_map(name):
  """Return None for towns, so that a map is chosen that suits the scenario."""
  if name is None or re.fullmatch(r'(.*/)?Town\d+\w*', name):
    return None
  return name
