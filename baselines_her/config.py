"""Settings: defaults, what follows from the environment, and the agent."""

import copy
import json
import math
import os
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from agents import utility
from agents.envs import probe
from agents.run import errors, files, references
from agents.run import folder as run_folder
from baselines_her import declarations, envs, logger

if TYPE_CHECKING:
  from baselines_her.ddpg import DDPG
  from baselines_her.her_sampler import HindsightSampler
  from baselines_her.replay_buffer import ReplayBuffer

# Settings for all environments.
DEFAULT_PARAMS: dict[str, Any] = declarations.Settings.defaults()

# Settings for single environments, by their names without version.
DEFAULT_ENV_PARAMS: dict[str, dict[str, Any]] = {
  'FetchReach': {'n_cycles': 10},
}

_PARAMS_FILE = 'params.json'

# Arguments of `her.learn` that a run keeps, as are all that are not named
# here, such as `gamma`.
_KEPT_ARGUMENTS = {
  'seed': None,
  'clip_return': True,
  'demo_file': None,
  'load_path': None,
}
# What changes nothing but what is written.
_MAY_CHANGE = ('policy_save_interval',)

# One more environment per maker, to ask for sizes and rewards.
_cached: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def define_params(
  env_name: str,
  replay_strategy: str,
  override_params: dict[str, Any] | None,
) -> dict[str, Any]:
  """Define the settings of a run, before those that the environment decides.

  Args:
    env_name: Id of the environment as the user gave it.
    replay_strategy: See `baselines_her.her_sampler`.
    override_params: Dict of settings that differ from the defaults, or None.

  Returns:
    New dict.
  """
  params = copy.deepcopy(DEFAULT_PARAMS)
  params['env_name'] = env_name
  params['replay_strategy'] = replay_strategy
  params.update(DEFAULT_ENV_PARAMS.get(envs.base_name(env_name), {}))
  params.update(override_params or {})
  return params


def run_settings(
  env_name: str,
  replay_strategy: str = DEFAULT_PARAMS['replay_strategy'],
  override_params: dict[str, Any] | None = None,
  **arguments: Any,
) -> dict[str, Any]:
  """Return all that a run keeps when it is continued.

  Args:
    env_name: Id of the environment as the user gave it.
    replay_strategy: See `baselines_her.her_sampler`.
    override_params: Dict of settings that differ from the defaults, or None.
    **arguments: Further arguments of `her.learn`; those that may change are
      ignored.

  Returns:
    Dict of plain data: settings of `define_params`, and below `learn` the
    arguments.
  """
  params = define_params(env_name, replay_strategy, override_params)
  arguments = {**_KEPT_ARGUMENTS, **arguments}
  arguments['clip_return'] = bool(arguments['clip_return'])
  for name in ('demo_file', 'load_path'):
    if arguments[name] is not None:
      path = os.path.expanduser(arguments[name])
      arguments[name] = os.path.abspath(path)
  # Users of the library may pass on objects, which cannot be compared.
  params['learn'] = {
    name: value
    for name, value in arguments.items()
    if name not in _MAY_CHANGE and isinstance(value, (bool, int, float, str))
  }
  return params


def write_params(params: dict, folder: str) -> None:
  """Store the settings of a run in its `params.json`.

  Args:
    params: Dict of `run_settings`.
    folder: Folder of the log.
  """
  with files.atomic_write(os.path.join(folder, _PARAMS_FILE)) as file_:
    json.dump(params, file_)


def check_params(params: dict, folder: str) -> None:
  """Make sure that a run that is continued has the settings it began with.

  Args:
    params: Dict of `run_settings`.
    folder: Folder of the log.

  Raises:
    UsageError: Naming the settings that differ.
  """
  if not run_folder.has(folder, _PARAMS_FILE):
    return
  with open(os.path.join(folder, _PARAMS_FILE)) as file_:
    before = json.load(file_)
  now = json.loads(json.dumps(params))
  arguments = now.pop('learn')
  # Older runs did not store them.
  arguments = before.pop('learn', arguments), arguments
  utility.check_same(
    folder,
    {**utility.compare(before, now), **utility.compare(*arguments)},
    'Continue it with its own settings, or choose another --log_path.',
  )


def cached_make_env(make_env: Callable[[], Any]) -> Any:
  """Make an environment once; it is never seeded, never trained in."""
  if make_env not in _cached:
    _cached[make_env] = make_env()
  return _cached[make_env]


