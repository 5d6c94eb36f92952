"""All flags and settings of HER; does not import TensorFlow.

Settings are declared here, validated by `Settings.make`, and then read as
attributes.
"""

import argparse
import contextlib
import functools
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pydantic
from annotated_types import Ge, Gt

from agents.run import errors, flags, references, schema
from agents.run.schema import (
  Amount,
  Count,
  Fraction,
  Number,
  Positive,
  Whole,
  described,
  setting,
)
from baselines_her import envs
from baselines_her.her_sampler import STRATEGIES


def _to_limits(value: Any) -> Any:
  return value.tolist() if isinstance(value, np.ndarray) else value


# Numbers are also accepted as switches, as in the original.
Flag = Annotated[bool, described('True or False')]
Switch = Annotated[bool, pydantic.AfterValidator(int), described('0 or 1')]
Rate = Annotated[Number, Gt(0)]
Limits = Annotated[
  Number | list[Number],
  pydantic.BeforeValidator(_to_limits),
  described('a number or a list of numbers'),
]
Limit = Annotated[
  bool | float | None,
  pydantic.Field(union_mode='left_to_right'),
  described('True, False or a number'),
]
File = Annotated[str, pydantic.BeforeValidator(str)]
Steps = Annotated[schema.Finite, Ge(0)]

# Flags of Baselines that are accepted and do nothing, but for a network of
# the user's own.
IGNORED = ('env_type', 'network', 'gamestate')
_IGNORED_MEANING = 'ignored; accepted for compatibility with Baselines'
NETWORK = 'baselines_her.actor_critic:ActorCritic'
_fixed = functools.partial(setting, fixed='fixed for a run')
# Settings that follow from others, which `--help` leaves out.
_DERIVED = ('rollout_batch_size', 'network_args')


class Flags(schema.Settings):
  """Flags of `her-train`."""

  called: ClassVar[str] = 'Flag --{}'

  alg: Literal['her'] = setting('her', 'algorithm; for PPO use ppo-train')
  env: str = setting('FetchReach-v1', 'environment id')
  env_type: str | None = setting(None, _IGNORED_MEANING)
  seed: schema.Seed | None = setting(None, 'random seed')
  num_timesteps: Steps = setting(
    1e6, 'environment steps of each rank: total_env_steps / ranks'
  )
  total_env_steps: Steps | None = setting(
    None, 'environment steps of training over all ranks, in whole epochs'
  )
  network: str | None = setting(
    None, 'custom network, module:name; other values have no effect'
  )
  gamestate: str | None = setting(None, _IGNORED_MEANING)
  num_env: Positive | None = setting(None, 'environments per rank (default 1)')
  reward_scale: Number = setting(1.0, 'factor applied to logged rewards')
  save_path: str | None = setting(None, 'file for all variables, at the end')
  save_video_interval: Count = setting(0, 'steps between videos; 0 for none')
  save_video_length: Positive = setting(200, 'length of each video in steps')
  log_path: str | None = setting(
    None, 'folder of the run, also --logdir (default a temporary folder)'
  )
  play: bool = setting(False, 'play the trained agent after training')
  play_episodes: Count | None = setting(
    None,
    'episodes to play; 0 plays until stopped (default 0 in a window, 5 in a '
    'video)',
  )
  policy_dir: str | None = setting(
    None, 'folder of saved policies (default <log_path>/policies)'
  )
  resume: bool | None = setting(
    None,
    'true requires a run in log_path, false requires that there is none '
    '(default: continue the run if there is one)',
  )
  num_cpu: Positive = setting(1, 'ranks to start with mpirun')
  trust: list[str] | None = setting(None, references.HELP)
  wandb: str | None = setting(None, flags.WANDB)


