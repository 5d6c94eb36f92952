"""Several environments as one, in this process or in others.

Does not import TensorFlow. Environments that end an episode are reset in the
same step, which returns the first observation of the next episode; the last one
is in the info as `terminal_observation`.
"""

import contextlib
import functools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from agents.envs import episode_log, images, spaces, vector
from agents.envs.wrappers import Guard, Wrapper
from agents.run import errors, mpi
from baselines_her import envs

Makers = Iterable[Callable[[], Any]]
# Key of the info with the last observation of an episode.
LAST = 'terminal_observation'
_MPI_PREFIXES = ('OMPI_', 'PMIX_', 'PMI_', 'PRTE_')


class VecEnv(vector.Vector):
  """Several environments as one, in this process or spread over others.

  Args:
    env_fns: List of functions that return an environment; for other processes,
      cloudpickle must be able to pickle them.
    num_workers: Number of processes; 0 for this one, None for one per core.
    native: Whether observations keep the dtype that the environments return
      instead of that of their spaces.

  Attributes:
    num_envs: Number of environments.
    observation_space: Dict space of one environment.
    action_space: Action space of one environment.
    specs: List of objects with `id` and `max_episode_steps`.
    spec: The first of them.
  """

  def __init__(
    self, env_fns: Makers, num_workers: int | None = 0, native: bool = False
  ):
    with _without_mpi():
      group = functools.partial(_Group, native=native)
      super().__init__(group, env_fns, num_workers)
    self.num_envs = len(self)
    self.observation_space, self.action_space = self.get('spaces')[0][0]
    self.specs = vector.join(self.get('specs'))
    self.spec = self.specs[0]
    self._promise: Any = None

  @property
  def unwrapped(self) -> 'VecEnv':
    """This vector; that of a wrapper is the wrapped one."""
    return self

  def step_async(self, actions: Any) -> None:
    """Start a step of all environments, see `step`."""
    # A single environment also accepts an unbatched action.
    shape = self.num_envs, *self.action_space.shape
    self._promise = self.send('step', np.asarray(actions).reshape(shape))

  def step_wait(self) -> tuple:
    """Wait for a step and return its result, see `step`."""
    return vector.join_transitions(self._promise())

  def step(self, actions: Any) -> tuple:
    """Step all environments.

    Args:
      actions: Array [environments, size].

    Returns:
      Tuple of a dict of observations [environments, size], rewards float32
      and done flags [environments], and a list of dicts.
    """
    self.step_async(actions)
    return self.step_wait()

  def get_images(self) -> list[np.ndarray]:
    """Return images uint8 [height, width, 3] of all environments."""
    rendered = self.each('render', ['rgb_array'] * self.num_envs)
    return [images.for_people(x, self.spec.id) for x in rendered]

  def render(self, mode: str = 'human') -> np.ndarray | None:
    """Return a mosaic uint8 [height, width, 3] of all environments."""
    image = _tile(self.get_images())
    return image if mode == 'rgb_array' else None

  def get_states(self) -> list | None:
    """Return the states that determine future episodes, for checkpoints.

    None if environments have failed in a process of their own.
    """
    return self.find_states('get_state')

  def set_states(self, states: list | None) -> None:
    """Restore the result of `get_states`; reset the environments first."""
    if states is not None:
      self.each('set_state', states)


class DummyVecEnv(VecEnv):
  """Environments that step one after the other in this process."""


