"""Observation and action spaces, all of them those of gymnasium."""

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np


def box(low: Any, high: Any, dtype: Any = np.float32) -> gymnasium.spaces.Box:
  """Return a box space from arrays of bounds."""
  low, high = np.asarray(low, dtype), np.asarray(high, dtype)
  return gymnasium.spaces.Box(low, high, dtype=dtype)


def discrete(count: int) -> gymnasium.spaces.Discrete:
  """Return the space of the integers from zero to below a number."""
  return gymnasium.spaces.Discrete(int(count))


def is_discrete(space: Any) -> bool:
  """Return whether a space of gym or gymnasium is a choice of one integer."""
  return type(space).__name__ == 'Discrete'


def first_action(space: Any) -> int | None:
  """Return the smallest of discrete actions, None if they are not discrete."""
  return int(getattr(space, 'start', 0)) if is_discrete(space) else None


def count_outputs(space: Any) -> int:
  """Return the number of discrete actions, or of dimensions of an action."""
  return int(space.n) if is_discrete(space) else space.shape[0]


def float_bounds(space: Any) -> tuple[np.ndarray, np.ndarray]:
  """Return bounds of a box for arithmetic; those of integers become float32.

  Returns:
    Tuple of the lower and the upper bounds, float arrays.
  """
  low, high = space.low, space.high
  if low.dtype.kind == 'f':
    return low, high
  return low.astype(np.float32), high.astype(np.float32)


def dictionary(spaces: Mapping[str, Any]) -> gymnasium.spaces.Dict:
  """Return a dict space whose parts may come from gym or gymnasium."""
  return gymnasium.spaces.Dict({k: convert(v) for k, v in spaces.items()})


def convert(space: Any) -> gymnasium.Space:
  """Turn a space of the older gym into the same space of gymnasium.

  Raises:
    NotImplementedError: If the kind of space is not known.
  """
  if isinstance(space, gymnasium.Space):
    return space
  kind = type(space).__name__
  if kind == 'Box':
    return box(space.low, space.high, space.dtype)
  if kind == 'Discrete':
    return discrete(space.n)
  if kind == 'Dict':
    return dictionary(space.spaces)
  raise NotImplementedError(f'Unknown kind of space {space!r}.')
