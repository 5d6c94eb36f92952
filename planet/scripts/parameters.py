"""All parameters that `--params` may set, with defaults and limits."""

import dataclasses
import numbers
from collections.abc import Callable
from typing import Any

from agents.tools import errors


@dataclasses.dataclass(frozen=True)
class Parameter:
  """Default value, check of given values, and meaning."""

  default: Any
  check: Callable
  meaning: str


def integer(low=None, optional=False):
  """Whole number of at least `low`; `5e7` counts as one."""

  def check(value):
    if value is None and optional:
      return None
    whole = _is_number(value) and float(value).is_integer()
    _require(
      whole and (low is None or value >= low),
      'a whole number'
      + (f' of at least {low}' if low is not None else '')
      + (' or null' if optional else ''),
    )
    return int(value)

  return check


def number(low=None, high=None, optional=False):
  """Number between two limits."""

  def check(value):
    if value is None and optional:
      return None
    fits = (
      _is_number(value)
      and (low is None or value >= low)
      and (high is None or value <= high)
    )
    limits = '' if low is None else f' of at least {low}'
    limits += '' if high is None else f' and at most {high}'
    _require(fits, 'a number' + limits + (' or null' if optional else ''))
    return float(value)

  return check


def boolean(value):
  """True or false."""
  _require(isinstance(value, bool), 'true or false')
  return value


def choice(*options):
  """One of several values."""

  def check(value):
    names = ', '.join(str(x) for x in options)
    _require(
      not isinstance(value, bool) and value in options, f'one of {names}'
    )
    return value

  return check


def text(value):
  """Non-empty text."""
  _require(isinstance(value, str) and value, 'a name')
  return value


def name_or_number(value):
  """Non-empty text, a whole number, or null."""
  fits = value is None or (
    isinstance(value, (str, int)) and not isinstance(value, bool)
  )
  _require(fits and value != '', 'a name, a whole number or null')
  return value


def listing(check_item, length=None):
  """List whose items all pass a check."""

  def check(value):
    fits = isinstance(value, (list, tuple)) and len(value) > 0
    count = f'{length} values' if length else 'one or more values'
    _require(fits and length in (None, len(value)), f'a list of {count}')
    return [check_item(x) for x in value]

  return check


def optional(check_value):
  """Whatever passes another check, or null."""
  return lambda value: None if value is None else check_value(value)


def mapping(value):
  """Mapping from names to values."""
  _require(isinstance(value, dict), 'a mapping')
  return dict(value)


def _is_number(value):
  return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _require(condition, what):
  if not condition:
    raise ValueError(what)


_P = Parameter