class Agent(schema.Settings):
  """Settings that `learn` accepts only in `override_params`."""

  called: ClassVar[str] = 'Setting --{}'

  max_u: Limits = _fixed(1.0, 'limit of actions')
  layers: Count = _fixed(3, 'number of hidden layers')
  hidden: Positive = _fixed(256, 'units per hidden layer')
  network_class: schema.one_of([NETWORK]) = _fixed(  # type: ignore[valid-type]
    NETWORK, 'class of actor and critic'
  )
  Q_lr: Rate = setting(0.001, 'learning rate of the critic')
  pi_lr: Rate = setting(0.001, 'learning rate of the actor')
  buffer_size: Positive = _fixed(int(1e6), 'transitions kept in the replay')
  polyak: Fraction = setting(0.95, 'share of the old weights in the target')
  action_l2: Number = setting(1.0, 'penalty on the mean squared action')
  clip_obs: Number = _fixed(200.0, 'limit of raw observations and goals')
  scope: Annotated[str, pydantic.StringConstraints(pattern=r'^\w+$')] = _fixed(
    'ddpg', 'variable scope'
  )
  relative_goals: Flag = _fixed(False, 'goals relative to achieved goals')
  batch_size: Positive = setting(256, 'transitions per update')
  norm_eps: Number = _fixed(0.01, 'lower bound of the standard deviation')
  norm_clip: Number = _fixed(5, 'limit of normalized inputs')


class Params(Agent):
  """Settings of the original's `DEFAULT_PARAMS`."""

  bc_loss: Switch = _fixed(0, '1 imitates demonstrations')
  q_filter: Switch = setting(0, '1 imitates only what the critic prefers')
  num_demo: Positive = _fixed(100, 'number of demonstrations')
  demo_batch_size: Count = setting(128, 'demonstrated transitions per batch')
  prm_loss_weight: Number = setting(
    0.001, 'weight of the actor loss when imitating'
  )
  aux_loss_weight: Number = setting(0.0078, 'weight of the imitation loss')
  n_cycles: Positive = _fixed(50, 'cycles per epoch')
  rollout_batch_size: Positive = setting(2)
  n_batches: Positive = _fixed(40, 'updates per cycle')
  n_test_rollouts: Positive = setting(10, 'test rollouts per epoch')
  test_with_polyak: Flag = setting(False, 'evaluate the target networks')
  random_eps: Fraction = setting(0.3, 'probability of a random action')
  noise_eps: Amount = setting(0.2, 'standard deviation of action noise')
  replay_strategy: Literal[STRATEGIES] = _fixed(  # type: ignore[valid-type]
    'future', 'future for hindsight, none for plain replay'
  )
  replay_k: Amount = _fixed(4, 'hindsight goals per original goal')


