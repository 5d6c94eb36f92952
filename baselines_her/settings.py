"""All settings of HER; does not import TensorFlow.

Settings are declared here, validated by `Settings.make`, and then read as
attributes.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pydantic
from annotated_types import Ge, Gt

from agents.run import errors, files, folder, references, schema
from agents.run.schema import (
  Amount,
  Count,
  FiniteAmount,
  Fraction,
  Number,
  Positive,
  Rate,
  Size,
  Whole,
  described,
  setting,
)
from baselines_her import envs
from baselines_her.her_sampler import STRATEGIES


def _to_limits(value: Any) -> Any:
  return value.tolist() if isinstance(value, np.ndarray) else value


def _to_switch(value: Any) -> Any:
  if isinstance(value, (float, np.floating)):
    raise ValueError('this is a limit')
  return value


# 0 and 1 are also accepted as switches, as in the original.
Flag = Annotated[bool, described('True or False')]
Switch = Annotated[bool, pydantic.AfterValidator(int), described('0 or 1')]
# Infinite where nothing is clipped.
Bound = Annotated[Number, Gt(0)]
Limits = Annotated[
  FiniteAmount | list[FiniteAmount],
  pydantic.BeforeValidator(_to_limits),
  described('a number of at least 0 or a list of them'),
]
Limit = Annotated[
  Annotated[bool, pydantic.BeforeValidator(_to_switch)] | Bound | None,
  pydantic.Field(union_mode='left_to_right'),
  described('True, False or a positive number'),
]
File = Annotated[str, pydantic.BeforeValidator(str)]

# Environment of a new run that names none.
ENV = 'FetchReach-v1'
# Format of what is stored with a run.
VERSION = 1
NETWORK = 'baselines_her.actor_critic:ActorCritic'
_fixed = functools.partial(setting, fixed='fixed for a run')
# Settings without effect: why, whether it is so, and their names.
_UNUSED: tuple[tuple[str, Callable[['Settings'], bool], list[str]], ...] = (
  (
    'without demo_file',
    lambda x: not x.demo_file,
    'q_filter num_demo demo_batch_size prm_loss_weight aux_loss_weight'.split(),
  ),
  (
    'with replay_strategy=none',
    lambda x: x.replay_strategy == 'none',
    ['replay_k'],
  ),
)
# Settings that follow from others, which `--help` leaves out.
_DERIVED = ('rollout_batch_size', 'network_args')


class Agent(schema.Settings):
  """Settings that `learn` accepts only in `override_params`."""

  called: ClassVar[str] = 'Setting --{}'

  max_u: Limits = _fixed(
    1.0, 'limit of actions; default that of the action space, if finite'
  )
  layers: Count = _fixed(3, 'number of hidden layers')
  hidden: Size = _fixed(256, 'units per hidden layer')
  network_class: schema.one_of([NETWORK]) = _fixed(  # type: ignore[valid-type]
    NETWORK, 'class of actor and critic'
  )
  Q_lr: Rate = setting(0.001, 'learning rate of the critic')
  pi_lr: Rate = setting(0.001, 'learning rate of the actor')
  buffer_size: Positive = _fixed(int(1e6), 'transitions kept in the replay')
  polyak: Fraction = setting(0.95, 'share of the old weights in the target')
  action_l2: Number = setting(1.0, 'penalty on the mean squared action')
  clip_obs: Bound = _fixed(200.0, 'limit of raw observations and goals')
  scope: Annotated[str, pydantic.StringConstraints(pattern=r'^\w+$')] = _fixed(
    'ddpg', 'variable scope'
  )
  relative_goals: Flag = _fixed(False, 'goals relative to achieved goals')
  batch_size: Size = setting(256, 'transitions per update')
  norm_eps: Number = _fixed(0.01, 'lower bound of the standard deviation')
  norm_clip: Bound = _fixed(5, 'limit of normalized inputs')


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
    bases = {envs.base_name(k): v for k, v in DEFAULT_ENV_PARAMS.items()}
    of_base = bases.get(envs.base_name(env_name), {})
    own = DEFAULT_ENV_PARAMS.get(env_name, of_base)
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
    result = cls.read(values)
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
      raise errors.UsageError(
        'Setting --bc_loss needs --demo_file; add it, or omit --bc_loss.'
      )
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
      UsageError: If the replay is too small for an episode of each environment.
    """
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

  def explain_unused(self) -> list[str]:
    """Return sentences about settings that others leave without effect."""
    found = []
    for why, is_so, names in _UNUSED:
      changed = [x for x in names if getattr(self, x) != self.default(x)]
      if changed and is_so(self):
        what = f'{", ".join(changed)} {"have" if changed[1:] else "has"}'
        found.append(f'{what} no effect {why}.')
    return found

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


