"""Configurations of training runs; each is a function that returns a dict.

Configurations, in `config.yaml` and on the command line, refer to objects by
plain text: a name of this project, or `module:name` for user code.
"""

import functools
import inspect
import pkgutil
import re
import types
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import pydantic
from annotated_types import MinLen

from agents.envs import adapters
from agents.run import errors, folder, references, schema
from agents.run.schema import (
  Count,
  Finite,
  FiniteAmount,
  Flag,
  Positive,
  Rate,
  Seed,
  Size,
  setting,
)

# Declares a setting that variables or recorded data depend on.
_fixed = functools.partial(setting, fixed='fixed for a run')


def _check_env(value):
  if not (value and isinstance(value, str)):
    if not callable(value) and not adapters.is_environment(value):
      raise ValueError('give an id, a function, or an environment')
  return value


def _check_pattern(value):
  try:
    re.compile(value)
  except re.error as error:
    raise ValueError(
      f'give regular expressions; {value!r} is none: {error}'
    ) from None
  return value


_Environment = Annotated[str, pydantic.PlainValidator(_check_env)]
_Pattern = Annotated[str, pydantic.AfterValidator(_check_pattern)]
Layers = Annotated[list[Size], MinLen(1)]

# Format of `config.yaml`.
VERSION = 1
# What a configuration has besides the parameters.
_BESIDE = ('version', 'logdir', 'spaces')
# What a stored one cannot do without: the environment, and when the run ends.
_STORED = ('env', 'steps', 'max_length', 'eval_episodes', 'update_every')
_UNUSED = 'unused'
# What configurations name, and where it is.
_ALGORITHMS = {'PPOAlgorithm': 'agents.ppo.algorithm:PPOAlgorithm'}
_NETWORKS = {
  x: f'agents.networks:{x}'
  for x in (
    'feed_forward_gaussian',
    'recurrent_gaussian',
    'feed_forward_categorical',
    'convolutional_gaussian',
    'convolutional_categorical',
  )
}
# What takes the place of a network if observations are images.
_FOR_IMAGES = {
  'feed_forward_gaussian': 'convolutional_gaussian',
  'feed_forward_categorical': 'convolutional_categorical',
}
_OPTIMIZERS = {
  f'{x}Optimizer': f'agents.tools.tf1:tf.train.{x}Optimizer'
  for x in ('Adadelta', 'Adagrad', 'Adam', 'Ftrl', 'GradientDescent', 'RMSProp')
}
_KNOWN = {**_ALGORITHMS, **_NETWORKS, **_OPTIMIZERS}


