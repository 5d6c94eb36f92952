"""Observation and action spaces, all of them those of gymnasium."""

import gymnasium
import numpy as np


def box(low, high, dtype=np.float32):
  """Box space from arrays of bounds."""
  low, high = np.asarray(low, dtype), np.asarray(high, dtype)
  return gymnasium.spaces.Box(low, high, dtype=dtype)


def float_bounds(space):
  """Bounds of a box for arithmetic; those of integers become float32.

  Returns:
    Tuple of the lower and the upper bounds, float arrays.
  """
  bounds = (space.low, space.high)
  return tuple(
    x if x.dtype.kind == 'f' else x.astype(np.float32) for x in bounds
  )


def dictionary(spaces):
  """Dict space whose parts may come from gym or gymnasium."""
  return gymnasium.spaces.Dict({k: convert(v) for k, v in spaces.items()})


def convert(space):
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
    return gymnasium.spaces.Discrete(int(space.n))
  if kind == 'Dict':
    return dictionary(space.spaces)
  raise NotImplementedError(f'Unknown kind of space {space!r}.')
