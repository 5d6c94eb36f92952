"""Batch of environments whose wrappers work on the whole batch at once."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from agents.envs import finite, shared_arrays, spaces, vector


class VectorEnv:
  """Environments with limited duration, normalised ranges and 32 bits.

  Gives the same numbers as a `BatchEnv` of environments that are wrapped in
  `LimitDuration`, `RangeNormalize`, `ClipAction` and `ConvertTo32Bit`, with a
  fraction of the work in Python.

  Args:
    constructors: Functions that build the environments, with boxes of
      observations, and of actions unless these are discrete.
    duration: Number of steps of the longest episode; no limit if None.
    num_workers: Number of processes to spread the environments over; 0 for
      the current process. By default one per core.

  Raises:
    ValueError: If the spaces of the environments differ.
  """

  def __init__(
    self,
    constructors: Iterable[Callable[[], Any]],
    duration: int | None = None,
    num_workers: int | None = 0,
  ):
    self._vector = vector.Vector(_Rows, constructors, num_workers)
    observ_space, self._action_space = self._vector.common_spaces()
    self._is_shared = num_workers != 0
    self._arrays: Any = None
    self._duration = duration or np.inf
    self._steps = np.full(len(self._vector), np.inf)
    self._observ_range = _finite_range(observ_space)
    self._first_action = spaces.first_action(self._action_space)
    self._action_range = None
    if self._first_action is None:
      self._action_range = _finite_range(self._action_space)
    self.observation_space = observ_space
    if self._observ_range:
      self.observation_space = _box_like(observ_space, 1)
    if self._first_action is None:
      self.action_space = _box_like(self._action_space, np.inf)
    else:
      self.action_space = spaces.discrete(self._action_space.n)

  def __len__(self) -> int:
    return len(self._steps)

  def step(
    self, actions: np.ndarray
  ) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple]:
    """Step all environments.

    Args:
      actions: Float array [N, size] of any values; clipped to [-1, 1] if the
        range of the environments is finite, and then mapped to it. Discrete
        actions are integers [N], counted from zero.

    Returns:
      Tuple of observations [N, ...] of 32 bits, rewards float32 [N], done
      flags bool [N], and a tuple of N empty dictionaries.

    Raises:
      RuntimeError: If an episode is over and was not reset.
      ValueError: If an observation or reward is infinite or NaN.
    """
    if (self._steps >= self._duration).any():
      raise RuntimeError('Must reset environment.')
    self._arrays.action[:] = self._map_actions(actions)
    self._vector.call('step')
    self._steps += 1
    done = self._arrays.done | (self._steps >= self._duration)
    everywhere = np.arange(len(self))
    self._check_finite('reward', self._arrays.reward, everywhere)
    reward = self._arrays.reward.astype(np.float32)
    observ = self._convert(self._arrays.observ, everywhere)
    return observ, reward, done, ({},) * len(self)

  def reset(
    self, indices: Sequence[int] | np.ndarray | None = None
  ) -> np.ndarray:
    """Reset environments and return their first observations.

    Args:
      indices: Which environments to reset; all by default.
    """
    if indices is None:
      indices = np.arange(len(self))
    self._steps[indices] = 0
    observ = self._vector.reset(indices)
    if self._arrays is None:
      # The first observation tells the type; spaces may name another one.
      self._arrays = shared_arrays.Arrays.allocate(
        len(self), observ[0], self._action_space, self._is_shared
      )
      rows = np.arange(len(self))
      self._vector.call('attach', rows, arrays=self._arrays)
    else:
      observ = self._arrays.observ[indices]
    return self._convert(observ, indices)

  def close(self) -> None:
    """Close the environments and end their processes."""
    self._vector.close()
    if self._arrays:
      self._arrays.close()
      self._arrays = None

  def _map_actions(self, actions):
    """Actions as the environments take them."""
    space = self._action_space
    if self._first_action is not None:
      return actions + self._first_action
    if not self._action_range:
      return np.clip(actions, space.low, space.high)
    low, high = self._action_range
    return (np.clip(actions, -1, 1) + 1) / 2 * (high - low) + low

  def _check_finite(self, what, values, indices):
    """Refuse NaN and infinity, naming the first environment that gives it."""
    if not np.isfinite(values).all():
      names = vector.join(self._vector.get('names'))
      for index, value in zip(indices, values):
        finite.check(value, what, names[index])

  def _convert(self, observ, indices):
    if observ.dtype.kind == 'f':
      self._check_finite('observation', observ, indices)
    if self._observ_range:
      low, high = self._observ_range
      observ = 2 * (observ - low) / (high - low) - 1
    dtype = {'float64': np.float32, 'int64': np.int32}.get(observ.dtype.name)
    # The caller may keep what it gets while the buffers are used again.
    return observ.astype(dtype or observ.dtype)


class _Rows(vector.Group):
  """Environments whose data are rows of arrays that all groups share."""

  _arrays: Any = None
  _first = 0

  @property
  def names(self):
    return [finite.find_name(env) for env in self.envs]

  def attach(self, rows, arrays):
    """Use arrays from now on, of which some rows belong to this group."""
    self._arrays, self._first = arrays, int(rows[0])

  def step(self):
    """Read actions from the arrays, and write what they lead to."""
    arrays = self._arrays
    observ, reward, done = arrays.observ, arrays.reward, arrays.done
    # Environments may keep their actions, but the rows are used again.
    own = slice(self._first, self._first + len(self.envs))
    actions = arrays.action[own].copy()
    for row, (env, action) in enumerate(zip(self.envs, actions), self._first):
      observ[row], reward[row], done[row], _ = env.step(action)

  def reset(self, rows):
    """Return first observations, or write them to the arrays if there are."""
    if self._arrays is None:
      return vector.stack([self.envs[row].reset() for row in rows])
    for row in rows:
      self._arrays.observ[self._first + row] = self.envs[row].reset()
    return None

  def close(self):
    super().close()
    if self._arrays:
      self._arrays.close()


def _finite_range(space):
  """Lower and upper bounds, or None if any of them is infinite."""
  if np.isfinite(space.low).all() and np.isfinite(space.high).all():
    return spaces.float_bounds(space)
  return None


def _box_like(space, bound):
  high = np.full(space.shape, bound, np.float32)
  return spaces.box(-high, high)
