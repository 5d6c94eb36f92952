"""Settings of the driving environment: names, defaults and checks."""

import functools
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import pydantic
from annotated_types import Ge, Interval, MinLen

from agents.envs import declared
from agents.run import errors, schema
from agents.run.schema import (
  Amount,
  Count,
  Flag,
  Name,
  Number,
  Path,
  Positive,
  Whole,
  setting,
)
from planet.envs.carla import rewards, sensors
from planet.envs.carla import scenarios as scenarios_lib

# Declares a setting that a run keeps.
kept = functools.partial(
  setting, fixed='it changes what the recorded episodes mean'
)

Pixels = Annotated[Whole, Ge(8)]
Seconds = Annotated[Number, Ge(0.1)]
_Address = Annotated[
  str,
  pydantic.StringConstraints(pattern=r'^.+:\d{1,5}$'),
  schema.described('host:port'),
]


class Shared(declared.EnvSettings):
  """Settings of `CarlaEnv` that users of `Driving-v0` give as well."""

  called: ClassVar[str] = 'Setting {!r} of the driving environment'

  # World.
  host: Name = setting('127.0.0.1', 'host of the CARLA server')
  # A server also uses the next two ports.
  port: Annotated[Whole, Interval(ge=1, le=65533)] = setting(
    2000, 'port of the server; first port to try when starting one'
  )
  servers: Annotated[list[_Address], MinLen(1)] | None = setting(
    None, 'servers as a list of host:port'
  )
  tm_port: Annotated[Whole, Interval(ge=1, le=65535)] = setting(
    8000, 'first port to try for the traffic manager'
  )
  timeout: Seconds = setting(10.0, 'timeout of server calls in seconds')
  start_timeout: Seconds = setting(120.0, 'seconds for a server to start')
  image_timeout: Seconds = setting(2.0, 'seconds for an image; first: 10 times')
  map_timeout: Seconds = setting(60.0, 'timeout for loading a map in seconds')
  # Together at least as long as a server needs to restart.
  retries: Positive = setting(30, 'attempts to start an episode')
  retry_pause: Amount = setting(2.0, 'seconds between attempts')
  server_flags: list[Name] = setting([], 'flags of the server program')
  adapter: Count | None = setting(None, 'GPU index of the server')
  quality: Literal['Epic', 'Low'] = kept('Epic', 'rendering quality')
  ego_filter: Name = kept('vehicle.lincoln.mkz_2020', 'blueprint of the car')
  load_map: Flag = setting(True, 'load the town if the server has another')
  dt: Annotated[Number, Interval(ge=0.005, le=0.5)] = kept(
    0.1, 'simulated seconds per step'
  )
  seed: Count | None = setting(None, 'environment seed if there is no --seed')
  # Episodes; with None, the scenario decides.
  scenarios: Any = kept('TOWN2_ONE_CURVE_0', 'traffic, weather and routes')
  vehicles: Count | None = kept(None, 'default: from the scenario')
  pedestrians: Count | None = kept(None, 'default: from the scenario')
  weather: scenarios_lib.Weather | None = kept(None, 'default: scenario')
  reward_function: Literal[tuple(rewards.REWARDS)] = kept(  # type: ignore
    'custom3', 'reward function'
  )
  reward_weights: dict[Literal[tuple(rewards.TERMS)], Number] | None = kept(  # type: ignore
    None, 'own weights of terms, in place of those of reward_function'
  )
  reward_scale: Amount = kept(1.0, 'factor applied to rewards')
  termination: Literal['fork', 'rllib', 'time'] = kept(
    'fork', 'rule that ends episodes: fork, rllib or time'
  )
  early_terminate_on_collision: Flag = kept(True, 'rllib: end at collisions')
  expert: Literal['autopilot'] | None = setting(None, 'driver of seed episodes')
  # Observations and actions.
  render_x_res: Pixels = kept(400, 'rendered width in pixels')
  render_y_res: Pixels = kept(175, 'rendered height in pixels')
  fov: Annotated[Number, Interval(ge=10, le=170)] = kept(
    120.0, 'horizontal field of view in degrees'
  )
  camera: tuple[Number, Number, Number] = kept(
    (2.0, 0.0, 1.4), 'camera position: meters forward, right and up'
  )
  state: Literal['auto', 'full', 'route', 'zero'] = kept(
    'auto', 'auto: route if rewards need one, else full; zero as in the fork'
  )
  use_sensor: Literal[tuple(sensors.SENSORS)] = kept(  # type: ignore
    'use_rgb', 'camera: RGB, depth, classes, stereo RGB, or from above'
  )
  stereo_baseline: Annotated[Number, Interval(ge=0.01, le=2)] = kept(
    0.5, 'distance of the stereo cameras in meters'
  )
  # Logs; without a folder, in $CARLA_OUT or ~/carla_out.
  log_images: Flag = setting(False, 'write every image to a file')
  convert_images_to_video: Flag = setting(False, 'write a video per episode')
  log_measurements: Flag = setting(False, 'write measurements as JSON lines')
  log_folder: Path | None = setting(None, 'default: LOGDIR/carla_log')


class EnvConfig(Shared):
  """Settings of `CarlaEnv`."""

  backend: Literal['offline', 'server'] = setting('offline')
  map: Path | None = setting(None, 'offline map; default: from the scenario')
  server_map: Name | None = setting(None, 'town; default: from the scenario')
  server_log: Path | None = setting(None, 'folder for the output of servers')
  enable_planner: Flag = setting(False, 'plan routes; some rewards enable this')
  x_res: Pixels = setting(128, 'image width in pixels')
  y_res: Pixels = setting(128, 'image height in pixels')
  offline_direct_render: Flag = setting(True, 'offline: do not resize images')


ENV_CONFIG = EnvConfig.defaults()


def complete(given: Mapping[str, Any]) -> dict[str, Any]:
  """Check settings and fill in defaults.

  Args:
    given: Dict with any keys of `ENV_CONFIG`.

  Returns:
    Dict with all keys.

  Raises:
    UsageError: If a key is unknown or a value is not allowed.
  """
  config = dict(EnvConfig.read(given))
  for width in ('x', 'y'):
    small, large = config[f'{width}_res'], config[f'render_{width}_res']
    if small > large:
      raise errors.UsageError(
        f'Setting {width}_res is {small}, but render_{width}_res is only '
        f'{large}; give {width}_res from 8 to render_{width}_res.'
      )
  instead: dict[str, Any] = {
    f'num_{kind}': config[kind]
    for kind in ('vehicles', 'pedestrians')
    if config[kind] is not None
  }
  if config['weather'] is not None:
    instead['weather_distribution'] = (config['weather'],)
  found = scenarios_lib.find(config['scenarios'])
  found = tuple(x.model_copy(update=instead) for x in found)
  config['scenarios'] = found
  reward = config['reward_function'], config['reward_weights']
  if rewards.is_planned(*reward) or config['state'] == 'route':
    config['enable_planner'] = True
  if config['state'] == 'auto':
    config['state'] = 'route' if config['enable_planner'] else 'full'
  if config['map'] is None:
    turns = {'one_curve', 'nav'} & {x for y in found for x in y.kinds}
    config['map'] = 'grid' if turns else 'loop'
  if config['server_map'] is None and config['backend'] == 'server':
    config['server_map'] = scenarios_lib.find_town(found)
  return config