# Settings for all environments, and for single ones by their ids, which hold
# for their other versions, too. Users of the original change these.
DEFAULT_PARAMS: dict[str, Any] = Params.defaults()
DEFAULT_ENV_PARAMS: dict[str, dict[str, Any]] = {
  'FetchReach-v1': {'n_cycles': 10}
}


def merge(given: Mapping[str, Any]) -> dict[str, Any]:
  """Return given settings as one mapping of names of `Settings`.

  Args:
    given: Values by name. Individual settings override those in the mappings
      `params` and `override_params`; `network` may be one of the user's own.

  Raises:
    UsageError: If one of these is not a mapping, a setting is unknown, or the
      number of environments is given as a setting.
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
  # Names only: with the environment known, `settle` checks the values.
  Settings.check({x: None for x in result if x not in Settings.names()})
  return result


def settle(
  env_name: str | None,
  seed: int | None,
  given: Mapping[str, Any],
  run: folder.Run | None = None,
  trust: references.Trust = references.NOTHING,
  usual: Mapping[str, Any] | None = None,
) -> tuple[dict[str, Any], Settings, list[str]]:
  """Determine the settings of a new or continued training.

  For a continued run, given settings take effect if they may change; all
  others keep their values.

  Args:
    env_name: Name of the environment; that of the run by default.
    seed: Seed; that of the run by default.
    given: Settings by name.
    run: Run to continue, if it has settings; None for a new one.
    trust: Trust in names that the run may contain.
    usual: Defaults of a new run that suit its environment, see `config.Task`.

  Returns:
    Tuple of the data to store with the run, the settings, and sentences that
    describe the changes.

  Raises:
    UsageError: If a setting is not valid or does not fit the run.
  """
  old = (run and run.settings) or {}
  chosen = env_name or old.get('env_name') or ENV
  stored = {k: v for k, v in old.items() if k in Settings.names()}
  usual = {} if old else usual or {}
  values = Settings.make(chosen, {**usual, **stored, **given})
  own = {'version': VERSION, 'env_name': chosen, 'seed': seed}
  params = {**own, **values.to_plain()}
  for name in ('demo_file', 'load_path'):
    if params[name]:
      params[name] = files.absolute(params[name])
  if not (run and run.folder and old):
    return params, values, []
  if seed is None:
    params['seed'] = old['seed']
  names = {'env_name', 'seed', *given}
  if 'lr' in given:
    names |= {'Q_lr', 'pi_lr'}
  named = {name: params[name] for name in names}
  fixed = {x: Settings.fixed(x) for x in stored}
  fixed.update(env_name='fixed for a run', seed='the random state continues')
  changed = folder.find_changes(run.folder, old, named, fixed.get)
  lines = [f'{name}: {x} -> {y}' for name, (x, y) in changed.items()]
  default = Settings.usual(chosen)
  kept = {k: v for k, v in stored.items() if k not in named and v != default[k]}
  if kept:
    words = ', '.join(f'{name}: {value}' for name, value in kept.items())
    lines.append(f'Settings kept from the run: {words}.')
  if env_name is None:
    references.check_env_id(chosen, trust)
  if 'network_class' in kept:
    references.resolve(kept['network_class'], trust)
  if 'demo_file' in kept:
    references.check_pickle(kept['demo_file'], trust)
  # The checkpoint has the variables.
  values.load_path = None
  return params, values, lines


def own_network(network: Any) -> dict[str, Any]:
  """Return a custom network as a setting; an empty dict for other values."""
  is_own = callable(network) or ':' in str(network)
  return {'network_class': network} if is_own else {}


def describe(env: str, values: Settings | None = None) -> list[str]:
  """Return the lines of `--help` about settings and their values.

  Args:
    env: Id of the environment, on which default values depend.
    values: Settings of the rest of the command line; the defaults if omitted.
  """
  values = values or Settings.make(env, {})
  if limit := envs.find_time_limit(env):
    values = values.complete(limit, 1)
  names = [x for x in Settings.names() if x not in _DERIVED]
  return [
    '\nsettings (--name=value, or several as --params={name: value}):',
    f'name, value for {env}, meaning',
    *Settings.table(names, dict(values)),
    '\nPickles (demo_file, load_path) can run arbitrary code; use only files',
    'you trust. Checkpoints are plain data.',
  ]