class SubprocVecEnv(VecEnv):
  """Environments in other processes, at most one process per core.

  As in the original, observations keep the dtype that the environments return,
  unlike those of `DummyVecEnv`.

  Args:
    env_fns: See `VecEnv`.
    spaces: Unused, as in the original.
    context: Unused; processes are always new ones (`spawn`).
    in_series: Minimum number of environments of a process.
    num_workers: See `VecEnv`; by default one per core.
    native: See `VecEnv`.
  """

  def __init__(
    self,
    env_fns: Makers,
    spaces: Any = None,
    context: str = 'spawn',
    in_series: int = 1,
    *,
    num_workers: int | None = None,
    native: bool = True,
  ):
    env_fns = list(env_fns)
    if in_series > 1:
      num_workers = max(1, len(env_fns) // in_series)
    super().__init__(env_fns, num_workers, native)


class VecEnvWrapper(Wrapper):
  """Base of wrappers of a vector, which forwards everything to it.

  Args:
    venv: Vector of environments.
    observation_space: Space to show instead of that of the vector.
    action_space: Space to show instead of that of the vector.
  """

  def __init__(
    self, venv: Any, observation_space: Any = None, action_space: Any = None
  ):
    super().__init__(venv)
    self.venv = venv
    if observation_space is None:
      observation_space = venv.observation_space
    if action_space is None:
      action_space = venv.action_space
    self.observation_space = observation_space
    self.action_space = action_space

  def step_async(self, actions: Any) -> None:
    self.venv.step_async(actions)

  def step_wait(self) -> tuple:
    return self.venv.step_wait()

  def step(self, actions: Any) -> tuple:
    self.step_async(actions)
    return self.step_wait()


class _Group(vector.Group):
  """Environments of one process; see `VecEnv`."""

  def __init__(self, env_fns, native):
    super().__init__(env_fns)
    self._parts = parts = dict(self.envs[0].observation_space.spaces)
    self._dtypes = {k: None if native else x.dtype for k, x in parts.items()}

  @property
  def specs(self):
    return [env.spec for env in self.envs]

  def step(self, actions):
    rewards = np.zeros(len(self.envs), np.float32)
    dones = np.zeros(len(self.envs), bool)
    observations, infos = [], []
    for index, (env, action) in enumerate(zip(self.envs, actions)):
      obs, rewards[index], dones[index], info = env.step(action)
      if dones[index]:
        last = self.stack([obs])
        # `reset` may change arrays of the environment.
        info = {
          k: v.copy() if isinstance(v, np.ndarray) else v
          for k, v in info.items()
        }
        info[LAST] = {key: last[key][0] for key in last}
        obs = env.reset()
      observations.append(obs)
      infos.append(info)
    return self.stack(observations), rewards, dones, infos

  def stack(self, observations):
    for key, part in self._parts.items():
      for observation in observations:
        if np.shape(observation[key]) != part.shape:
          raise errors.EnvError(
            f'Environment {self.specs[0].id} returned {key} of shape '
            f'{np.shape(observation[key])}, but its observation_space has '
            f'shape {part.shape}; make them match.'
          )
    return vector.stack(observations, self._dtypes)


def make_vec_env(
  env_id: str,
  env_type: str,
  num_env: int,
  seed: int | None,
  wrapper_kwargs: Mapping[str, Any] | None = None,
  env_kwargs: Mapping[str, Any] | None = None,
  start_index: int = 0,
  reward_scale: float = 1.0,
  flatten_dict_observations: bool = False,
  gamestate: Any = None,
  initializer: Callable[..., Any] | None = None,
  force_dummy: bool = False,
  *,
  render: str | None = None,
  folder: str | None = None,
  time_limit: int | None = None,
) -> VecEnv:
  """Create a vector of monitored environments, in processes if several.

  Args:
    env_id: See `make_env`.
    env_type: See `make_env`.
    num_env: Number of environments.
    seed: Seed; environment i of rank r uses `seed + 10000 r + i`, as in the
      original. None for random seeds.
    wrapper_kwargs: Unused.
    env_kwargs: See `make_env`.
    start_index: Number of the first environment.
    reward_scale: Factor of the rewards.
    flatten_dict_observations: See `make_env`.
    gamestate: Unused.
    initializer: See `make_env`; only called in other processes.
    force_dummy: Whether all step in this process.
    render: Mode of `render`, `rgb_array` for images or `human` for windows,
      which need a process even for one environment.
    folder: Folder for the returns of episodes; that of the logger by default.
      Without a folder, they are not written.
    time_limit: Number of steps of an episode; by default that of the id.

  Raises:
    UsageError: See `make_env`.
  """
  _check_kind(env_type, flatten_dict_observations)
  rank = mpi.world().Get_rank()
  if folder is None:
    from baselines_her import logger

    folder = logger.get_dir()
  here = force_dummy or (num_env == 1 and not render)
  makers = [
    functools.partial(
      make_env,
      env_id,
      env_type,
      rank,
      start_index + index,
      None if seed is None else seed + 10000 * rank,
      reward_scale,
      env_kwargs=env_kwargs,
      logger_dir=folder,
      initializer=None if here else initializer,
      render_mode=render,
      time_limit=time_limit,
    )
    for index in range(num_env)
  ]
  if here:
    return DummyVecEnv(makers)
  # Numbers do not depend on whether a video is recorded.
  return SubprocVecEnv(makers, native=num_env > 1)


def make_env(
  env_id: str,
  env_type: str,
  mpi_rank: int = 0,
  subrank: int = 0,
  seed: int | None = None,
  reward_scale: float = 1.0,
  gamestate: Any = None,
  flatten_dict_observations: bool = False,
  wrapper_kwargs: Mapping[str, Any] | None = None,
  env_kwargs: Mapping[str, Any] | None = None,
  logger_dir: str | None = None,
  initializer: Callable[..., Any] | None = None,
  *,
  render_mode: str | None = None,
  time_limit: int | None = None,
) -> 'ClipAndScale':
  """Create one environment of `make_vec_env`, usually in another process.

  Args:
    env_id: Value that `envs.make` accepts, such as an id.
    env_type: Ignored, except for types without goals.
    mpi_rank: Rank of the process, in the name of the file of returns.
    subrank: Number of the environment, in the name of this file and added to
      the seed.
    seed: Seed, None to leave the environment unseeded.
    reward_scale: Factor of the rewards.
    gamestate: Unused, of other types of environments in the original.
    flatten_dict_observations: Must be False, as goals need dictionaries.
    wrapper_kwargs: Unused, as `gamestate`.
    env_kwargs: Arguments of the environment.
    logger_dir: Folder for the returns of episodes; None to write none.
    initializer: Function to call first, with `mpi_rank` and `subrank`.
    render_mode: Mode of `render`, None for no images.
    time_limit: Number of steps of an episode; by default that of the id.

  Raises:
    UsageError: If HER cannot use such environments; also see `envs.make`.
  """
  _check_kind(env_type, flatten_dict_observations)
  if initializer is not None:
    initializer(mpi_rank=mpi_rank, subrank=subrank)
  env = envs.make(env_id, render_mode, time_limit, env_kwargs)
  if seed is not None:
    env.seed(seed + subrank)
  guarded = Guard(env, env.spec.id)
  path = logger_dir and os.path.join(logger_dir, f'{mpi_rank}.{subrank}')
  return ClipAndScale(episode_log.Monitor(guarded, path), reward_scale)


def _check_kind(env_type, flatten):
  """Refuse what Baselines has for other algorithms than HER."""
  if env_type in ('atari', 'retro'):
    raise errors.UsageError(
      f'env_type is {env_type!r}, but only goal environments are supported; '
      'see docs/coming-from.md.'
    )
  if flatten:
    raise errors.UsageError(
      'flatten_dict_observations is True, but HER needs the dictionaries; '
      'pass False.'
    )


class ClipAndScale(Wrapper):
  """Fit actions to their space, with 0 for NaN, and scale rewards.

  Args:
    env: Environment.
    reward_scale: Factor of the rewards.
  """

  def __init__(self, env: Any, reward_scale: float = 1.0):
    super().__init__(env)
    self._fit = spaces.fitting(env.action_space)
    self._reward_scale = reward_scale

  def step(self, action: np.ndarray) -> tuple:
    if np.isnan(np.vdot(action, action)):
      action = np.nan_to_num(action)
    obs, reward, done, info = self._env.step(self._fit(action))
    return obs, reward * self._reward_scale, done, info


def _tile(images):
  """Arrange images of equal size in a roughly square mosaic."""
  rows = int(np.ceil(np.sqrt(len(images))))
  columns = int(np.ceil(len(images) / rows))
  blank = [np.zeros_like(images[0])] * (rows * columns - len(images))
  tiles = [*images, *blank]
  lines = [tiles[x : x + columns] for x in range(0, len(tiles), columns)]
  return np.vstack([np.hstack(line) for line in lines])


@contextlib.contextmanager
def _without_mpi() -> Iterator[None]:
  """Hide the launcher's variables from processes started inside."""
  names = [x for x in os.environ if x.startswith(_MPI_PREFIXES)]
  hidden = {name: os.environ.pop(name) for name in names}
  try:
    yield
  finally:
    os.environ.update(hidden)
