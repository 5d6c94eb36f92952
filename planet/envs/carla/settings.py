"""Settings of the environment `Driving-v0`, and the choice of its world."""

import logging
import os
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Interval, Len, MinLen

from agents.run import errors, files, schema
from agents.run.schema import WHOLE, Flag, Name, Positive, setting
from planet.envs.carla import (
  env_config,
  episode_log,
  roads,
  scenarios,
  score,
)
from planet.envs.carla.env_config import kept
from planet.envs.carla.server import connect

_Throttle = Annotated[schema.Number, Interval(ge=-1, le=1)]
Range = Annotated[list[_Throttle], Len(2, 2)]
Names = Annotated[list[Name], MinLen(1)]
ImageSize = Annotated[Literal[32, 64, 96, 128], WHOLE]


class Settings(env_config.Shared):
  """Settings that users give.

  Episodes of several maps belong to one task each.
  """

  told: ClassVar[tuple[str, ...]] = ('action_repeat', 'initial', 'logdir')
  chosen: ClassVar[tuple[str, ...]] = ('backend',)

  max_length: Positive = kept(100, 'simulator steps per episode')
  image_size: ImageSize = kept(128, 'height and width of images in pixels')
  backend: Literal['auto', 'server', 'offline'] = setting(
    'auto', 'server, offline, or auto: a server if available'
  )
  map: Name | Names | None = kept(
    None, 'loop, grid, .xodr file, town, or list; default: from the scenario'
  )
  random_throttle: Range = setting([-1.0, 1.0], 'range in random episodes')
  allow_backend_change: Flag = setting(False, 'let a run change backends')

  @classmethod
  def check(
    cls, given: Mapping[str, Any], called: str | None = None, more: Any = ()
  ) -> dict[str, Any]:
    checked = super().check(given, called, more)
    if 'scenarios' in checked:
      # A run keeps its scenarios even if the file changes.
      checked['scenarios'] = scenarios.load(checked['scenarios'])
    return checked

  @classmethod
  def split(cls, settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    low, high = settings['random_throttle']
    if low > high:
      raise errors.UsageError(
        f'Setting random_throttle is {[low, high]}; give the lower limit first.'
      )
    maps = settings['map']
    if not isinstance(maps, list):
      maps = [maps]
    offline = [x for x in maps if x in roads.SHIPPED]
    if offline and len(maps) > 1 and settings['backend'] == 'server':
      raise errors.UsageError(
        f'Setting map is {maps}, but servers have no map {offline[0]}; give '
        'towns, such as [Town01, Town02].'
      )
    towns = {_label(x) if len(maps) > 1 else '': x for x in maps}
    if len(towns) < len(maps):
      raise errors.UsageError(f'Setting map is {maps}; give each town once.')
    found = {x: {**settings, 'map': town} for x, town in towns.items()}
    for one in found.values():
      env_config.complete(define_config({**one, 'backend': 'offline'}))
    return found

  @classmethod
  def begin(
    cls, settings: Mapping[str, Any], before: Mapping[str, Any], num_envs: int
  ) -> dict[str, Any]:
    """Choose the backend, `server` or `offline`; may connect to servers."""
    wanted, used = settings['backend'], before.get('backend')
    used = None if settings['allow_backend_change'] else used
    if wanted == 'auto':
      config = env_config.complete(define_config(settings))
      wanted = used or find_world(config)
    if used and used != wanted:
      raise errors.UsageError(
        f'This run was started with backend: {used}, but now it is {wanted}. '
        'Use another logdir, or give allow_backend_change: true to mix '
        'episodes of both worlds.'
      )
    settings = {**settings, 'backend': wanted}
    if wanted != 'server':
      return settings
    config = env_config.complete(define_config(settings))
    if settings['map'] in roads.SHIPPED:
      logging.getLogger(__name__).warning(
        'The map %s exists only offline; the server shows %s, the town of the '
        'scenario. Set map to choose another.',
        settings['map'],
        config['server_map'],
      )
    if not connect.find_binary(config):
      if num_envs > len(set(connect.list_addresses(config))):
        raise connect.too_few_servers(
          f'This run uses {num_envs} environments for training and test '
          'episodes, and each needs its own CARLA server, but there is only',
          config,
        )
    return settings

  @classmethod
  def summarize(
    cls, metrics: Sequence[Mapping[str, float | None]]
  ) -> dict[str, float | None]:
    return {**super().summarize(metrics), **score.rates(metrics)}


def define_config(
  settings: Mapping[str, Any], logdir: str | None = None
) -> dict[str, Any]:
  """Return the settings of `CarlaEnv`, without expert; it completes them.

  Args:
    settings: All settings, with a single map; `auto` counts as `offline`.
    logdir: Folder of the run, where logs go by default.
  """
  config = {x: settings[x] for x in env_config.Shared.names()}
  town, size = settings['map'], settings['image_size']
  backend = settings['backend']
  config.update(
    backend='offline' if backend == 'auto' else backend,
    map=_offline_map(town),
    server_map=None if town in roads.SHIPPED else town,
    x_res=size,
    y_res=size,
    expert=None,
  )
  if logdir:
    config['server_log'] = logdir = files.expand(logdir)
    if not (config['log_folder'] or episode_log.FOLDER_VARIABLE in os.environ):
      config['log_folder'] = os.path.join(logdir, 'carla_log')
  return config


def find_world(config: dict[str, Any]) -> str:
  """Return `server` if one answers or can be started, otherwise `offline`.

  Args:
    config: Complete settings, see `env_config.complete`.
  """
  if connect.find_binary(config):
    return 'server'
  reasons = []
  for address in connect.list_addresses(config):
    try:
      connect.connect(*address, config)
      return 'server'
    except errors.UsageError as error:
      reasons.append(str(error))
  logging.getLogger(__name__).warning(
    '%s Using the offline backend with map %s; set backend: server to require '
    'a server.',
    ' '.join(reasons),
    config['map'],
  )
  return 'offline'


def _label(town):
  """Return the end of the name of the task that drives on a map."""
  name = os.path.basename(town).removesuffix('_Opt').partition('.xodr')[0]
  return '_' + re.sub(r'[^A-Za-z0-9_.-]', '_', name)


def _offline_map(name):
  """Return the map, or None for towns to let the scenario choose one."""
  if name is None or re.fullmatch(r'(.*/)?Town\d+\w*', name):
    return None
  return name