class Config(schema.Settings):
  """Declaration of the parameters that `--params` can set.

  Parameters without a default are omitted unless a configuration sets them.
  """

  called: ClassVar[str] = 'Parameter {!r}'
  # Names of later and earlier versions of batch-ppo.
  elsewhere: ClassVar[Mapping[str, str]] = {
    'init_output_factor': 'Its name here is init_mean_factor.',
    'init_std': 'Give its logarithm as init_logstd.',
    'normalize_ranges': (
      'Omit it: finite ranges are scaled. Wrap an environment whose space '
      'has wrong bounds, so that it declares infinite ones.'
    ),
    'chunk_length': 'Omit it: an update sees whole episodes.',
    'batch_size': 'Omit it: an update sees all episodes at once.',
    'policy_lr': 'Policy and value function share learning_rate.',
    'value_lr': 'Policy and value function share learning_rate.',
    'policy_optimizer': 'Policy and value function share optimizer.',
    'value_optimizer': 'Policy and value function share optimizer.',
  }

  # General.
  num_agents: Size = _fixed(30, 'environments to step in parallel')
  eval_episodes: Count = _fixed(30, 'evaluation episodes per epoch; 0 for none')
  use_gpu: Flag = setting(False, 'run the algorithm on the GPU')
  max_length: Size = _fixed(1000, 'maximum episode length in steps')
  steps: Rate = setting(1e7, 'total training steps')
  env: _Environment | None = _fixed(None, 'environment id')
  env_settings: dict[str, Any] | None = _fixed(
    None, 'arguments of the environment'
  )
  seed: Seed | None = _fixed(None, 'random seed')
  # Network.
  algorithm: schema.one_of(_ALGORITHMS) = _fixed(  # type: ignore[valid-type]
    'PPOAlgorithm', 'algorithm that collects episodes and learns'
  )
  network: schema.one_of(_NETWORKS) = _fixed(  # type: ignore[valid-type]
    'feed_forward_gaussian',
    'network of policy and value function; convolutional for images',
  )
  weight_summaries: dict[str, _Pattern] = setting(
    dict(all=r'.*', policy=r'.*/policy/.*', value=r'.*/value/.*'),
    'groups of weights to summarize, as regular expressions',
  )
  policy_layers: Layers = _fixed((200, 100), 'hidden layer sizes of the policy')
  value_layers: Layers = _fixed(
    (200, 100), 'hidden layer sizes of the value function'
  )
  init_mean_factor: Rate = _fixed(0.1, 'scale of the initial mean actions')
  init_logstd: Finite = _fixed(
    -1, 'initial log standard deviation of the policy'
  )
  # Optimization. The last two numbers of epochs are unused, as in the original.
  update_every: Size = _fixed(30, 'episodes per update')
  update_epochs: Size = _fixed(25, 'epochs per update')
  optimizer: schema.one_of(_OPTIMIZERS) = _fixed(  # type: ignore[valid-type]
    'AdamOptimizer', 'optimizer of tf.train'
  )
  update_epochs_policy: Positive = _fixed(64, _UNUSED)
  update_epochs_value: Positive = _fixed(64, _UNUSED)
  learning_rate: Rate = setting(
    1e-4, 'learning rate of policy and value function'
  )
  # Losses.
  discount: Rate = setting(0.995, 'discount factor')
  gae_lambda: FiniteAmount | None = setting(
    None, 'lambda of GAE; unset for discounted returns'
  )
  train_on_agent_action: Flag | None = setting(
    None, 'train on the sampled actions, before clipping'
  )
  kl_target: Rate = setting(1e-2, 'target KL divergence per update')
  kl_cutoff_factor: Rate = setting(
    2, 'multiple of kl_target above which to penalize'
  )
  kl_cutoff_coef: FiniteAmount = setting(
    1000, 'weight of the penalty above the cutoff'
  )
  kl_init_penalty: FiniteAmount = _fixed(1, 'initial weight of the KL penalty')


# Environments of PyBullet, with the length of episodes and the steps to train.
_PYBULLET = {
  'pendulum': ('InvertedPendulumBulletEnv-v0', 200, 5e7),
  'doublependulum': ('InvertedDoublePendulumBulletEnv-v0', 1000, 5e7),
  'pendulumswingup': ('InvertedPendulumSwingupBulletEnv-v0', 1000, 5e7),
  'cheetah': ('HalfCheetahBulletEnv-v0', 1000, 1e8),
  'ant': ('AntBulletEnv-v0', 1000, 5e7),
  'kuka_grasping': ('KukaBulletEnv-v0', 1000, 1e7),
  'racecar': ('RacecarBulletEnv-v0', 10, 1e7),
  'humanoid': ('HumanoidBulletEnv-v0', 1000, 3e8),
  'minitaur': ('minitaur', 1000, 3e7),
  'duck_minitaur': ('duck_minitaur', 1000, 3e7),
}
# Values of the configurations that differ from `default`.
CHOICES: dict[str, dict[str, Any]] = {
  'default': {},
  'cartpole': dict(
    env='CartPole-v1',
    network='feed_forward_categorical',
    max_length=500,
    steps=2e5,
  ),
}
CHOICES.update(
  (f'pybullet_{name}', dict(env=env, max_length=length, steps=steps))
  for name, (env, length, steps) in _PYBULLET.items()
)


def make(name: str | None) -> dict[str, Any]:
  """Return a configuration as plain data.

  Raises:
    UsageError: If there is no configuration of this name.
  """
  if name not in CHOICES:
    given = f'Configuration {name!r} is unknown.' if name else 'Give --config.'
    raise errors.UsageError(f'{given} {errors.suggest(name or "", CHOICES)}')
  declared = {k: v for k, v in Config.defaults().items() if v is not None}
  return {**declared, **CHOICES[name]}


