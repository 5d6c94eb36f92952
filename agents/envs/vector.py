"""Batch of environments whose wrappers work on the whole batch at once."""

import os

import numpy as np

from agents.envs import hosts
from agents.envs import shared_arrays
from agents.envs import spaces


class VectorEnv:
  """Environments with limited duration, normalised ranges and 32 bits.

  Gives the same numbers as a `BatchEnv` of environments that are wrapped in
  `LimitDuration`, `RangeNormalize`, `ClipAction` and `ConvertTo32Bit`, with a
  fraction of the work in Python.

  Args:
    constructors: Functions that build the environments, with boxes of
      observations and actions.
    duration: Number of steps of the longest episode; no limit if None.
    num_workers: Number of processes to spread the environments over; 0 for
      the current process. By default one per core.

  Raises:
    ValueError: If the spaces of the environments differ.
  """

  def __init__(self, constructors, duration=None, num_workers=0):
    constructors = list(constructors)
    if num_workers is None:
      num_workers = min(len(constructors), os.cpu_count() or 1)
    backend = _Workers if num_workers else _Local
    self._envs = backend(constructors, num_workers)
    self._duration = duration or np.inf
    self._steps = np.full(len(constructors), np.inf)
    self._observ_range = _finite_range(self._envs.observation_space)
    self._action_range = _finite_range(self._envs.action_space)
    self.observation_space = self._envs.observation_space
    if self._observ_range:
      self.observation_space = _box_like(self.observation_space, 1)
    self.action_space = _box_like(self._envs.action_space, np.inf)

  def __len__(self):
    return len(self._steps)

  def step(self, actions):
    """Step all environments.

    Args:
      actions: Float array [N, size] of any values; clipped to [-1, 1] if the
        range of the environments is finite, and then mapped to it.

    Returns:
      Tuple of observations [N, ...] of 32 bits, rewards float32 [N], done
      flags bool [N], and a tuple of N empty dictionaries.

    Raises:
      RuntimeError: If an episode is over and was not reset.
      ValueError: If an observation or reward is infinite or NaN.
    """
    if (self._steps >= self._duration).any():
      raise RuntimeError('Must reset environment.')
    if self._action_range:
      low, high = self._action_range
      actions = np.clip(actions, -1, 1)
      actions = (actions + 1) / 2 * (high - low) + low
    else:
      space = self._envs.action_space
      actions = np.clip(actions, space.low, space.high)
    observ, reward, done = self._envs.step(actions)
    self._steps += 1
    done = done | (self._steps >= self._duration)
    if not np.isfinite(reward).all():
      raise ValueError('Infinite reward encountered.')
    reward = reward.astype(np.float32)
    return self._convert(observ), reward, done, ({},) * len(self)

  def reset(self, indices=None):
    """Reset environments and return their first observations.

    Args:
      indices: Which environments to reset; all by default.
    """
    if indices is None:
      indices = np.arange(len(self))
    self._steps[indices] = 0
    return self._convert(self._envs.reset(indices))

  def close(self):
    """Close the environments and end their processes."""
    self._envs.close()

  def _convert(self, observ):
    if observ.dtype.kind == 'f' and not np.isfinite(observ).all():
      raise ValueError('Infinite observation encountered.')
    if self._observ_range:
      low, high = self._observ_range
      observ = 2 * (observ - low) / (high - low) - 1
    dtype = {'float64': np.float32, 'int64': np.int32}.get(observ.dtype.name)
    # The caller may keep what it gets while the buffers are used again.
    return observ.astype(dtype or observ.dtype)


class _Local:
  """Environments in this process."""

  def __init__(self, constructors, num_workers):
    del num_workers
    self._envs = [constructor() for constructor in constructors]
    self.observation_space, self.action_space = _common_spaces(self._envs)
    self._arrays = None

  def step(self, actions):
    arrays = self._arrays
    observ, reward, done = arrays.observ, arrays.reward, arrays.done
    for index, env in enumerate(self._envs):
      observ[index], reward[index], done[index], _ = env.step(actions[index])
    return observ, reward, done

  def reset(self, indices):
    observs = [np.asarray(self._envs[index].reset()) for index in indices]
    if self._arrays is None:
      # The first observation tells the type; spaces may name another one.
      self._arrays = shared_arrays.Arrays.allocate(
        len(self._envs), observs[0], self.action_space
      )
    return np.stack(observs)

  def close(self):
    for env in self._envs:
      getattr(env, 'close', lambda: None)()


class _Workers:
  """Environments in processes, with their data in shared memory."""

  def __init__(self, constructors, num_workers):
    self._chunks = np.array_split(np.arange(len(constructors)), num_workers)
    self._worker_of = np.concatenate(
      [np.full(len(chunk), worker) for worker, chunk in enumerate(self._chunks)]
    )
    self._hosts, self._arrays = [], None
    try:
      self._hosts = [
        hosts.EnvHost([constructors[i] for i in chunk], 'process')
        for chunk in self._chunks
      ]
      self.observation_space, self.action_space = _common_spaces(
        [
          _Remote(host, index)
          for host, chunk in zip(self._hosts, self._chunks)
          for index in range(len(chunk))
        ]
      )
    except BaseException:
      self.close()
      raise

  def step(self, actions):
    self._arrays.action[:] = actions
    for promise in [host.step_shared() for host in self._hosts]:
      promise()
    return self._arrays.observ, self._arrays.reward, self._arrays.done

  def reset(self, indices):
    if self._arrays is None:
      return self._reset_first(indices)
    promises = []
    for worker, host in enumerate(self._hosts):
      own = indices[self._worker_of[indices] == worker]
      if len(own):
        rows = (own - self._chunks[worker][0]).tolist()
        promises.append(host.reset_shared(rows))
    for promise in promises:
      promise()
    return self._arrays.observ[indices]

  def _reset_first(self, indices):
    """Reset, and share arrays of the type that the observations have."""
    promises = []
    for index in indices:
      worker = self._worker_of[index]
      row = int(index - self._chunks[worker][0])
      promises.append(self._hosts[worker].call(row, 'reset'))
    observs = [np.asarray(promise()) for promise in promises]
    self._arrays = shared_arrays.Arrays.allocate(
      len(self._worker_of), observs[0], self.action_space, shared=True
    )
    for promise in [
      host.attach(self._arrays.description, int(chunk[0]))
      for host, chunk in zip(self._hosts, self._chunks)
    ]:
      promise()
    return np.stack(observs)

  def close(self):
    hosts.close_hosts(self._hosts)
    if self._arrays:
      self._arrays.close()
      self._arrays = None


class _Remote:
  """Spaces of an environment in a host."""

  def __init__(self, host, index):
    self.observation_space = host.access(index, 'observation_space')()
    self.action_space = host.access(index, 'action_space')()


def _common_spaces(envs):
  for name in ('observation', 'action'):
    found = [getattr(env, f'{name}_space') for env in envs]
    if not all(space == found[0] for space in found):
      raise ValueError(f'All environments must use the same {name} space.')
  return envs[0].observation_space, envs[0].action_space


def _finite_range(space):
  """Lower and upper bounds, or None if any of them is infinite."""
  if np.isfinite(space.low).all() and np.isfinite(space.high).all():
    return spaces.float_bounds(space)
  return None


def _box_like(space, bound):
  high = np.full(space.shape, bound, np.float32)
  return spaces.box(-high, high)
