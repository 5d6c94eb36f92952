"""Normalize observations and rewards by running statistics."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

_EPSILON = 1e-8  # Added to variances.


@dataclasses.dataclass
class Moments:
  """Mean and variance of a stream of arrays.

  Combines batches with the parallel algorithm of Chan et al. (1979).
  """

  count: int = 0
  mean: Any = 0.0
  variance: Any = 1.0

  @property
  def scale(self) -> np.ndarray:
    """Standard deviation, never zero."""
    return np.sqrt(self.variance + _EPSILON)

  def update(self, batch: np.ndarray) -> None:
    """Add the elements of an array [batch, ...]."""
    size = len(batch)
    mean, variance = batch.mean(0, np.float64), batch.var(0, np.float64)
    total = self.count + size
    delta = mean - self.mean
    # For the first batch, the count and the terms with it are zero.
    squares = self.variance * self.count + variance * size
    squares += delta**2 * self.count * size / total
    self.mean = self.mean + delta * size / total
    self.variance = squares / total
    self.count = total


class ObservationNormalizer:
  """Normalize observations to mean zero and variance one, per path.

  Args:
    clip: Maximum magnitude of the result.
  """

  def __init__(self, clip: float = 10.0) -> None:
    self._clip = clip
    self._moments: dict[str, Moments] = {}

  def update(self, observations: Mapping[str, np.ndarray]) -> None:
    """Add a dict from path to array [workers, ...]."""
    for path, value in observations.items():
      self._moments.setdefault(path, Moments()).update(value)

  def transform(
    self, observations: Mapping[str, np.ndarray]
  ) -> dict[str, np.ndarray]:
    """Normalize a dict from path to array [..., shape of the path]."""
    result = {}
    for path, value in observations.items():
      if path in self._moments:
        moments = self._moments[path]
        value = (value - moments.mean) / moments.scale
      value = np.clip(value, -self._clip, self._clip)
      result[path] = value.astype(np.float32)
    return result

  def scaling(self, path: str) -> tuple[Any, Any, float]:
    """Return mean, scale and limit of the values of a path."""
    moments = self._moments.get(path)
    if not moments:
      return 0.0, 1.0, self._clip
    return moments.mean, moments.scale, self._clip

  def state_dict(self) -> dict[str, Any]:
    """Return the moments for a checkpoint."""
    return {path: dict(vars(x)) for path, x in self._moments.items()}

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Restore the result of `state_dict`."""
    self._moments = {path: Moments(**x) for path, x in state.items()}


class RewardNormalizer:
  """Divide rewards by the standard deviation of discounted returns.

  Args:
    gamma: Discount factor.
    clip: Maximum magnitude of the result.
  """

  def __init__(self, gamma: float = 0.99, clip: float = 10.0) -> None:
    self._gamma, self._clip = gamma, clip
    self._moments = Moments()
    self._returns: Any = 0.0

  def update(self, rewards: np.ndarray, dones: np.ndarray) -> None:
    """Add the rewards [workers] of a step, and whether it ended episodes."""
    self._returns = self._gamma * self._returns + rewards.astype(float)
    self._moments.update(self._returns)
    self._returns[np.asarray(dones, bool)] = 0

  def reset(self) -> None:
    """Start new episodes in all workers."""
    self._returns = 0.0

  def transform(self, rewards: np.ndarray) -> np.ndarray:
    """Normalize an array of rewards."""
    rewards = rewards / self._moments.scale
    return np.clip(rewards, -self._clip, self._clip).astype(np.float32)

  def state_dict(self) -> dict[str, Any]:
    """Return moments and unfinished returns for a checkpoint."""
    return {'moments': dict(vars(self._moments)), 'returns': self._returns}

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Restore the result of `state_dict`."""
    self._moments = Moments(**state['moments'])
    self._returns = np.array(state['returns'])
