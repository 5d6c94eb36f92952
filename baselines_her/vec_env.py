"""Several environments as one, in this process or in others.

Free of TensorFlow. Environments that end are reset within the same step, and
the observation returned is the first one of the next episode.
"""

import contextlib
import functools
import os

import numpy as np

from agents.envs import hosts
from agents.run import mpi
from baselines_her import envs
from baselines_her import logger
from baselines_her import monitor

_MPI_PREFIXES = ('OMPI_', 'PMIX_', 'PMI_', 'PRTE_')


class VecEnv:
  """What all vectors of environments have in common.

  Attributes:
    num_envs: Number of environments.
    observation_space: Dict space of one environment.
    action_space: Action space of one environment.
    specs: List of objects with `id` and `max_episode_steps`.
  """

  def __init__(self, num_envs, observation_space, action_space, specs):
    self.num_envs = num_envs
    self.observation_space = observation_space
    self.action_space = action_space
    self.specs = specs

  @property
  def spec(self):
    return self.specs[0]

  def step(self, actions):
    """Step all environments.

    Args:
      actions: Array [environments, size].

    Returns:
      Tuple of a dict of observations [environments, size], rewards float32
      and done flags [environments], and a list of dicts.
    """
    self.step_async(actions)
    return self.step_wait()

  def render(self, mode='human'):
    """Images of all environments as a mosaic uint8 [height, width, 3]."""
    image = _tile(self.get_images())
    return image if mode == 'rgb_array' else None

  def __enter__(self):
    return self

  def __exit__(self, *unused):
    self.close()


class DummyVecEnv(VecEnv):
  """Environments one after the other in this process.

  Args:
    env_fns: List of functions that return an environment.
    native: Whether observations keep the type that the environments return
      instead of the one that their spaces declare.
  """

  def __init__(self, env_fns, native=False):
    self.envs = [env_fn() for env_fn in env_fns]
    env = self.envs[0]
    super().__init__(
      len(self.envs),
      env.observation_space,
      env.action_space,
      [x.spec for x in self.envs],
    )
    self._dtypes = {
      key: None if native else space.dtype
      for key, space in env.observation_space.spaces.items()
    }
    self._actions = None

  def step_async(self, actions):
    actions = np.asarray(actions)
    if len(actions) != self.num_envs or actions.ndim < 2:
      assert self.num_envs == 1, (actions.shape, self.num_envs)
      actions = actions.reshape(1, -1)
    self._actions = actions

  def step_wait(self):
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

  def reset(self):
    """First observations of new episodes of all environments."""
    return self._stack([env.reset() for env in self.envs])

  def get_images(self):
    """List of images uint8 [height, width, 3]."""
    return [env.render(mode='rgb_array') for env in self.envs]

  def get_states(self):
    """List of what decides about future episodes, for checkpoints."""
    return [env.get_state() for env in self.envs]

  def set_states(self, states):
    """Undo `get_states`, after the environments were reset."""
    for env, state in zip(self.envs, states):
      env.set_state(state)

  def close(self):
    for env in self.envs:
      env.close()

  def _stack(self, observations):
    return {
      key: np.array([obs[key] for obs in observations], dtype)
      for key, dtype in self._dtypes.items()
    }


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

  def __init__(self, env_fns, num_workers=None, native=True):
    env_fns = list(env_fns)
    limit = min(num_workers or os.cpu_count() or 1, len(env_fns))
    self._chunks = np.array_split(np.arange(len(env_fns)), limit)
    self._hosts = []
    self._promises = []
    try:
      with _without_mpi():
        for chunk in self._chunks:
          group = functools.partial(
            DummyVecEnv, [env_fns[i] for i in chunk], native
          )
          self._hosts.append(hosts.EnvHost([group], 'process'))
      specs = sum((x() for x in self._ask('specs')), [])
      host = self._hosts[0]
      super().__init__(
        len(env_fns),
        host.access(0, 'observation_space')(),
        host.access(0, 'action_space')(),
        specs,
      )
    except BaseException:
      self.close()
      raise

  def step_async(self, actions):
    actions = np.asarray(actions)
    assert len(actions) == self.num_envs, (actions.shape, self.num_envs)
    self._promises = [
      host.call(0, 'step', actions[chunk])
      for host, chunk in zip(self._hosts, self._chunks)
    ]

  def step_wait(self):
    promises, self._promises = self._promises, []
    observations, rewards, dones, infos = zip(*[x() for x in promises])
    return (
      _concatenate(observations),
      np.concatenate(rewards),
      np.concatenate(dones),
      sum(infos, []),
    )

  def reset(self):
    """First observations of new episodes of all environments."""
    return _concatenate(self._call('reset'))

  def get_images(self):
    """List of images uint8 [height, width, 3]."""
    return sum(self._call('get_images'), [])

  def get_states(self):
    """List of what decides about future episodes, for checkpoints."""
    return sum(self._call('get_states'), [])

  def set_states(self, states):
    """Undo `get_states`, after the environments were reset."""
    promises = [
      host.call(0, 'set_states', [states[i] for i in chunk])
      for host, chunk in zip(self._hosts, self._chunks)
    ]
    for promise in promises:
      promise()

  def close(self):
    hosts.close_hosts(self._hosts)

  def _call(self, name):
    promises = [host.call(0, name) for host in self._hosts]
    return [promise() for promise in promises]

  def _ask(self, name):
    return [host.access(0, name) for host in self._hosts]


def make_vec_env(
  env_id,
  env_type,
  num_env,
  seed,
  reward_scale=1.0,
  flatten_dict_observations=False,
  render=None,
  folder=None,
  time_limit=None,
):
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
  env_id, seed, reward_scale, monitor_file, render_mode, time_limit=None
):
  """One environment of `make_vec_env`."""
  more = (render_mode, time_limit)
  env = envs.make(env_id, *more) if any(more) else envs.make(env_id)
  if seed is not None:
    env.seed(seed)
  return ClipAndScale(monitor.Monitor(env, monitor_file), reward_scale)


class ClipAndScale:
  """Clip actions to their space and scale rewards.

  Args:
    env: Environment.
    reward_scale: Factor of the rewards.
  """

  def __init__(self, env, reward_scale=1.0):
    self._env = env
    self._low, self._high = env.action_space.low, env.action_space.high
    self._reward_scale = reward_scale

  def __getattr__(self, name):
    if name == '_env' or name.startswith('__'):
      raise AttributeError(name)
    return getattr(self._env, name)

  def step(self, action):
    if np.isnan(np.vdot(action, action)):
      action = np.nan_to_num(action)
    action = np.minimum(np.maximum(action, self._low), self._high)
    obs, reward, done, info = self._env.step(action)
    return obs, reward * self._reward_scale, done, info


def _concatenate(observations):
  if len(observations) == 1:
    return observations[0]
  return {
    key: np.concatenate([x[key] for x in observations])
    for key in observations[0]
  }


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
def _without_mpi():
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