PARAMETERS = {
  # Data.
  'batch_shape': _P(
    [50, 50], listing(integer(1), 2), 'sequences per batch and their length'
  ),
  'num_chunks': _P(1, integer(1), 'chunks cut from an episode at a time'),
  'image_bits': _P(5, choice(*range(1, 9)), 'bits per color to keep'),
  'image_size': _P(64, choice(32, 64, 96, 128), 'height and width'),
  'observations': _P(
    'image',
    choice('image', 'vector'),
    'vector learns from the state instead of pixels',
  ),
  'loader': _P(
    'recent',
    choice('cache', 'recent', 'scan', 'reload', 'dummy'),
    'how episodes are drawn for training',
  ),
  'loader_every': _P(1000, integer(1), 'episodes between folder scans'),
  'loader_max_episodes': _P(
    500, integer(0), 'episodes in memory per loader, 0 for all'
  ),
  'loader_window': _P(None, integer(1, optional=True), 'unused'),
  # Model.
  'model': _P('rssm', choice('rssm', 'ssm', 'drnn'), 'latent dynamics'),
  'model_size': _P(200, integer(1), 'deterministic and hidden units'),
  'state_size': _P(30, integer(1), 'stochastic units'),
  'model_layers': _P(1, integer(1), 'hidden layers within the model'),
  'future_rnn': _P(True, boolean, 'predict the prior from the belief'),
  'mean_only': _P(False, boolean, 'no random latent states'),
  'min_stddev': _P(0.1, number(0), 'smallest latent deviation'),
  'drnn_encoder_to_decoder': _P(False, boolean, 'link within drnn'),
  'drnn_sample_to_sample': _P(True, boolean, 'link within drnn'),
  'drnn_sample_to_encoder': _P(True, boolean, 'link within drnn'),
  'drnn_decoder_to_encoder': _P(False, boolean, 'link within drnn'),
  'drnn_decoder_to_sample': _P(True, boolean, 'link within drnn'),
  'drnn_action_to_decoder': _P(False, boolean, 'link within drnn'),
  'network': _P(None, text, 'encoder and decoder; by image size if unset'),
  'activation': _P(
    'relu',
    choice('relu', 'elu', 'tanh', 'swish', 'softplus', 'none'),
    'function of the hidden layers',
  ),
  'num_layers': _P(3, integer(0), 'hidden layers of vector heads'),
  'num_units': _P(300, integer(1), 'units of vector heads'),
  'gradient_heads': _P(
    None, listing(text), 'heads that train the model; observation and reward'
  ),
  'bound_action': _P('clip', choice('none', 'clip', 'tanh'), 'unused'),
  # Tasks.
  'tasks': _P(['cheetah_run'], listing(text), 'one or more tasks'),
  'action_repeat': _P(None, integer(1), 'steps per decision; by task'),
  'camera_id': _P(0, integer(), 'camera of the control suite'),
  'isolate_envs': _P(
    None,
    choice('none', 'thread', 'process'),
    'where environments live; process if they render',
  ),
  'state_diagnostics': _P(False, boolean, 'predict the state as well'),
  # Losses.
  'divergence_scale': _P(1.0, number(0), 'weight of KL to the prior'),
  'global_div_scale': _P(0.0, number(0), 'weight of KL to N(0, 1)'),
  'overshooting_scale': _P(0.0, number(0), 'weight of overshooting'),
  'overshooting_distance': _P(0, integer(0), 'rollouts; 2 or more to use'),
  'os_stop_posterior_grad': _P(True, boolean, 'posteriors as constants'),
  'free_nats': _P(3.0, number(0, optional=True), 'KL that costs nothing'),
  'main_learning_rate': _P(1e-3, number(0), 'of Adam'),
  'main_gradient_clipping': _P(
    1000.0, number(0, optional=True), 'largest global norm'
  ),
  # Schedule, counted in examples: an update adds the batch size.
  'train_steps': _P(50000, integer(0), 'examples per training phase'),
  'test_steps': _P(50, integer(0), 'examples per test phase'),
  'max_steps': _P(5e7, integer(1), 'global step to stop at'),
  'checkpoint_every': _P(
    None, integer(1), 'examples of test phases; 10 test_steps'
  ),
  'checkpoint_minutes': _P(15, number(0), 'time between checkpoints, 0 off'),
  # Episodes.
  'num_seed_episodes': _P(5, integer(1), 'random episodes at the start'),
  'train_collects': _P([{}], listing(mapping), 'overrides for collecting'),
  'test_collects': _P([{}], listing(mapping), 'overrides for testing'),
  'collect_every': _P(5000, integer(1), 'training examples per episode'),
  'train_action_noise': _P(0.3, number(0), 'deviation when collecting'),
  'action_noise_ramp': _P(0, integer(), 'examples of its schedule'),
  'action_noise_min': _P(0.0, number(0, 1), 'lower limit of the schedule'),
  'collect_objective': _P('reward', text, 'what to plan for'),
  # Planner.
  'planner': _P('cem', choice('cem'), 'planning algorithm'),
  'planner_horizon': _P(12, integer(1), 'actions per plan'),
  'planner_amount': _P(1000, integer(1), 'candidates per iteration'),
  'planner_topk': _P(100, integer(1), 'candidates that are kept'),
  'planner_iterations': _P(10, integer(0), 'iterations, 0 acts at zero'),
  'planner_warm_start': _P(False, boolean, 'begin at the last plan'),
  'planner_bias': _P(
    None, optional(listing(number(-1, 1))), 'action that plans begin at'
  ),
  # Driving; None leaves the choice to the scenario.
  'max_length': _P(100, integer(1), 'steps of a carla episode'),
  'carla_size': _P(128, choice(32, 64, 96, 128), 'height and width'),
  'carla_backend': _P(
    'auto', choice('auto', 'server', 'offline'), 'world to drive in'
  ),
  'carla_host': _P('127.0.0.1', text, 'address of the server'),
  'carla_port': _P(2000, integer(1), 'port of the server'),
  'carla_tm_port': _P(8000, integer(1), 'port of its traffic manager'),
  'carla_map': _P(None, optional(text), 'loop, grid, a .xodr file, or a town'),
  'carla_scenario': _P('TOWN2_ONE_CURVE_0', text, 'traffic and routes'),
  'carla_reward': _P('custom3', text, 'name of the reward'),
  'carla_reward_scale': _P(1.0, number(0), 'factor of rewards'),
  'carla_termination': _P('fork', text, 'fork, rllib or time'),
  'carla_vehicles': _P(None, integer(0, optional=True), 'other vehicles'),
  'carla_pedestrians': _P(None, integer(0, optional=True), 'pedestrians'),
  'carla_weather': _P(None, name_or_number, 'name or number of a weather'),
  'carla_seed': _P(None, integer(0, optional=True), 'where --seed is missing'),
  'carla_dt': _P(0.1, number(0.005, 0.5), 'seconds per step'),
  'carla_state': _P('full', choice('full', 'zero'), 'what state holds'),
  'carla_timeout': _P(10.0, number(0.1), 'seconds to wait for the server'),
  'carla_fov': _P(120.0, number(10, 170), 'degrees of the camera'),
  'carla_random_throttle': _P(
    [-1.0, 1.0], listing(number(-1, 1), 2), 'limits in start-up episodes'
  ),
  'carla_allow_version_mismatch': _P(False, boolean, 'use other servers'),
  'carla_allow_backend_change': _P(False, boolean, 'mix worlds in a run'),
}