def prepare_params(kwargs: dict[str, Any]) -> dict[str, Any]:
  """Add `make_env`, `T`, `gamma` and `ddpg_params` to the settings.

  Settings of the agent move to `ddpg_params` and to a name with underscore,
  so that only what is passed here has an effect on them.

  Args:
    kwargs: Dict with all settings of `DEFAULT_PARAMS` and `env_name`; `lr`
      stands for both learning rates. A `make_env` that is in it is kept.

  Returns:
    The same dict.
  """
  env_name = kwargs['env_name']

  def make_env(subrank: int | None = None) -> Any:
    return envs.make(env_name)

  make_env = kwargs.setdefault('make_env', make_env)
  kwargs['T'] = cached_make_env(make_env)._max_episode_steps
  if isinstance(kwargs['max_u'], list):
    kwargs['max_u'] = np.array(kwargs['max_u'])
  kwargs['gamma'] = 1.0 - 1.0 / kwargs['T']
  if 'lr' in kwargs:
    kwargs['pi_lr'] = kwargs['Q_lr'] = kwargs.pop('lr')
  ddpg_params = {}
  for name in declarations.Agent.names():
    ddpg_params[name] = kwargs['_' + name] = kwargs.pop(name)
  kwargs['ddpg_params'] = ddpg_params
  return kwargs


def log_params(params: dict[str, Any]) -> None:
  """Log one line per setting."""
  for key in sorted(params):
    logger.info(f'{key}: {params[key]}')


def configure_dims(params: dict[str, Any]) -> dict[str, int]:
  """Return `find_dims` of the environment that the settings make."""
  return find_dims(cached_make_env(params['make_env']))


def find_dims(env: Any) -> dict[str, int]:
  """Return sizes of observation `o`, action `u`, goal `g` and of `info_*`.

  Raises:
    EnvError: If a step shows a mistake of the environment.
  """
  shapes = probe.measure(env, with_info=True)['shapes']
  dims = {
    'o': shapes['observation'][0],
    'u': shapes['action'][0],
    'g': shapes['desired_goal'][0],
  }
  for key, shape in shapes.items():
    if key.startswith('info_'):
      dims[key] = max(1, math.prod(shape))
  return dims


def configure_her(params: dict[str, Any]) -> 'HindsightSampler':
  """Return a sampler of hindsight transitions with the task's rewards."""
  from baselines_her import her_sampler

  for name in ('replay_strategy', 'replay_k'):
    params['_' + name] = params.pop(name)
  return her_sampler.make_sample_her_transitions(
    params['_replay_strategy'],
    params['_replay_k'],
    find_reward(params['make_env']),
  )


def find_reward(make_env: Callable[[], Any]) -> Callable[..., np.ndarray]:
  """Return the function of a task from `ag_2`, `g` and `info` to rewards."""
  env = cached_make_env(make_env)

  def reward_fun(
    ag_2: np.ndarray, g: np.ndarray, info: dict[str, np.ndarray]
  ) -> np.ndarray:
    return env.compute_reward(ag_2, g, info)

  return reward_fun


@references.nameable
def simple_goal_subtract(a: np.ndarray, b: np.ndarray) -> np.ndarray:
  """Return the difference of two goals of the same shape."""
  assert a.shape == b.shape, (a.shape, b.shape)
  return a - b


def return_limit(gamma: float, clip_return: bool) -> float:
  """Return the largest magnitude of returns when rewards are between -1 and 0.

  Args:
    gamma: Discount factor.
    clip_return: Whether values are limited at all.

  Raises:
    UsageError: If there is no discounting, so that nothing limits returns.
  """
  if not clip_return:
    return np.inf
  if gamma == 1:
    # The original divides by zero. Only the user can decide not to clip.
    raise errors.UsageError(
      'Setting --gamma is 1, for which returns have no limit to clip them at; '
      'add --clip_return=0 or give less than 1.'
    )
  return 1.0 / (1.0 - gamma)


def configure_ddpg(
  dims: dict[str, int],
  params: dict[str, Any],
  reuse: bool = False,
  use_mpi: bool = True,
  clip_return: bool = True,
  buffer: 'ReplayBuffer | None' = None,
) -> 'DDPG':
  """Create an agent from the sizes and the prepared settings.

  Args:
    dims: Dict of `configure_dims`.
    params: Dict of `prepare_params`.
    reuse: Whether the variables exist already.
    use_mpi: Stored with the policy, as in the original; has no effect.
    clip_return: Whether values are limited to what discounting allows.
    buffer: Replay to use instead of a new one, also its way to sample.

  Raises:
    UsageError: If values are to be limited without discounting.
  """
  from baselines_her import ddpg

  sample_transitions = (
    configure_her(params) if buffer is None else buffer.sample_transitions
  )
  names = *declarations.Imitation.names(), 'T', 'rollout_batch_size', 'gamma'
  return ddpg.DDPG(
    **params['ddpg_params'],
    **{name: params[name] for name in names},
    reuse=reuse,
    use_mpi=use_mpi,
    input_dims=dict(dims),
    clip_pos_returns=True,
    clip_return=return_limit(params['gamma'], clip_return),
    subtract_goals=simple_goal_subtract,
    sample_transitions=sample_transitions,
    info={'env_name': params['env_name']},
    buffer=buffer,
  )
