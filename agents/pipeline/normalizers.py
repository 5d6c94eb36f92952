"""Scales observations and rewards by what has been seen so far."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


class Moments:
  """Mean and variance of a stream of arrays.

  Batches are combined by the parallel algorithm of Chan et al. (1979).

  Args:
    shape: Shape of an element.
  """

  def __init__(self, shape: Sequence[int] = ()) -> None:
    self.count = 0
    self.mean = np.zeros(shape)
    self.variance = np.ones(shape)

  def update(self, batch: np.ndarray) -> None:
    """Add the elements of an array [batch, ...]."""
    size = len(batch)
    mean, variance = batch.mean(0, np.float64), batch.var(0, np.float64)
    total = self.count + size
    delta = mean - self.mean
    # Before the first batch the count is zero, and so is what was before.
    squares = self.variance * self.count + variance * size
    squares += delta**2 * self.count * size / total
    self.mean = self.mean + delta * size / total
    self.variance = squares / total
    self.count = total

  def state_dict(self) -> dict[str, Any]:
    return {'count': self.count, 'mean': self.mean, 'variance': self.variance}

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    self.count = int(state['count'])
    self.mean = np.array(state['mean'], np.float64)
    self.variance = np.array(state['variance'], np.float64)


class ObservationNormalizer:
  """Observations of mean zero and variance one, path by path.

  Args:
    clip: Largest magnitude of the result.
    epsilon: Added to the variance.
  """

  def __init__(self, clip: float = 10.0, epsilon: float = 1e-8) -> None:
    self._clip = clip
    self._epsilon = epsilon
    self._moments: dict[str, Moments] = {}

  def update(self, observations: Mapping[str, np.ndarray]) -> None:
    """Add a dict from path to array [workers, ...]."""
    for path, value in observations.items():
      if path not in self._moments:
        self._moments[path] = Moments(value.shape[1:])
      self._moments[path].update(value)

  def transform(
    self, observations: Mapping[str, np.ndarray]
  ) -> dict[str, np.ndarray]:
    """Normalise a dict from path to array [..., shape of the path]."""
    return {path: self._apply(path, x) for path, x in observations.items()}

  def state_dict(self) -> dict[str, Any]:
    return {path: x.state_dict() for path, x in self._moments.items()}

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    self._moments = {path: Moments() for path in state}
    for path, moments in self._moments.items():
      moments.load_state_dict(state[path])

  def _apply(self, path, value):
    if path not in self._moments:
      return np.clip(value, -self._clip, self._clip).astype(np.float32)
    moments = self._moments[path]
    value = (value - moments.mean) / np.sqrt(moments.variance + self._epsilon)
    return np.clip(value, -self._clip, self._clip).astype(np.float32)


class RewardNormalizer:
  """Rewards over the standard deviation of discounted returns.

  Args:
    gamma: Discount factor.
    clip: Largest magnitude of the result.
    epsilon: Added to the variance.
  """

  def __init__(
    self, gamma: float = 0.99, clip: float = 10.0, epsilon: float = 1e-8
  ) -> None:
    self._gamma = gamma
    self._clip = clip
    self._epsilon = epsilon
    self._moments = Moments()
    self._returns: np.ndarray | None = None

  def update(self, rewards: np.ndarray, dones: np.ndarray) -> None:
    """Add the rewards [workers] of a step, and whether it ended episodes."""
    if self._returns is None or len(self._returns) != len(rewards):
      self._returns = np.zeros(len(rewards))
    self._returns = self._gamma * self._returns + rewards
    self._moments.update(self._returns)
    self._returns[np.asarray(dones, bool)] = 0

  def reset(self) -> None:
    """Begin new episodes in all workers."""
    self._returns = None

  def transform(self, rewards: np.ndarray) -> np.ndarray:
    """Normalise an array of rewards."""
    rewards = rewards / np.sqrt(self._moments.variance + self._epsilon)
    return np.clip(rewards, -self._clip, self._clip).astype(np.float32)

  def state_dict(self) -> dict[str, Any]:
    state = self._moments.state_dict()
    if self._returns is not None:
      state['returns'] = self._returns
    return state

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    self._moments.load_state_dict(state)
    returns = state.get('returns')
    self._returns = None if returns is None else np.array(returns)