_LOSS_SCALE = _P(None, number(0), 'weight of the loss of a head')


def read(params, name):
  """Value of a parameter: the given one, checked, or its default.

  Args:
    params: AttrDict of given parameters.
    name: Name of a parameter in the table.

  Raises:
    UsageError: If the given value has another type or is out of range.
  """
  parameter = PARAMETERS[name]
  if name not in params:
    return parameter.default
  return _check(name, parameter, params.get(name))


def read_loss_scale(params, head, default):
  """Weight of the loss of a head, parameter `<head>_loss_scale`."""
  name = f'{head}_loss_scale'
  if name not in params:
    return default
  return _check(name, _LOSS_SCALE, params.get(name))


def check_all_used(params):
  """Refuse parameters that nobody has read.

  Args:
    params: AttrDict of given parameters, from which a configuration was
      built.

  Raises:
    UsageError: Naming the first such parameter and the nearest known one.
  """
  for name in params.untouched:
    if name in PARAMETERS:
      raise errors.UsageError(
        f'Parameter {name!r} has no effect together with the other '
        'parameters; leave it out.'
      )
    known = list(PARAMETERS) + [
      x for x in params.touched if x.endswith('_loss_scale')
    ]
    raise errors.UsageError(
      f'Parameter {name!r} is unknown. {errors.suggest(name, known)}'
    )


def describe():
  """Table of all parameters as text."""
  lines = [
    f'  {name:24} {_short(x.default):12} {x.meaning}'
    for name, x in PARAMETERS.items()
  ]
  lines.append(f'  <head>_loss_scale        by head      {_LOSS_SCALE.meaning}')
  return '\n'.join(lines)


def _check(name, parameter, value):
  try:
    return parameter.check(value)
  except ValueError as error:
    raise errors.UsageError(
      f'Parameter {name!r} is {value!r}; give {error}.'
    ) from None


def _short(value):
  return '-' if value is None else str(value).replace("'", '')
