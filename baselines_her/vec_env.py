"""Several environments as one, in this process or in others.

Free of TensorFlow. Environments that end are reset within the same step, and
the observation returned is the first one of the next episode.
"""

import contextlib
import functools
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from agents.envs import vector
from agents.envs.wrappers import Wrapper
from agents.run import errors, mpi
from baselines_her import envs, logger, monitor

_MPI_PREFIXES = ('OMPI_', 'PMIX_', 'PMI_', 'PRTE_')


class VecEnv:
  """What all vectors of environments have in common.

  Attributes:
    num_envs: Number of environments.
    observation_space: Dict space of one environment.
    action_space: Action space of one environment.
    specs: List of objects with `id` and `max_episode_steps`.
  """

  def __init__(
    self,
    num_envs: int,
    observation_space: Any,
    action_space: Any,
    specs: list,
  ):
    self.num_envs = num_envs
    self.observation_space = observation_space
    self.action_space = action_space
    self.specs = specs

  @property
  def spec(self) -> Any:
    return self.specs[0]

  def step_async(self, actions: Any) -> None:
    """Begin a step of all environments, see `step`."""
    raise NotImplementedError

  def step_wait(self) -> tuple:
    """Return what the step has led to, see `step`."""
    raise NotImplementedError

  def get_images(self) -> list[np.ndarray]:
    """Return images uint8 [height, width, 3] of all environments."""
    raise NotImplementedError

  def close(self) -> None:
    """Close the environments."""

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

  def render(self, mode: str = 'human') -> np.ndarray | None:
    """Return a mosaic uint8 [height, width, 3] of all environments."""
    image = _tile(self.get_images())
    return image if mode == 'rgb_array' else None

  def __enter__(self):
    return self

  def __exit__(self, *unused):
    self.close()


class DummyVecEnv(vector.Group, VecEnv):
  """Environments one after the other in this process.

  Args:
    env_fns: List of functions that return an environment.
    native: Whether observations keep the type that the environments return
      instead of the one that their spaces declare.
  """

  def __init__(
    self, env_fns: Iterable[Callable[[], Any]], native: bool = False
  ):
    vector.Group.__init__(self, env_fns)
    space, action_space = self.spaces[0]
    specs = [x.spec for x in self.envs]
    VecEnv.__init__(self, len(self.envs), space, action_space, specs)
    self._dtypes = {
      key: None if native else part.dtype for key, part in space.spaces.items()
    }
    self._actions: Any = None

  def step_async(self, actions: Any) -> None:
    actions = np.asarray(actions)
    if len(actions) != self.num_envs or actions.ndim < 2:
      assert self.num_envs == 1, (actions.shape, self.num_envs)
      actions = actions.reshape(1, -1)
    self._actions = actions

  def step_wait(self) -> tuple:
    observations, infos = [], []
    rewards = np.zeros(self.num_envs, np.float32)
    dones = np.zeros(self.num_envs, bool)
    for index, (env, action) in enumerate(zip(self.envs, self._actions)):
      obs, rewards[index], dones[index], info = env.step(action)
      if dones[index]:
        obs = env.reset()
      observations.append(obs)
      infos.append(info)
    return self._stack(observations), rewards, dones, infos

  def reset(self) -> dict[str, np.ndarray]:
    """Return the first observations of new episodes of all environments."""
    return self._stack([env.reset() for env in self.envs])

  def get_images(self) -> list[np.ndarray]:
    images = [env.render(mode='rgb_array') for env in self.envs]
    for image in images:
      if np.ndim(image) != 3:
        raise errors.UsageError(
          f'render of environment {self.spec.id} returns '
          f'{_describe_image(image)}; it must return an image [height, width, '
          '3]. Correct it, or omit videos.'
        )
    return images

  def get_states(self) -> list:
    """Return what decides about future episodes, for checkpoints."""
    return [env.get_state() for env in self.envs]

  def set_states(self, states: list) -> None:
    """Undo `get_states`, after the environments were reset."""
    for env, state in zip(self.envs, states):
      env.set_state(state)

  def _stack(self, observations: list) -> dict[str, np.ndarray]:
    try:
      return vector.stack(observations, self._dtypes)
    except ValueError:
      shapes = [{k: np.shape(v) for k, v in x.items()} for x in observations]
      raise errors.EnvError(
        f'Environments {self.spec.id} return observations of different '
        f'shapes, {shapes}; they have to be the same all the time.'
      ) from None


