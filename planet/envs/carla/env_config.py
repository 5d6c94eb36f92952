"""Settings of the environment: names, defaults and checks."""

import copy
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge, Interval, MinLen

from agents.run import errors, schema
from agents.run.schema import (
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
from planet.envs.carla.server import connect

Pixels = Annotated[Whole, Ge(8)]


class EnvConfig(schema.Settings):
  """Declaration of the settings; PlaNet has parameters for some of them."""

  called: ClassVar[str] = 'Setting {!r} of the carla environment'

  # World.
  backend: Literal['offline', 'server'] = setting('offline')
  host: Name = setting('127.0.0.1', 'address of the server')
  # A server uses the two ports after its own, too.
  port: Annotated[Whole, Interval(ge=1, le=65533)] = setting(
    2000, 'port of the server, first port of ours'
  )
  servers: Annotated[list[Name], MinLen(1)] | None = setting(
    None, 'host:port of several servers'
  )
  tm_port: Annotated[Whole, Interval(ge=1, le=65535)] = setting(
    8000, 'first port of traffic managers'
  )
  timeout: Annotated[Number, Ge(0.1)] = setting(
    10.0, 'seconds to wait for the server'
  )
  turn_timeout: Annotated[Number, Ge(0)] = setting(
    600.0, 'seconds to wait for a server that others use'
  )
  map_timeout: Annotated[Number, Ge(0.1)] = setting(
    60.0, 'seconds to wait for a map'
  )
  # Together they are as long as a server may need to start again.
  retries: Positive = setting(30, 'attempts to begin an episode')
  retry_pause: Annotated[Number, Ge(0)] = setting(
    2.0, 'seconds between attempts'
  )
  server_binary: Path | None = setting(None, 'program to start')
  server_flags: list[Name] = setting([], 'further flags of the program')
  adapter: Count | None = setting(None, 'number of the graphics card')
  server_log: Path | None = setting(None, 'file for what it prints')
  allow_version_mismatch: Flag = setting(False, 'use other servers')
  ego_filter: Name = setting('vehicle.lincoln.mkz_2020', 'car to drive')
  server_map: Name | None = setting(None, 'town; by scenario if null')
  load_map: Flag = setting(True, 'make servers show the town')
  map: Path | None = setting(None, 'offline world; by scenario if null')
  dt: Annotated[Number, Interval(ge=0.005, le=0.5)] = setting(
    0.1, 'seconds per step'
  )
  seed: Count | None = setting(None, 'where --seed is missing')
  # Episodes; None leaves the choice to the scenario.
  scenarios: Any = setting('TOWN2_ONE_CURVE_0', 'traffic and routes')
  vehicles: Count | None = setting(None, 'other vehicles')
  pedestrians: Count | None = setting(None, 'pedestrians')
  weather: Name | Whole | None = setting(None, 'name or number of a weather')
  enable_planner: Flag = setting(False, 'routes; some rewards need them')
  reward_function: Literal[tuple(rewards.REWARDS)] = setting(  # type: ignore
    'custom3', 'name of the reward'
  )
  reward_scale: Annotated[Number, Ge(0)] = setting(1.0, 'factor of rewards')
  termination: Literal['fork', 'rllib', 'time'] = setting(
    'fork', 'fork, rllib or time'
  )
  early_terminate_on_collision: Flag = setting(True, 'for rllib')
  expert: Literal['autopilot'] | None = setting(
    None, 'who drives the first episodes, no one if null'
  )
  # Observations and actions.
  render_x_res: Pixels = setting(400, 'width that the camera renders')
  render_y_res: Pixels = setting(175, 'height that the camera renders')
  x_res: Pixels = setting(128, 'width of the images')
  y_res: Pixels = setting(128, 'height of the images')
  fov: Annotated[Number, Interval(ge=10, le=170)] = setting(
    120.0, 'degrees of the camera'
  )
  camera: tuple[Number, Number, Number] = setting(
    (2.0, 0.0, 1.4), 'metres before, beside and above the car'
  )
  offline_direct_render: Flag = setting(True, 'render small images at once')
  framestack: Literal[1, 2] = setting(1, 'images per observation')
  state: Literal['full', 'zero'] = setting('full', 'what state holds')
  discrete_actions: Flag = setting(False, 'numbers of actions')
  squash_action_logits: Flag = setting(False, 'tanh of actions')
  use_sensor: Literal[tuple(sensors.SENSORS)] = setting(  # type: ignore
    'use_rgb', 'colours, depth, classes, or two cameras'
  )
  stereo_baseline: Annotated[Number, Interval(ge=0.01, le=2)] = setting(
    0.5, 'metres between two cameras'
  )
  # Reports, in $CARLA_OUT or ~/carla_out if there is no folder.
  verbose: Flag = setting(False, 'print each step')
  log_images: Flag = setting(False, 'write each image to a file')
  convert_images_to_video: Flag = setting(False, 'make videos of them')
  log_measurements: Flag = setting(False, 'write JSON for each episode')
  log_folder: Path | None = setting(None, 'folder of these; carla_log')


ENV_CONFIG = EnvConfig.defaults()


def complete(given: Mapping[str, Any]) -> dict[str, Any]:
  """Fill in defaults and check what was given.

  Args:
    given: Dict of some of the keys of `ENV_CONFIG`.

  Returns:
    Dict of all keys.

  Raises:
    UsageError: If a key is unknown, or a value is not allowed.
  """
  checked = EnvConfig.check(copy.deepcopy(dict(given)))
  config = {**EnvConfig.defaults(), **checked}
  for width in ('x', 'y'):
    small, large = config[f'{width}_res'], config[f'render_{width}_res']
    if small > large:
      raise errors.UsageError(
        f'Images of {small} pixels cannot be made of {large} rendered ones; '
        f'give {width}_res from 8 to render_{width}_res.'
      )
  if config['expert'] and (
    config['discrete_actions'] or config['squash_action_logits']
  ):
    raise errors.UsageError(
      'Setting expert records pedals and steering; leave away '
      'discrete_actions and squash_action_logits.'
    )
  connect.list_addresses(config)
  found = config['scenarios'] = scenarios_lib.find(config['scenarios'])
  if config['weather'] is not None:
    config['weather'] = scenarios_lib.find_weather(config['weather'])
  if config['reward_function'] in rewards.PLANNED:
    config['enable_planner'] = True
  if config['map'] is None:
    turns = {'one_curve', 'nav'} & {x for y in found for x in y.kinds}
    config['map'] = 'grid' if turns else 'loop'
  if config['server_map'] is None and config['backend'] == 'server':
    config['server_map'] = scenarios_lib.find_town(found)
  return config
