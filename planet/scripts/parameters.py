"""All parameters that `--params` may set, with defaults and limits."""

import functools
from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal

import pydantic
from annotated_types import Interval, Len, MinLen

from agents.run import schema
from agents.run.schema import (
  WHOLE,
  Amount,
  Count,
  Flag,
  Fraction,
  Name,
  Positive,
  Whole,
)
from agents.tools.attr_dict import AttrDict
from planet.envs.carla.env_config import EnvConfig

# What a run keeps has a reason; everything else may change when the run is
# continued, because neither the variables nor the recorded episodes depend on
# it.
_free = schema.setting
_variables = functools.partial(
  schema.setting, fixed='it changes which variables there are or their shapes'
)
_layers = functools.partial(
  schema.setting, fixed='the variables were trained for other layers'
)
_MEANING = 'it changes what the recorded episodes mean'
_episodes = functools.partial(schema.setting, fixed=_MEANING)

Names = Annotated[list[Name], MinLen(1)]
Collects = list[dict[str, Any]]
ImageSize = Annotated[Literal[32, 64, 96, 128], WHOLE]
Direction = Annotated[schema.Number, Interval(ge=-1, le=1)]


class _Own(schema.Settings):
  """Parameters that are declared here."""

  called: ClassVar[str] = 'Parameter {!r}'

  # Data.
  batch_shape: Annotated[list[Positive], Len(2, 2)] = _free(
    [50, 50], 'sequences per batch and their length'
  )
  num_chunks: Positive = _free(1, 'chunks cut from an episode at a time')
  image_bits: Annotated[Whole, Interval(ge=1, le=8)] = _free(
    5, 'bits per color to keep'
  )
  image_size: ImageSize = _episodes(64, 'height and width')
  observations: Literal['image', 'vector'] = _episodes(
    'image', 'vector learns from the state instead of pixels'
  )
  loader: Literal['cache', 'recent', 'scan', 'reload', 'dummy'] = _free(
    'recent', 'how episodes are drawn for training'
  )
  loader_every: Positive = _free(1000, 'episodes between folder scans')
  loader_max_bytes: Positive | None = _free(
    None, 'of episodes in memory per loader; a quarter of all'
  )
  loader_max_episodes: Count = _free(
    500, 'newest episodes that scan draws from, 0 for all'
  )
  loader_window: Positive | None = _free(None, 'unused')
  # Model.
  model: Literal['rssm', 'ssm', 'drnn'] = _variables('rssm', 'latent dynamics')
  model_size: Positive = _variables(200, 'deterministic and hidden units')
  state_size: Positive = _variables(30, 'stochastic units')
  model_layers: Positive = _variables(1, 'hidden layers within the model')
  future_rnn: Flag = _layers(True, 'predict the prior from the belief')
  mean_only: Flag = _free(False, 'no random latent states')
  min_stddev: Amount = _free(0.1, 'smallest latent deviation')
  drnn_encoder_to_decoder: Flag = _variables(False, 'link within drnn')
  drnn_sample_to_sample: Flag = _variables(True, 'link within drnn')
  drnn_sample_to_encoder: Flag = _variables(True, 'link within drnn')
  drnn_decoder_to_encoder: Flag = _variables(False, 'link within drnn')
  drnn_decoder_to_sample: Flag = _variables(True, 'link within drnn')
  drnn_action_to_decoder: Flag = _variables(False, 'link within drnn')
  network: Name | None = _variables(
    None, 'encoder and decoder; by image size if unset'
  )
  activation: Literal['relu', 'elu', 'tanh', 'swish', 'softplus', 'none'] = (
    _layers('relu', 'function of the hidden layers')
  )
  num_layers: Count = _variables(3, 'hidden layers of vector heads')
  num_units: Positive = _variables(300, 'units of vector heads')
  gradient_heads: Names | None = _variables(
    None, 'heads that train the model; observation and reward'
  )
  bound_action: Literal['none', 'clip', 'tanh'] = _free('clip', 'unused')
  # Tasks.
  tasks: Names = _episodes(['cheetah_run'], 'one or more tasks')
  action_repeat: Positive | None = _episodes(
    None, 'steps per decision; by task'
  )
  camera_id: Whole = _episodes(0, 'camera of the control suite')
  isolate_envs: Literal['none', 'thread', 'process'] | None = _free(
    None, 'where environments live; process if they render'
  )
  state_diagnostics: Flag = _variables(False, 'predict the state as well')
  # Losses.
  divergence_scale: Amount = _free(1.0, 'weight of KL to the prior')
  global_div_scale: Amount = _free(0.0, 'weight of KL to N(0, 1)')
  overshooting_scale: Amount = _free(0.0, 'weight of overshooting')
  overshooting_distance: Count = _free(0, 'rollouts; 2 or more to use')
  os_stop_posterior_grad: Flag = _free(True, 'posteriors as constants')
  free_nats: Amount | None = _free(3.0, 'KL that costs nothing')
  main_learning_rate: Amount = _free(1e-3, 'of Adam')
  main_gradient_clipping: Amount | None = _free(1000.0, 'largest global norm')
  precision: Literal['float32', 'bfloat16', 'float16'] = _free(
    'float32', 'of products: bfloat16 on processors, float16 on GPUs'
  )
  # Schedule, counted in examples: an update adds the batch size.
  train_steps: Count = _free(50000, 'examples per training phase')
  test_steps: Count = _free(50, 'examples per test phase')
  max_steps: Positive = _free(5e7, 'global step to stop at')
  checkpoint_every: Positive | None = _free(
    None, 'examples of test phases; 10 test_steps'
  )
  checkpoint_minutes: Amount = _free(15, 'time between checkpoints, 0 off')
  # Episodes.
  num_seed_episodes: Count = _free(5, 'random episodes at the start')
  train_collects: Collects = _free(
    [{}], 'overrides for collecting, none plays nothing'
  )
  test_collects: Collects = _free(
    [{}], 'overrides for testing, none plays nothing'
  )
  collect_every: Positive = _free(5000, 'training examples per episode')
  collect_batch: Positive = _free(
    1, 'episodes played at once, after as many times collect_every'
  )
  collect_per_rank: Flag = _free(
    False, 'with MPI, each rank plays all that is due, not its share'
  )
  train_action_noise: Amount = _free(0.3, 'deviation when collecting')
  action_noise_ramp: Whole = _free(0, 'examples of its schedule')
  action_noise_min: Fraction = _free(0.0, 'lower limit of the schedule')
  collect_objective: Name = _free('reward', 'what to plan for')
  # Planner.
  planner: Literal['cem'] = _free('cem', 'planning algorithm')
  planner_horizon: Positive = _free(12, 'actions per plan')
  planner_amount: Positive = _free(1000, 'candidates per iteration')
  planner_topk: Positive = _free(100, 'candidates that are kept')
  planner_iterations: Count = _free(10, 'iterations, 0 acts at zero')
  planner_warm_start: Flag = _free(False, 'begin at the last plan')
  planner_bias: Annotated[list[Direction], MinLen(1)] | None = _free(
    None, 'action that plans begin at'
  )
  planner_command_bias: Literal['fork'] | dict[str, Any] | None = _free(
    None, 'the same by command of a route: fork, or a mapping'
  )
  planner_heading_bias: schema.Finite = _free(
    0.0, 'its steering per degree to the goal'
  )
  # Driving; None leaves the choice to the scenario.
  max_length: Positive = _episodes(100, 'steps of a carla episode')
  carla_size: ImageSize = _episodes(128, 'height and width')
  carla_backend: Literal['auto', 'server', 'offline'] = _free(
    'auto', 'world to drive in'
  )
  carla_map: Name | Names | None = _episodes(
    None, 'loop, grid, a .xodr file, or a town; or a list'
  )
  carla_random_throttle: Annotated[list[Direction], Len(2, 2)] = _free(
    [-1.0, 1.0], 'limits in start-up episodes'
  )
  carla_allow_backend_change: Flag = _free(False, 'mix worlds in a run')


