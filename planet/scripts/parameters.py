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
    [50, 50], 'sequences per batch, and steps per sequence'
  )
  num_chunks: Positive = _free(
    1, 'training sequences cut from each sampled episode'
  )
  image_bits: Annotated[Whole, Interval(ge=1, le=8)] = _free(
    5, 'bits per color channel, 8 for full precision'
  )
  image_size: ImageSize = _episodes(
    64, 'height and width of the images in pixels'
  )
  observations: Literal['image', 'vector'] = _episodes(
    'image', 'model input: image, or vector for the state'
  )
  loader: Literal['cache', 'recent', 'scan', 'reload', 'dummy'] = _free(
    'recent', 'sampling strategy for training episodes'
  )
  loader_every: Positive = _free(
    1000, 'sampled episodes between scans for new files'
  )
  loader_max_bytes: Positive | None = _free(
    None, 'episode cache per loader in bytes; default: a quarter of memory'
  )
  loader_max_episodes: Count = _free(
    500, 'scan loader: sample from the newest N episodes, 0 for all'
  )
  loader_window: Positive | None = _free(None, 'unused; kept for compatibility')
  # Model.
  model: Literal['rssm', 'ssm', 'drnn'] = _variables(
    'rssm', 'latent dynamics model'
  )
  model_size: Positive = _variables(
    200, 'units of the deterministic state and hidden layers'
  )
  state_size: Positive = _variables(30, 'units of the stochastic state')
  model_layers: Positive = _variables(1, 'hidden layers inside the model')
  future_rnn: Flag = _layers(
    True, 'rssm: compute the prior from the updated belief'
  )
  mean_only: Flag = _free(
    False, 'use the mean instead of sampling latent states'
  )
  min_stddev: Amount = _free(0.1, 'minimum standard deviation of latent states')
  drnn_encoder_to_decoder: Flag = _variables(
    False, 'drnn: connect encoder to decoder'
  )
  drnn_sample_to_sample: Flag = _variables(
    True, 'drnn: connect sample to sample'
  )
  drnn_sample_to_encoder: Flag = _variables(
    True, 'drnn: connect sample to encoder'
  )
  drnn_decoder_to_encoder: Flag = _variables(
    False, 'drnn: connect decoder to encoder'
  )
  drnn_decoder_to_sample: Flag = _variables(
    True, 'drnn: connect decoder to sample'
  )
  drnn_action_to_decoder: Flag = _variables(
    False, 'drnn: connect action to decoder'
  )
  network: Name | None = _variables(
    None, 'encoder and decoder; default: by image_size'
  )
  activation: Literal['relu', 'elu', 'tanh', 'swish', 'softplus', 'none'] = (
    _layers('relu', 'activation of hidden layers')
  )
  num_layers: Count = _variables(
    3, 'hidden layers of the reward and state heads'
  )
  num_units: Positive = _variables(
    300, 'units per layer of the reward and state heads'
  )
  gradient_heads: Names | None = _variables(
    None, 'heads whose loss trains the model; default: observation and reward'
  )
  bound_action: Literal['none', 'clip', 'tanh'] = _free(
    'clip', 'unused; kept for compatibility'
  )
  # Tasks.
  tasks: Names = _episodes(['cheetah_run'], 'tasks to train on')
  action_repeat: Positive | None = _episodes(
    None, 'simulator steps per action; default: by task'
  )
  camera_id: Whole = _episodes(0, 'camera id in the control suite')
  isolate_envs: Literal['none', 'thread', 'process'] | None = _free(
    None,
    'none, thread, or process (default if it renders)',
  )
  state_diagnostics: Flag = _variables(
    False, 'also predict the state, for diagnostics'
  )
  # Losses.
  divergence_scale: Amount = _free(
    1.0, 'scale of the KL from posterior to prior'
  )
  global_div_scale: Amount = _free(
    0.0, 'scale of the KL from posterior to N(0, 1)'
  )
  overshooting_scale: Amount = _free(0.0, 'scale of the overshooting loss')
  overshooting_distance: Count = _free(
    0, 'overshooting steps, at least 2 if used'
  )
  os_stop_posterior_grad: Flag = _free(
    True, 'stop gradients to the posterior in overshooting'
  )
  free_nats: Amount | None = _free(
    3.0, 'KL divergence in nats below which there is no loss'
  )
  main_learning_rate: Amount = _free(1e-3, 'learning rate of Adam')
  main_gradient_clipping: Amount | None = _free(
    1000.0, 'maximum global gradient norm, null to disable'
  )
  precision: Literal['float32', 'bfloat16', 'float16'] = _free(
    'float32', 'matrix products: float32, bfloat16 (CPU), float16 (GPU)'
  )
  # Schedule, counted in examples: an update adds the batch size.
  train_steps: Count = _free(50000, 'examples per training phase')
  test_steps: Count = _free(50, 'examples per test phase')
  max_steps: Positive = _free(5e7, 'total number of examples')
  checkpoint_every: Positive | None = _free(
    None, 'test examples between checkpoints; default: 10 test_steps'
  )
  checkpoint_minutes: Amount = _free(
    15, 'minutes between checkpoints, 0 to disable'
  )
  # Episodes.
  num_seed_episodes: Count = _free(
    5, 'random episodes before training, per task'
  )
  train_collects: Collects = _free(
    [{}], 'training collections as mappings of overrides; [] for none'
  )
  test_collects: Collects = _free(
    [{}], 'test collections as mappings of overrides; [] for none'
  )
  collect_every: Positive = _free(
    5000, 'training examples between collected episodes'
  )
  collect_batch: Positive = _free(
    1, 'episodes collected in parallel, every collect_every * N examples'
  )
  collect_per_rank: Flag = _free(
    False, 'with MPI, collect every episode on each rank instead of splitting'
  )
  train_action_noise: Amount = _free(
    0.3, 'standard deviation of action noise when collecting'
  )
  action_noise_ramp: Whole = _free(
    0, 'examples over which the noise ramps up, negative to ramp down'
  )
  action_noise_min: Fraction = _free(0.0, 'minimum of the noise schedule')
  collect_objective: Name = _free('reward', 'objective of the planner')
  # Planner.
  planner: Literal['cem'] = _free('cem', 'planning algorithm')
  planner_horizon: Positive = _free(12, 'planning horizon in actions')
  planner_amount: Positive = _free(1000, 'candidate plans per iteration')
  planner_topk: Positive = _free(100, 'candidates kept per iteration')
  planner_iterations: Count = _free(
    10, 'optimization iterations, 0 for zero actions'
  )
  planner_warm_start: Flag = _free(False, 'start from the previous plan')
  planner_bias: Annotated[list[Direction], MinLen(1)] | None = _free(
    None, 'initial action of every plan, one value per action dimension'
  )
  planner_command_bias: Literal['fork'] | dict[str, Any] | None = _free(
    None, 'carla: initial action by route command: fork, or a mapping'
  )
  planner_heading_bias: schema.Finite = _free(
    0.0, 'carla: added steering per degree to the goal'
  )
  # Driving; None leaves the choice to the scenario.
  max_length: Positive = _episodes(100, 'simulator steps per carla episode')
  carla_size: ImageSize = _episodes(
    128, 'image size of the carla task in pixels'
  )
  carla_backend: Literal['auto', 'server', 'offline'] = _free(
    'auto', 'CARLA server or built-in offline world; auto picks'
  )
  carla_map: Name | Names | None = _episodes(
    None, 'loop, grid, a .xodr file, a town, or a list; default: by scenario'
  )
  carla_random_throttle: Annotated[list[Direction], Len(2, 2)] = _free(
    [-1.0, 1.0], 'throttle range of random episodes'
  )
  carla_allow_backend_change: Flag = _free(
    False, 'allow a run to switch backends'
  )


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
    _free(10.0 if head == 'reward' else 1.0, 'scale of the loss of a head'),
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
