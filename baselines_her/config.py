"""Task of a training; functions of the original's `config` module."""

import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from agents import utility
from agents.envs import adapters, contract, registry, spaces
from agents.run import errors, files, messages
from baselines_her import envs, her_sampler, settings
from baselines_her.util import simple_goal_subtract as simple_goal_subtract

if TYPE_CHECKING:
  from baselines_her.ddpg import DDPG

DEFAULT_PARAMS = settings.DEFAULT_PARAMS
DEFAULT_ENV_PARAMS = settings.DEFAULT_ENV_PARAMS

PARAMS_FILE = 'params.json'


class Task:
  """Properties of the environment that an agent needs.

  Args:
    env: Value that `envs.make` accepts.
    limit: Steps per episode if `env` is an id without a limit of its own.

  Attributes:
    name: Id or other name of the environment.
    time_limit: Steps per episode.
    dims: Result of `find_dims`.
    usual: Settings by name that suit the environment better than the defaults:
      `clip_pos_returns` is False if rewards can be above 0, and `max_u` is
      the limit of the action space if that is finite and not 1.
    info: Dict to store with policies: `env_name`, and `action_space` as plain
      data.
    reward_fun: Function of `ag_2`, `g` and `info` to rewards.

  Raises:
    UsageError: If the environment does not exist or is not supported.
    EnvError: If a step reveals a mistake of the environment.
  """

  def __init__(self, env: Any, limit: int | None = None):
    self.name = adapters.name_of(env)
    if isinstance(env, str) and envs.find_time_limit(env):
      limit = None
    # Trainings say themselves which version of an id they use.
    with messages.muted(registry.__name__):
      env = envs.make(env, time_limit=limit)
    self.time_limit = env._max_episode_steps
    observ, reward, info = contract.try_step(env)
    self.dims = _measure(env, observ, info)
    self.reward_fun = find_reward(env)
    positive = contract.has_positive_rewards(
      env.compute_reward, observ, info, self.name
    )
    self.usual: dict[str, Any] = _find_limits(env.action_space)
    if reward > 0 or positive:
      self.usual['clip_pos_returns'] = False
    self.info = {
      'env_name': self.name,
      'action_space': spaces.to_plain(env.action_space),
    }
    self._tells_success = contract.find_success(info) is not None

  def make_sampler(
    self, values: settings.Settings
  ) -> her_sampler.HindsightSampler:
    """Return a sampler of transitions with the rewards of the task."""
    return her_sampler.make_sample_her_transitions(
      values.replay_strategy, values.replay_k, self.reward_fun
    )

  def notes(self, values: settings.Settings) -> list[str]:
    """Return sentences for the user about the environment and the settings.

    Args:
      values: Settings of the training.
    """
    found = []
    limits = self.usual.get('max_u', values.max_u)
    if limits != values.max_u:
      found.append(
        f'Actions of {self.name} go up to {limits}, but max_u is '
        f'{values.max_u}.'
      )
    positive = 'clip_pos_returns' in self.usual
    if positive and values.clip_pos_returns:
      found.append(
        f'Rewards of {self.name} can be above 0, but clip_pos_returns=True '
        'limits values to 0, so that HER learns nothing from them; set '
        'clip_pos_returns=False.'
      )
    elif positive:
      found.append(
        f'Rewards of {self.name} can be above 0: clip_pos_returns=False.'
      )
    if not self._tells_success:
      found.append(
        "The first info has no 'is_success'; success rates are 0, unless that "
        'of the last step has it.'
      )
    return found + values.explain_unused()


def find_dims(env: Any) -> dict[str, int]:
  """Return the sizes of observation `o`, action `u`, goal `g` and `info_*`.

  Raises:
    EnvError: If a step reveals a mistake of the environment.
  """
  observ, _, info = contract.try_step(env)
  return _measure(env, observ, info)


def _measure(env, observ, info):
  return {
    'o': len(observ['observation']),
    'u': env.action_space.shape[0],
    'g': len(observ['desired_goal']),
    **{f'info_{k}': v.size for k, v in contract.find_numbers(info).items()},
  }


def _find_limits(space):
  """Return `max_u` for an action space as a dict, empty for the default."""
  low, high = spaces.float_bounds(space)
  sizes = np.maximum(np.abs(low), np.abs(high))
  sizes = np.where(spaces.find_scalable(space), sizes, 1)
  # Read from text: 0.05 in 32 bits is 0.05000000074505806 in 64.
  limits = [float(str(x)) or 1.0 for x in sizes]
  if set(limits) == {1.0}:
    return {}
  return {'max_u': limits[0] if len(set(limits)) == 1 else limits}


def find_reward(env: Any) -> Callable[..., np.ndarray]:
  """Return the task's function from `ag_2`, `g` and `info` to rewards."""
  # Environments name these arguments as they like.
  return lambda ag_2, g, info: env.compute_reward(ag_2, g, info)