class Settings(Params):
  """All settings of a training.

  `make` validates them; `complete` adds those that depend on the environment.
  """

  policy_save_interval: Whole = setting(5, 'epochs between saved policies')
  # A number is the limit itself, as `DDPG` of the original takes it.
  clip_return: Limit = _fixed(True, 'clip values to the largest return')
  clip_pos_returns: Flag = setting(
    True, 'clip values above 0; default False where rewards exceed 0'
  )
  demo_file: File | None = _fixed(None, 'file of demonstrations (pickle)')
  load_path: File | None = _fixed(None, 'file of initial variables (pickle)')
  gamma: Fraction | None = _fixed(
    None, 'discount factor (default 1 - 1 / time limit)'
  )
  T: Annotated[Whole, Ge(2)] | None = _fixed(
    None, 'steps per episode (default that of the environment)'
  )
  lr: Rate | None = setting(None, 'sets both Q_lr and pi_lr')
  network_args: dict[str, Any] = _fixed({})

  @classmethod
  def usual(cls, env_name: str) -> dict[str, Any]:
    """Return the default values for an environment."""
    own = DEFAULT_ENV_PARAMS.get(envs.base_name(env_name), {})
    return {**cls.defaults(), **DEFAULT_PARAMS, **own}

  @classmethod
  def make(cls, env_name: str, given: Mapping[str, Any]) -> 'Settings':
    """Return the settings of a training.

    Args:
      env_name: Id of the environment as the user gave it.
      given: Values by name that replace the defaults.

    Raises:
      UsageError: If a name is unknown or a value is not allowed.
    """
    values = {**cls.usual(env_name), **given}
    result = cls.read(values, more=Flags.names())
    if result.lr is not None:
      result.Q_lr = result.pi_lr = result.lr
      result.lr = None
    if result.gamma == 1 and result.clip_return is True:
      # The original divides by zero. Only the user can decide not to clip.
      raise errors.UsageError(
        'With gamma=1 there is no limit to clip returns at; set '
        'clip_return=False or a smaller gamma.'
      )
    if result.bc_loss and not result.demo_file:
      raise errors.UsageError('Setting --bc_loss needs --demo_file.')
    if result.demo_file and result.demo_batch_size >= result.batch_size:
      raise errors.UsageError(
        f'Setting --demo_batch_size is {result.demo_batch_size}; it must be '
        f'smaller than batch_size, {result.batch_size}.'
      )
    return result

  def complete(self, time_limit: int, num_envs: int) -> 'Settings':
    """Return the settings of an agent for an environment.

    Args:
      time_limit: Steps per episode of the environment. It determines the
        discount factor even if `T` differs.
      num_envs: Number of environments of this rank.

    Raises:
      UsageError: If episodes have less than two steps, or the replay is too
        small for an episode of each environment.
    """
    if time_limit < 2:
      raise errors.UsageError(
        f'The time limit of the environment is {time_limit}; HER needs '
        'episodes of at least 2 steps.'
      )
    least = num_envs * (self.T or time_limit)
    if self.buffer_size < least:
      raise errors.UsageError(
        f'Setting --buffer_size is {self.buffer_size}; it must be at least '
        f'{least}, for an episode of each environment.'
      )
    return self.model_copy(
      update={
        'T': self.T or time_limit,
        'gamma': 1.0 - 1.0 / time_limit if self.gamma is None else self.gamma,
        'rollout_batch_size': num_envs,
        'bc_loss': 1 if self.demo_file else self.bc_loss,
      }
    )

  def to_plain(self) -> dict[str, Any]:
    """Return all values as plain data, with the names of objects."""
    values = dict(self).items()
    return {k: references.name_of(v) if callable(v) else v for k, v in values}

  @property
  def action_limit(self) -> float | np.ndarray:
    """Maximum magnitude of actions, a number or [size]."""
    return np.array(self.max_u) if isinstance(self.max_u, list) else self.max_u

  @property
  def return_limit(self) -> float:
    """Maximum magnitude of values; rewards are between -1 and 0."""
    if isinstance(self.clip_return, bool):
      assert self.gamma is not None, 'incomplete settings'
      return 1.0 / (1.0 - self.gamma) if self.clip_return else np.inf
    return np.inf if self.clip_return is None else self.clip_return


# Settings for all environments, and for single ones by their names without
# version. Users of the original change these.
DEFAULT_PARAMS: dict[str, Any] = Params.defaults()
DEFAULT_ENV_PARAMS: dict[str, dict[str, Any]] = {'FetchReach': {'n_cycles': 10}}


def parse_args(argv: Sequence[str]) -> tuple[types.SimpleNamespace, list[str]]:
  """Split the command line into known flags and the rest.

  `--logdir`, used by the other systems, is the same as `--log_path`.

  Args:
    argv: List of arguments, starting with the program name.

  Returns:
    Tuple of an object with an attribute per flag, and the remaining arguments
    in order.

  Raises:
    UsageError: If the value of a flag is not allowed.
  """
  words = [re.sub(r'^--logdir(?=$|=)', '--log_path', x) for x in argv[1:]]
  return flags.parse_known('her-train', Flags, words)