# Keys of the environment of driving that have parameters, which are declared
# there: name of the parameter, and why a run keeps its value.
_DRIVING: dict[str, tuple[str, str | None]] = {
  'host': ('carla_host', None),
  'port': ('carla_port', None),
  'tm_port': ('carla_tm_port', None),
  'servers': ('carla_servers', None),
  'timeout': ('carla_timeout', None),
  'map_timeout': ('carla_map_timeout', None),
  'retries': ('carla_retries', None),
  'retry_pause': ('carla_retry_pause', None),
  'server_flags': ('carla_server_flags', None),
  'adapter': ('carla_adapter', None),
  'load_map': ('carla_load_map', None),
  'render_x_res': ('carla_render_x_res', _MEANING),
  'render_y_res': ('carla_render_y_res', _MEANING),
  'scenarios': ('carla_scenario', _MEANING),
  'reward_function': ('carla_reward', _MEANING),
  'reward_scale': ('carla_reward_scale', _MEANING),
  'termination': ('carla_termination', _MEANING),
  'vehicles': ('carla_vehicles', _MEANING),
  'pedestrians': ('carla_pedestrians', _MEANING),
  'weather': ('carla_weather', _MEANING),
  'seed': ('carla_seed', None),
  'dt': ('carla_dt', _MEANING),
  'state': ('carla_state', _MEANING),
  'fov': ('carla_fov', _MEANING),
  'log_images': ('carla_log_images', None),
  'convert_images_to_video': ('carla_convert_images_to_video', None),
  'log_measurements': ('carla_log_measurements', None),
  'log_folder': ('carla_log_folder', None),
  'use_sensor': ('carla_sensor', _MEANING),
  'stereo_baseline': ('carla_stereo_baseline', _MEANING),
  'allow_version_mismatch': ('carla_allow_version_mismatch', None),
}
DRIVING = {key: name for key, (name, _) in _DRIVING.items()}

