"""Several environments as one, in this process or in others.

Does not import TensorFlow. Environments that end an episode are reset in the
same step, which returns the first observation of the next episode.
"""

import contextlib
import functools
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from agents.envs import adapters, episode_log, guard, spaces, vector
from agents.envs.wrappers import Guard, Wrapper
from agents.run import errors, mpi
from baselines_her import envs, logger

Makers = Iterable[Callable[[], Any]]
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
    images = self.each('render', ['rgb_array'] * self.num_envs)
    for image in images:
      guard.check_image(image, self.spec.id)
    return images

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
  """

  def __init__(
    self, env_fns: Makers, num_workers: int | None = None, native: bool = True
  ):
    super().__init__(env_fns, num_workers, native)


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
      observations.append(env.reset() if dones[index] else obs)
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
  reward_scale: float = 1.0,
  flatten_dict_observations: bool = False,
  render: str | None = None,
  folder: str | None = None,
  time_limit: int | None = None,
) -> VecEnv:
  """Create a vector of monitored environments, in processes if several.

  Args:
    env_id: Id of the environment.
    env_type: Ignored; there is only `robotics`.
    num_env: Number of environments.
    seed: Seed; environment i of rank r uses `seed + 10000 r + i`. None for
      random seeds.
    reward_scale: Factor of the rewards.
    flatten_dict_observations: Must be False, because goals need dictionaries.
    render: Mode of `render`, `rgb_array` for images or `human` for windows,
      which need a process even for one environment.
    folder: Folder for the returns of episodes; that of the logger by default.
      Without a folder, they are not written.
    time_limit: Number of steps of an episode; by default that of the id.
  """
  assert not flatten_dict_observations, 'goals need dictionaries'
  env_id = adapters.portable(env_id)
  rank = mpi.world().Get_rank()
  folder = folder or logger.get_dir()
  makers = []
  for index in range(num_env):
    own_seed = None if seed is None else seed + 10000 * rank + index
    path = folder and os.path.join(folder, f'{rank}.{index}')
    task = env_id, own_seed, reward_scale, path, render, time_limit
    makers.append(functools.partial(make_env, *task))
  if num_env > 1:
    return SubprocVecEnv(makers)
  # Numbers do not depend on whether a video is recorded.
  return SubprocVecEnv(makers, native=False) if render else DummyVecEnv(makers)


def make_env(
  env_id: str,
  seed: int | None,
  reward_scale: float,
  monitor_file: str | None,
  render_mode: str | None,
  time_limit: int | None = None,
) -> 'ClipAndScale':
  """Create one environment of `make_vec_env`."""
  env = envs.make(env_id, render_mode, time_limit)
  if seed is not None:
    env.seed(seed)
  guarded = Guard(env, env.spec.id)
  return ClipAndScale(episode_log.Monitor(guarded, monitor_file), reward_scale)


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
