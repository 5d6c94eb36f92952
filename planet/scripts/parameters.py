"""All parameters that `--params` may set, with defaults and limits."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from agents.run import errors
from planet.envs.carla.env_config import LIMITS
from planet.scripts import checks


@dataclasses.dataclass(frozen=True)
class Parameter:
  """Declaration of a parameter.

  Attributes:
    fixed: Why a run keeps the value that it began with; None if the value may
      change when the run is continued, because neither the variables nor the
      recorded episodes depend on it.
    default: Value where none is given.
    check: Function that returns a given value, converted where needed, or
      raises a ValueError that says what to give.
    meaning: Few words for `--help`.
  """

  fixed: str | None
  default: Any
  check: Callable
  meaning: str


_free = functools.partial(Parameter, None)
_variables = functools.partial(
  Parameter, 'it changes which variables there are or their shapes'
)
_layers = functools.partial(
  Parameter, 'the variables were trained for other layers'
)
_episodes = functools.partial(
  Parameter, 'it changes what the recorded episodes mean'
)

PARAMETERS = {
  # Data.
  'batch_shape': _free(
    [50, 50],
    checks.listing(checks.integer(1), 2),
    'sequences per batch and their length',
  ),
  'num_chunks': _free(
    1, checks.integer(1), 'chunks cut from an episode at a time'
  ),
  'image_bits': _free(5, checks.choice(*range(1, 9)), 'bits per color to keep'),
  'image_size': _episodes(
    64, checks.choice(32, 64, 96, 128), 'height and width'
  ),
  'observations': _episodes(
    'image',
    checks.choice('image', 'vector'),
    'vector learns from the state instead of pixels',
  ),
  'loader': _free(
    'recent',
    checks.choice('cache', 'recent', 'scan', 'reload', 'dummy'),
    'how episodes are drawn for training',
  ),
  'loader_every': _free(
    1000, checks.integer(1), 'episodes between folder scans'
  ),
  'loader_max_bytes': _free(
    None,
    checks.integer(1, optional=True),
    'of episodes in memory per loader; a quarter of all',
  ),
  'loader_max_episodes': _free(
    500, checks.integer(0), 'newest episodes that scan draws from, 0 for all'
  ),
  'loader_window': _free(None, checks.integer(1, optional=True), 'unused'),
  # Model.
  'model': _variables(
    'rssm', checks.choice('rssm', 'ssm', 'drnn'), 'latent dynamics'
  ),
  'model_size': _variables(
    200, checks.integer(1), 'deterministic and hidden units'
  ),
  'state_size': _variables(30, checks.integer(1), 'stochastic units'),
  'model_layers': _variables(
    1, checks.integer(1), 'hidden layers within the model'
  ),
  'future_rnn': _layers(
    True, checks.boolean, 'predict the prior from the belief'
  ),
  'mean_only': _free(False, checks.boolean, 'no random latent states'),
  'min_stddev': _free(0.1, checks.number(0), 'smallest latent deviation'),
  'drnn_encoder_to_decoder': _variables(
    False, checks.boolean, 'link within drnn'
  ),
  'drnn_sample_to_sample': _variables(True, checks.boolean, 'link within drnn'),
  'drnn_sample_to_encoder': _variables(
    True, checks.boolean, 'link within drnn'
  ),
  'drnn_decoder_to_encoder': _variables(
    False, checks.boolean, 'link within drnn'
  ),
  'drnn_decoder_to_sample': _variables(
    True, checks.boolean, 'link within drnn'
  ),
  'drnn_action_to_decoder': _variables(
    False, checks.boolean, 'link within drnn'
  ),
  'network': _variables(
    None, checks.text, 'encoder and decoder; by image size if unset'
  ),
  'activation': _layers(
    'relu',
    checks.choice('relu', 'elu', 'tanh', 'swish', 'softplus', 'none'),
    'function of the hidden layers',
  ),
  'num_layers': _variables(
    3, checks.integer(0), 'hidden layers of vector heads'
  ),
  'num_units': _variables(300, checks.integer(1), 'units of vector heads'),
  'gradient_heads': _variables(
    None,
    checks.listing(checks.text),
    'heads that train the model; observation and reward',
  ),
  'bound_action': _free(
    'clip', checks.choice('none', 'clip', 'tanh'), 'unused'
  ),
  # Tasks.
  'tasks': _episodes(
    ['cheetah_run'], checks.listing(checks.text), 'one or more tasks'
  ),
  'action_repeat': _episodes(
    None, checks.integer(1), 'steps per decision; by task'
  ),
  'camera_id': _episodes(0, checks.integer(), 'camera of the control suite'),
  'isolate_envs': _free(
    None,
    checks.choice('none', 'thread', 'process'),
    'where environments live; process if they render',
  ),
  'state_diagnostics': _variables(
    False, checks.boolean, 'predict the state as well'
  ),
  # Losses.
  'divergence_scale': _free(1.0, checks.number(0), 'weight of KL to the prior'),
  'global_div_scale': _free(0.0, checks.number(0), 'weight of KL to N(0, 1)'),
  'overshooting_scale': _free(0.0, checks.number(0), 'weight of overshooting'),
  'overshooting_distance': _free(
    0, checks.integer(0), 'rollouts; 2 or more to use'
  ),
  'os_stop_posterior_grad': _free(
    True, checks.boolean, 'posteriors as constants'
  ),
  'free_nats': _free(
    3.0, checks.number(0, optional=True), 'KL that costs nothing'
  ),
  'main_learning_rate': _free(1e-3, checks.number(0), 'of Adam'),
  'main_gradient_clipping': _free(
    1000.0, checks.number(0, optional=True), 'largest global norm'
  ),
  # Schedule, counted in examples: an update adds the batch size.
  'train_steps': _free(50000, checks.integer(0), 'examples per training phase'),
  'test_steps': _free(50, checks.integer(0), 'examples per test phase'),
  'max_steps': _free(5e7, checks.integer(1), 'global step to stop at'),
  'checkpoint_every': _free(
    None, checks.integer(1), 'examples of test phases; 10 test_steps'
  ),
  'checkpoint_minutes': _free(
    15, checks.number(0), 'time between checkpoints, 0 off'
  ),
  # Episodes.
  'num_seed_episodes': _free(
    5, checks.integer(0), 'random episodes at the start'
  ),
  'train_collects': _free(
    [{}],
    checks.listing(checks.mapping, may_be_empty=True),
    'overrides for collecting, none plays nothing',
  ),
  'test_collects': _free(
    [{}],
    checks.listing(checks.mapping, may_be_empty=True),
    'overrides for testing, none plays nothing',
  ),
  'collect_every': _free(
    5000, checks.integer(1), 'training examples per episode'
  ),
  'train_action_noise': _free(
    0.3, checks.number(0), 'deviation when collecting'
  ),
  'action_noise_ramp': _free(0, checks.integer(), 'examples of its schedule'),
  'action_noise_min': _free(
    0.0, checks.number(0, 1), 'lower limit of the schedule'
  ),
  'collect_objective': _free('reward', checks.text, 'what to plan for'),
  # Planner.
  'planner': _free('cem', checks.choice('cem'), 'planning algorithm'),
  'planner_horizon': _free(12, checks.integer(1), 'actions per plan'),
  'planner_amount': _free(1000, checks.integer(1), 'candidates per iteration'),
  'planner_topk': _free(100, checks.integer(1), 'candidates that are kept'),
  'planner_iterations': _free(
    10, checks.integer(0), 'iterations, 0 acts at zero'
  ),
  'planner_warm_start': _free(False, checks.boolean, 'begin at the last plan'),
  'planner_bias': _free(
    None,
    checks.optional(checks.listing(checks.number(-1, 1))),
    'action that plans begin at',
  ),
  # Driving; None leaves the choice to the scenario.
  'max_length': _episodes(100, checks.integer(1), 'steps of a carla episode'),
  'carla_size': _episodes(
    128, checks.choice(32, 64, 96, 128), 'height and width'
  ),
  'carla_backend': _free(
    'auto', checks.choice('auto', 'server', 'offline'), 'world to drive in'
  ),
  'carla_host': _free('127.0.0.1', checks.text, 'address of the server'),
  'carla_port': _free(
    2000, checks.integer(*LIMITS['port']), 'port of the server'
  ),
  'carla_tm_port': _free(
    8000, checks.integer(*LIMITS['tm_port']), 'port of its traffic manager'
  ),
  'carla_map': _episodes(
    None, checks.optional(checks.text), 'loop, grid, a .xodr file, or a town'
  ),
  'carla_scenario': _episodes(
    'TOWN2_ONE_CURVE_0', checks.names_or_mappings, 'traffic and routes'
  ),
  'carla_reward': _episodes('custom3', checks.text, 'name of the reward'),
  'carla_reward_scale': _episodes(
    1.0, checks.number(*LIMITS['reward_scale']), 'factor of rewards'
  ),
  'carla_termination': _episodes('fork', checks.text, 'fork, rllib or time'),
  'carla_vehicles': _episodes(
    None, checks.integer(*LIMITS['vehicles'], optional=True), 'other vehicles'
  ),
  'carla_pedestrians': _episodes(
    None, checks.integer(*LIMITS['pedestrians'], optional=True), 'pedestrians'
  ),
  'carla_weather': _episodes(
    None, checks.name_or_number, 'name or number of a weather'
  ),
  'carla_seed': _free(
    None, checks.integer(0, optional=True), 'where --seed is missing'
  ),
  'carla_dt': _episodes(0.1, checks.number(*LIMITS['dt']), 'seconds per step'),
  'carla_state': _episodes(
    'full', checks.choice('full', 'zero'), 'what state holds'
  ),
  'carla_timeout': _free(
    10.0, checks.number(*LIMITS['timeout']), 'seconds to wait for the server'
  ),
  'carla_fov': _episodes(
    120.0, checks.number(*LIMITS['fov']), 'degrees of the camera'
  ),
  'carla_random_throttle': _free(
    [-1.0, 1.0],
    checks.listing(checks.number(-1, 1), 2),
    'limits in start-up episodes',
  ),
  'carla_allow_version_mismatch': _free(
    False, checks.boolean, 'use other servers'
  ),
  'carla_allow_backend_change': _free(
    False, checks.boolean, 'mix worlds in a run'
  ),
}

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
_LOSS_SCALES = {
  f'{head}_loss_scale': _free(
    10.0 if head == 'reward' else 1.0,
    checks.number(0),
    'weight of the loss of a head',
  )
  for head in _HEADS
}
KNOWN = {**PARAMETERS, **_LOSS_SCALES}


def read(params, name):
  """Value of a parameter: the given one, checked, or its default.

  Args:
    params: AttrDict of given parameters.
    name: Name of a parameter in `KNOWN`.

  Raises:
    UsageError: If the given value has another type or is out of range.
  """
  parameter = KNOWN[name]
  if name not in params:
    return parameter.default
  value = params.get(name)
  try:
    return parameter.check(value)
  except ValueError as error:
    raise errors.UsageError(
      f'Parameter {name!r} is {value!r}; give {error}.'
    ) from None


def check_names(names):
  """Refuse parameters that do not exist.

  Raises:
    UsageError: Naming the first such parameter and the nearest known one.
  """
  for name in sorted(names):
    if name not in KNOWN:
      raise errors.UsageError(
        f'Parameter {name!r} is unknown. {errors.suggest(name, KNOWN)}'
      )


def find_unused(params):
  """Sorted names of given parameters that nobody has read.

  They belong to other tasks, models or loaders, so that one text of
  parameters can serve all of these.

  Args:
    params: AttrDict of given parameters, from which a configuration was
      built.

  Raises:
    UsageError: If one of them is unknown, or has a wrong value.
  """
  names = params.untouched
  check_names(names)
  for name in names:
    read(params, name)
  return names


def describe():
  """Table of all parameters as text."""
  lines = [
    f'  {name:24} {_short(x.default):12} {x.meaning}'
    for name, x in PARAMETERS.items()
  ]
  meaning = next(iter(_LOSS_SCALES.values())).meaning
  lines.append(f'  <head>_loss_scale        by head      {meaning}')
  return '\n'.join(lines)


def _short(value):
  return '-' if value is None else str(value).replace("'", '')