class SubprocVecEnv(VecEnv):
  """Environments in other processes, at most one process per core.

  Observations keep the type that the environments return, unlike those of
  `DummyVecEnv`; the original does so, too.

  Args:
    env_fns: List of functions that return an environment, picklable by
      cloudpickle.
    num_workers: Number of processes; by default one per core.
    native: Whether observations keep the type that the environments return.
  """

  def __init__(
    self,
    env_fns: Iterable[Callable[[], Any]],
    num_workers: int | None = None,
    native: bool = True,
  ):
    group = functools.partial(DummyVecEnv, native=native)
    with _without_mpi():
      self._vector = vector.Vector(group, env_fns, num_workers or None)
    super().__init__(
      len(self._vector),
      self._vector.get('observation_space')[0],
      self._vector.get('action_space')[0],
      vector.join(self._vector.get('specs')),
    )
    self._promise: Any = None

  def step_async(self, actions: Any) -> None:
    actions = np.asarray(actions)
    assert len(actions) == self.num_envs, (actions.shape, self.num_envs)
    self._promise = self._vector.send('step', actions)

  def step_wait(self) -> tuple:
    return vector.join_transitions(self._promise())

  def reset(self) -> dict[str, np.ndarray]:
    """Return the first observations of new episodes of all environments."""
    return vector.join(self._vector.call('reset'))

  def get_images(self) -> list[np.ndarray]:
    return vector.join(self._vector.call('get_images'))

  def get_states(self) -> list:
    """Return what decides about future episodes, for checkpoints."""
    return vector.join(self._vector.call('get_states'))

  def set_states(self, states: list) -> None:
    """Undo `get_states`, after the environments were reset."""
    self._vector.call('set_states', states)

  def close(self) -> None:
    self._vector.close()


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
  """Vector of monitored environments, in processes if there are several.

  Args:
    env_id: Id of the environment.
    env_type: Ignored; there is only `robotics`.
    num_env: Number of environments.
    seed: Environment i of rank r is seeded `seed + 10000 r + i`; None for
      random seeds.
    reward_scale: Factor of the rewards.
    flatten_dict_observations: Has to be false, as goals need dictionaries.
    render: Mode of `render`, `rgb_array` for images or `human` for windows,
      which needs a process even for one environment.
    folder: Folder of the returns of episodes; by default that of the logger.
      Without one they are not written.
    time_limit: Number of steps of an episode; by default that of the id.
  """
  assert not flatten_dict_observations, 'goals need dictionaries'
  rank = mpi.world().Get_rank()
  folder = folder or logger.get_dir()
  makers = [
    functools.partial(
      make_env,
      env_id,
      seed if seed is None else seed + 10000 * rank + index,
      reward_scale,
      folder and os.path.join(folder, f'{rank}.{index}'),
      render,
      time_limit,
    )
    for index in range(num_env)
  ]
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
  """One environment of `make_vec_env`."""
  more = (render_mode, time_limit)
  env = envs.make(env_id, *more) if any(more) else envs.make(env_id)
  if seed is not None:
    env.seed(seed)
  return ClipAndScale(monitor.Monitor(env, monitor_file), reward_scale)


class ClipAndScale(Wrapper):
  """Clip actions to their space and scale rewards.

  Args:
    env: Environment.
    reward_scale: Factor of the rewards.
  """

  def __init__(self, env: Any, reward_scale: float = 1.0):
    super().__init__(env)
    self._low, self._high = env.action_space.low, env.action_space.high
    self._reward_scale = reward_scale

  def step(self, action: np.ndarray) -> tuple:
    if np.isnan(np.vdot(action, action)):
      action = np.nan_to_num(action)
    action = np.minimum(np.maximum(action, self._low), self._high)
    obs, reward, done, info = self._env.step(action)
    return obs, reward * self._reward_scale, done, info


def _describe_image(image: Any) -> str:
  return 'None' if image is None else f'shape {np.shape(image)}'


def _tile(images):
  """Mosaic of images of equal size, about as wide as high."""
  images = np.asarray(images)
  count, height, width, channels = images.shape
  rows = int(np.ceil(np.sqrt(count)))
  columns = int(np.ceil(count / rows))
  blank = np.zeros((rows * columns - count, height, width, channels), 'uint8')
  grid = np.concatenate([images, blank]).reshape(
    rows, columns, height, width, channels
  )
  return grid.swapaxes(1, 2).reshape(rows * height, columns * width, channels)


@contextlib.contextmanager
def _without_mpi() -> Iterator[None]:
  """Hide the launcher's variables from processes that are started within."""
  hidden = {
    key: os.environ.pop(key)
    for key in list(os.environ)
    if key.startswith(_MPI_PREFIXES)
  }
  try:
    yield
  finally:
    os.environ.update(hidden)
