"""The `carla` task: from parameters to settings of its environment."""

import functools
import logging
import os
import re
from typing import Any

from agents.run import errors
from planet.envs.carla import env_config, episode_log, sensors, task_env
from planet.envs.carla.server import connect
from planet.envs.constructors import Task
from planet.scripts import parameters


def define_tasks(params: Any) -> list[Task]:
  """Define one driving task per town.

  Args:
    params: `Parameters`.
  """
  repeat = params.action_repeat or 1
  length = params.max_length // repeat
  make = functools.partial(
    task_env.make,
    repeat,
    length,
    params.image_size,
    min_length=params.required_length,
    pixels=params.observations == 'image',
  )
  return [
    Task(
      name,
      functools.partial(make, settings=settings),
      length,
      ['reward', 'state'],
      repeat,
      is_driving=True,
    )
    for name, settings in define_settings(params).items()
  ]


def define_settings(params: Any) -> dict[str, dict[str, Any]]:
  """Translate parameters to the settings of one environment per town.

  Args:
    params: `Parameters`. There are several towns if `carla_map` lists them.

  Returns:
    Dict from task name to complete settings, see `env_config.complete`, except
    that `backend` may be `auto`, see `choose_world`.

  Raises:
    UsageError: If a value is not allowed.
  """
  _check_alone(params)
  settings = {key: getattr(params, x) for key, x in parameters.DRIVING.items()}
  settings.update(x_res=params.image_size, y_res=params.image_size)
  maps = params.carla_map
  if not isinstance(maps, list):
    maps = [maps]
  towns = {_label(x) if len(maps) > 1 else 'carla': x for x in maps}
  if len(towns) < len(maps):
    raise errors.UsageError(
      f'Parameter carla_map is {maps}; give each town once.'
    )
  return {
    name: env_config.complete(
      {**settings, 'map': _offline_map(town), 'server_map': town}
    )
    for name, town in towns.items()
  }


def choose_world(
  settings: dict[str, Any], config: Any, logdir: str, evaluates: bool = False
) -> dict[str, Any]:
  """Choose the backend of a run, `server` or `offline`, and its log folder.

  A resumed run keeps its backend. May connect to servers.

  Args:
    settings: Settings of one town from `define_settings`.
    config: Configuration of the run; stores the choice in `carla_backend`, so
      that all towns use the same backend.
    logdir: Folder of the run, where logs go by default.
    evaluates: Whether to need only one server, as environments take turns.

  Returns:
    Complete settings.

  Raises:
    UsageError: If the run was started with another backend, the town to load
      is unclear, or there are too few servers.
  """
  wanted, before = config.carla_backend, config.source.get('carla_backend')
  fixed = None if config.carla_allow_backend_change else before
  if wanted == 'auto':
    wanted = fixed or find_world(settings)
  if fixed and fixed != wanted:
    raise errors.UsageError(
      f'This run was started with carla_backend: {fixed}, but now it is '
      f'{wanted}. Use another logdir, or give carla_allow_backend_change: true '
      'to mix episodes of both worlds.'
    )
  logdir = os.path.expanduser(logdir)
  settings = {**settings, 'backend': wanted, 'server_log': logdir}
  if not (settings['log_folder'] or episode_log.FOLDER_VARIABLE in os.environ):
    settings['log_folder'] = os.path.join(logdir, 'carla_log')
  own = evaluates or connect.find_binary(settings)
  if wanted == 'server' and not own:
    _check_servers(settings, config)
  with config.unlocked:
    config.carla_backend = config.source.carla_backend = wanted
  return env_config.complete(settings)


def find_world(settings: dict[str, Any]) -> str:
  """Return `server` if one answers or can be started, otherwise `offline`.

  Args:
    settings: Complete settings, see `env_config.complete`.
  """
  if connect.find_binary(settings):
    return 'server'
  reasons = []
  for address in connect.list_addresses(settings):
    try:
      connect.connect(*address, settings)
      return 'server'
    except errors.UsageError as error:
      reasons.append(str(error))
  logging.getLogger(__name__).warning(
    '%s Using the offline backend with map %s; set carla_backend: server to '
    'require a server.',
    ' '.join(reasons),
    settings['map'],
  )
  return 'offline'


def _check_servers(settings, config):
  """Raise an error if there are more environments than servers."""
  collects = [*config.train_collects.values(), *config.test_collects.values()]
  num_envs = sum(x.num_agents for x in collects if x.task.is_driving)
  if num_envs > len(set(connect.list_addresses(settings))):
    raise connect.too_few_servers(
      f'This run uses {num_envs} environments for training and test episodes, '
      'and each needs its own CARLA server, but there is only',
      settings,
    )


def _check_alone(params):
  """Raise an error if parameters do not suit the other tasks of the model."""
  if params.tasks == ['carla']:
    return
  if params.carla_expert:
    raise errors.UsageError(
      'Parameter carla_expert needs tasks: [carla], but tasks are '
      f'{params.tasks}; omit it.'
    )
  name = params.carla_sensor
  channels = sensors.SENSORS[name].channels
  if channels != 3:
    raise errors.UsageError(
      f'Images of carla_sensor: {name} have {channels} channels, but images of '
      'other tasks have 3; train the carla task alone, or give use_rgb or '
      'use_semantic.'
    )


def _label(town):
  """Return the name of the task that drives on a map."""
  name = os.path.basename(town).removesuffix('_Opt').partition('.xodr')[0]
  return 'carla_' + re.sub(r'[^A-Za-z0-9_.-]', '_', name)


def _offline_map(name):
  """Return the map, or None for towns to let the scenario choose one."""
  if name is None or re.fullmatch(r'(.*/)?Town\d+\w*', name):
    return None
  return name