def check(config: Mapping[str, Any]) -> None:
  """Check a configuration that was put together by hand.

  Other names than those of `Config` are for a network or an algorithm of the
  user, and unknown otherwise.

  Raises:
    UsageError: Names what is unknown, missing, or not valid.
  """
  known = Config.model_fields
  others = [x for x in config if x not in known and x not in _BESIDE]
  used = [config.get(x) for x in ('network', 'algorithm')]
  if any(callable(x) and find(_name_of(x)) is not x for x in used):
    others = [x for x in others if x in Config.elsewhere]
  missing = [
    name
    for name, default in Config.defaults().items()
    if (default is not None or name == 'env')
    and config.get(name) is None
    and Config.meaning(name) != _UNUSED
  ]
  found = []
  several = [x for x in others if x not in Config.elsewhere]
  if len(several) > 3:
    others = [x for x in others if x not in several]
    found.append(f'{", ".join(map(repr, several))} are unknown; omit them.')
  for name in others:
    advice = Config.elsewhere.get(name) or errors.suggest(str(name), known)
    found.append(f'{name!r} is unknown. {advice}')
  if missing:
    found.append(
      f'{", ".join(missing)} {"are" if len(missing) > 1 else "is"} missing; '
      'begin with those of agents.configs.default().'
    )
  if found:
    raise errors.UsageError(
      'The configuration does not suit this version of PPO: '
      f'{" ".join(found)} See docs/coming-from.md.'
    )
  Config.check({k: v for k, v in config.items() if k in known})


def find(value: Any) -> Any:
  """Return the object with a name of this project; other values unchanged."""
  if not isinstance(value, str) or value not in _KNOWN:
    return value
  return pkgutil.resolve_name(_KNOWN[value])


def find_all(config: Mapping[str, Any]) -> dict[str, Any]:
  """Return a configuration with objects instead of names, see `find`."""
  return {k: v if k == 'env' else find(v) for k, v in config.items()}


def for_images(network: Any) -> Any:
  """Return the network for images in place of one; others are unchanged."""
  known = isinstance(network, str)
  return _FOR_IMAGES.get(network, network) if known else network


def sees_images(config: Mapping[str, Any]) -> bool:
  """Return whether the network gets images as bytes instead of floats."""
  network = config.get('network')
  if callable(network):
    network = _name_of(network)
  return network in _FOR_IMAGES.values()


def to_plain(config: Mapping[str, Any]) -> dict[str, Any]:
  """Convert a configuration to plain data for `from_plain`."""
  values = {
    k: _name_of(v) if callable(v) or adapters.is_environment(v) else v
    for k, v in {**config, **_split_partial(config)}.items()
  }
  return references.to_plain({'version': VERSION, **values})


def _split_partial(config):
  """Return `env` and `env_settings` for an `env` with arguments, else nothing.

  `functools.partial(MyEnv, render=False)` has no name, but its parts do.
  """
  env = config.get('env')
  if not isinstance(env, functools.partial) or env.args:
    return {}
  name, settings = _name_of(env.func), env.keywords
  try:
    plain = references.to_plain(settings) == settings
  except ValueError:
    # Arrays of NumPy cannot be compared.
    plain = False
  if name.startswith('<') or not plain:
    return {}
  return dict(
    env=name, env_settings={**settings, **(config.get('env_settings') or {})}
  )


def _name_of(value):
  """Name of an object, short if it is one of this project."""
  name = adapters.name_of(value)
  short = name.rpartition(':')[2]
  return short if find(short) is value else name