def write_params(params: dict[str, Any], folder: str) -> None:
  """Write the settings of a run to its `params.json`."""
  utility.save_config(params, folder, params, PARAMS_FILE)


def read_params(folder: str) -> dict[str, Any]:
  """Return the settings of a run from its `params.json`.

  Raises:
    UsageError: If they cannot be read.
  """
  check = functools.partial(_check_params, folder)
  return utility.load_config(folder, parse=check, filename=PARAMS_FILE)


def check_free(folder: str) -> None:
  """Refuse a folder with a run of baselines, whose files would be replaced.

  Raises:
    UsageError: If there is such a run.
  """
  try:
    params = files.read_plain(os.path.join(folder, PARAMS_FILE))
  except (OSError, ValueError):
    return
  if isinstance(params, dict) and params and 'version' not in params:
    raise errors.UsageError(
      f'There is a run of baselines in {folder}, which cannot be continued; '
      'choose another --log_path. Its variables can be the initial ones, with '
      '--load_path.'
    )


def _check_params(folder, params):
  # The original's runs, which can be plotted, have no version.
  version = params.get('version', settings.VERSION)
  missing = {'env_name', 'replay_strategy'} - {*params}
  if version == settings.VERSION and not missing:
    return params
  reason = f'version {version} instead of {settings.VERSION}'
  if missing:
    reason = f'{min(missing)} is missing'
  raise errors.UsageError(
    f'Cannot read the settings {os.path.join(folder, PARAMS_FILE)}: {reason}. '
    'Choose another folder.'
  )


# What follows is the original's way from settings to an agent, for those who
# call it; trainings use `Task` and `Settings`.


@functools.cache
def cached_make_env(make_env: Callable[[], Any]) -> Any:
  """Create an environment once, to find its sizes and rewards."""
  return make_env()


def prepare_params(kwargs: dict[str, Any]) -> dict[str, Any]:
  """Add `make_env`, `T`, `gamma` and `ddpg_params` to the settings.

  Args:
    kwargs: Dict with all settings of `DEFAULT_PARAMS` and `env_name`; `lr`
      sets both learning rates. An existing `make_env` is kept.

  Returns:
    The same dict; settings of the agent are in `ddpg_params`, and also under
    names with a leading underscore.
  """
  env_name = kwargs['env_name']
  make_env = kwargs.setdefault('make_env', lambda: envs.make(env_name))
  kwargs['T'] = cached_make_env(make_env)._max_episode_steps
  kwargs['gamma'] = 1.0 - 1.0 / kwargs['T']
  if 'lr' in kwargs:
    kwargs['pi_lr'] = kwargs['Q_lr'] = kwargs.pop('lr')
  kwargs['ddpg_params'] = {x: kwargs.pop(x) for x in settings.Agent.names()}
  kwargs.update({f'_{k}': v for k, v in kwargs['ddpg_params'].items()})
  return kwargs


def log_params(params: dict[str, Any], logger: Any = None) -> None:
  """Log one line per setting.

  Args:
    params: Settings.
    logger: Logger, by default that of this project.
  """
  if logger is None:
    from baselines_her import logger

  write = getattr(logger, 'detail', logger.info)
  for key in sorted(params):
    write(f'{key}: {params[key]}')


def configure_dims(params: dict[str, Any]) -> dict[str, int]:
  """Return the `find_dims` of the environment in the settings."""
  return find_dims(cached_make_env(params['make_env']))


def configure_her(params: dict[str, Any]) -> her_sampler.HindsightSampler:
  """Return a sampler of hindsight transitions with the task's rewards."""
  for name in ('replay_strategy', 'replay_k'):
    params['_' + name] = params.pop(name)
  reward_fun = find_reward(cached_make_env(params['make_env']))
  return her_sampler.make_sample_her_transitions(
    params['_replay_strategy'], params['_replay_k'], reward_fun
  )


def configure_ddpg(
  dims: dict[str, int],
  params: dict[str, Any],
  reuse: bool = False,
  use_mpi: bool = True,
  clip_return: bool = True,
) -> 'DDPG':
  """Create an agent from the sizes and the prepared settings.

  Args:
    dims: Result of `configure_dims`.
    params: Result of `prepare_params`.
    reuse: Whether the variables already exist.
    use_mpi: Has no effect.
    clip_return: Whether to limit values to the range of discounted returns.
  """
  from baselines_her import ddpg

  known = {x: params[x] for x in settings.Settings.names() if x in params}
  return ddpg.DDPG(
    **{**known, **params['ddpg_params'], 'clip_return': clip_return},
    input_dims=dims,
    reuse=reuse,
    use_mpi=use_mpi,
    sample_transitions=configure_her(params),
    info={'env_name': params['env_name']},
  )