# All that tasks may let a model predict.
_HEADS = (
  'image',
  'vector',
  'reward',
  'state',
  'position',
  'velocity',
  'touch',
  'height',
  'orientations',
  'to_target',
)
_LOSS_SCALES: dict[str, Any] = {
  f'{head}_loss_scale': (
    Amount,
    _free(10.0 if head == 'reward' else 1.0, 'weight of the loss of a head'),
  )
  for head in _HEADS
}

_more: dict[str, Any] = {
  name: EnvConfig.borrow(key, fixed) for key, (name, fixed) in _DRIVING.items()
}
_more['carla_expert'] = EnvConfig.borrow('expert')
Parameters = pydantic.create_model(
  'Parameters', __base__=_Own, **_more, **_LOSS_SCALES
)


def read(params: AttrDict, name: str) -> Any:
  """Return the value of a parameter: the given one, checked, or its default.

  Args:
    params: AttrDict of given parameters.
    name: Name of a parameter.

  Raises:
    UsageError: If the given value has another type or is out of range.
  """
  if name not in params:
    return Parameters.default(name)
  return Parameters.check_value(name, params.get(name))


def check_names(names: Iterable[str]) -> None:
  """Refuse parameters that do not exist.

  Raises:
    UsageError: Naming the first such parameter and the nearest known one.
  """
  Parameters.check_names(sorted(names))


def find_unused(params: AttrDict) -> list[str]:
  """Return the sorted names of given parameters that nobody has read.

  They belong to other tasks, models or loaders, so that one text of
  parameters can serve all of these.

  Args:
    params: AttrDict of given parameters, from which a configuration was
      built.

  Raises:
    UsageError: If one of them is unknown, or has a wrong value.
  """
  names = params.untouched
  Parameters.check({name: params.get(name) for name in names})
  return names


def describe() -> str:
  """Return a table of all parameters as text."""
  names = [x for x in Parameters.names() if x not in _LOSS_SCALES]
  meaning = Parameters.meaning(next(iter(_LOSS_SCALES)))
  return '\n'.join(
    [*Parameters.table(names), f'  <head>_loss_scale: {meaning}']
  )