def from_plain(
  stored: Mapping[str, Any],
  trust: references.Trust = references.NOTHING,
  run: str | None = None,
) -> dict[str, Any]:
  """Check a stored configuration and import user code that it refers to.

  Args:
    stored: Content of a file.
    trust: `agents.run.references.Trust` in names that it may contain.
    run: Log directory of the run, for error messages.

  Raises:
    UsageError: If it comes from another version or program, or has invalid
      values.
    NotTrusted: If it contains a name that is not trusted; nothing is imported.
  """
  check_origin(run, stored)
  if stored.get('version') != VERSION:
    raise errors.UsageError(
      f'The run in {run} was written by another version; use that version, or '
      'start a new run.'
    )
  check_complete(run, stored)
  values = {k: v for k, v in stored.items() if k not in _BESIDE}
  spaces = {k: v for k, v in stored.items() if k == 'spaces'}
  return {**import_own(Config.check(values), trust), **spaces}


def check_origin(run: str | None, stored: Mapping[str, Any]) -> None:
  """Refuse a run of another system; see `agents.run.folder.check_origin`."""
  folder.check_origin(run, stored, 'update_every', 'PPO')


def check_complete(run: str | None, stored: Mapping[str, Any]) -> None:
  """Refuse half of a configuration, which may be a mapping, too.

  Args:
    run: Log directory of the run.
    stored: Content of its file.

  Raises:
    UsageError: If it lacks what no run can do without.
  """
  lacking = [x for x in _STORED if stored.get(x) in (None, '')]
  if lacking:
    raise errors.UsageError(
      f'The config.yaml of the run in {run} is damaged: it names no '
      f'{", no ".join(lacking)}. Restore it from a copy, or start a new run in '
      'another log directory.'
    )


def import_own(
  values: Mapping[str, Any], trust: references.Trust
) -> dict[str, Any]:
  """Replace names of user code, `module:name`, with the objects.

  The module of an environment is imported when an environment is created.

  Args:
    values: Configuration.
    trust: `agents.run.references.Trust` in names that it may contain.

  Raises:
    NotTrusted: If it contains a name that is not trusted; nothing is imported.
    UsageError: If a name does not exist, or is neither a function nor a class.
  """
  references.check_env_id(values.get('env'), trust)
  found = {
    key: references.resolve(values[key], trust)
    for key in ('algorithm', 'network', 'optimizer')
    if isinstance(values.get(key), str) and ':' in values[key]
  }
  for key, value in found.items():
    if not callable(value):
      raise errors.UsageError(
        f'Parameter {key!r} is {values[key]!r}, of type '
        f'{type(value).__name__}; give module:name of a function or class.'
      )
  return {**values, **found}


def describe() -> list[str]:
  """Return lines for `--help`: configurations, and `--params` parameters."""
  lines = ['', 'configurations, with the defaults that they override:']
  for name, values in CHOICES.items():
    shown = [
      f'{key} {x:g}' if isinstance(x, float) else f'{key} {x}'
      for key, x in values.items()
    ]
    what = ', '.join(shown) or 'none; requires --env'
    lines.append(f'  {name:24} {what}')
  return [*lines, '', 'parameters (name, default, meaning):', *Config.table()]


def _resolve(name: str) -> dict[str, Any]:
  return find_all(make(name))


# Also for functions that users add here.
globals().update({x: functools.partial(_resolve, x) for x in CHOICES})


def call(name: str | None) -> dict[str, Any] | None:
  """Call a user's function of the original's form.

  Args:
    name: Name of a function without arguments that was added to this module,
      or `module:function`.

  Returns:
    Values that differ from those of `default`. None if there is no such
    function.

  Raises:
    UsageError: If the module does not have the function, or it has arguments
      or returns no mapping.
  """
  found = globals().get(name or '')
  if name and ':' in name:
    found = references.resolve(name, references.EVERYTHING)
  elif not isinstance(found, types.FunctionType):
    return None
  if not callable(found) or inspect.signature(found).parameters:
    raise errors.UsageError(
      f'Configuration {name} is not a function without arguments; give one '
      'that returns a mapping.'
    )
  config: Any = found()
  if not isinstance(config, Mapping):
    raise errors.UsageError(
      f'Function {name!r} returns {type(config).__name__}; return a mapping, '
      'such as agents.configs.default() with other values.'
    )
  usual = _resolve('default')
  return {k: v for k, v in config.items() if k not in usual or usual[k] != v}