def parse_cmdline_kwargs(unknown: Sequence[str]) -> dict[str, Any]:
  """Parse further settings of the form `--name=value` or `--name value`.

  Parses values as Python literals or YAML if possible. As in the original,
  names without a value and words without a name are dropped.
  """
  return {
    name: schema.parse_value(text)
    for name, text in _split(unknown)
    if name and text is not None
  }


def _split(words: Sequence[str]) -> Iterator[tuple[str, str | None]]:
  """Yield pairs of name and value; None or '' for what is missing."""
  name = ''
  for word in [*words, '--']:
    if word.startswith('--'):
      if name:
        yield name, None
      name, equals, text = word[2:].partition('=')
      if equals:
        yield name, text
        name = ''
    else:
      yield name, word
      name = ''


def merge(given: Mapping[str, Any]) -> dict[str, Any]:
  """Merge the settings of a command line into one mapping.

  Args:
    given: Result of `parse_cmdline_kwargs`. Individual settings override those
      in the mappings `params` and `override_params`.

  Raises:
    UsageError: If one of these is not a mapping, or the number of environments
      is given as a setting.
  """
  result = dict(given)
  for name in ('override_params', 'params'):
    values = result.pop(name, None) or {}
    if not isinstance(values, dict):
      raise errors.UsageError(
        f'Flag --{name} is {values!r}; give a mapping such as '
        "'{n_cycles: 10}'."
      )
    result = {**values, **result}
  if 'rollout_batch_size' in result:
    raise errors.UsageError('Use --num_env instead of rollout_batch_size.')
  if own := own_network(result.get('network')):
    del result['network']
    result.update(own)
  return result


def own_network(network: Any) -> dict[str, Any]:
  """Return a custom network as a setting; an empty dict for other values."""
  is_own = callable(network) or ':' in str(network)
  return {'network_class': network} if is_own else {}


def from_words(
  args: types.SimpleNamespace, unknown: Sequence[str]
) -> dict[str, Any]:
  """Return the settings in a command line, see `parse_args`.

  Raises:
    UsageError: If a setting is unknown or its value is missing or not allowed.
  """
  for name, text in _split(unknown):
    if not name or text is None:
      raise errors.UsageError(
        f'Cannot read {f"--{name}" if name else text}; write settings as '
        '--name=value.'
      )
  own = own_network(args.network)
  given = merge({**parse_cmdline_kwargs(unknown), **own})
  Settings.make(args.env, given)
  return given


def describe(argv: Sequence[str] = ()) -> str:
  """Return the text of `--help`: all flags, settings and their values.

  Args:
    argv: Rest of the command line, on which default values depend.
  """
  env, values = Flags.default('env'), None
  # Help does not depend on whether the rest is right.
  with contextlib.suppress(errors.UsageError):
    args, unknown = parse_args(['', *argv])
    env = args.env
    values = Settings.make(env, from_words(args, unknown))
  values = values or Settings.make(env, {})
  if limit := envs.find_time_limit(env):
    values = values.complete(limit, 1)
  names = [x for x in Settings.names() if x not in _DERIVED]
  lines = [
    *flags.describe(Flags),
    '\nsettings (--name=value, or several as --params={name: value}):',
    f'name, value for {env}, meaning',
    *Settings.table(names, dict(values)),
    '\nPickles (demo_file, load_path) can run arbitrary code; use only files',
    'you trust. Checkpoints are plain data.',
  ]
  return '\n'.join(lines)


def common_arg_parser() -> argparse.ArgumentParser:
  """Return an argparse parser of all flags, as the original has it."""
  parser = argparse.ArgumentParser(allow_abbrev=False)
  for name in Flags.names():
    kind, default = Flags.base(name), Flags.default(name)
    special = {bool: 'store_true', list: 'append'}
    more = {'action': special[kind]} if kind in special else {'type': kind}
    help_ = Flags.meaning(name)
    parser.add_argument(f'--{name}', default=default, help=help_, **more)
  return parser
