"""Observation and action spaces, all of them those of gymnasium."""

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np

from agents.run import errors


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


def check_continuous(
  env: Any, name: Any, system: str, or_discrete: bool = False
) -> None:
  """Make sure that actions are vectors and observations a box.

  Args:
    env: Environment with spaces of gymnasium or the older gym.
    name: What the user calls it.
    system: Who needs these spaces, for the message.
    or_discrete: Whether discrete actions are fine, too.

  Raises:
    UsageError: If they are of another kind.
  """
  or_discrete = or_discrete and is_discrete(env.action_space)
  for kind in ('action', 'observation'):
    space = getattr(env, f'{kind}_space')
    # Boxes of gym and of gymnasium are different classes.
    if type(space).__name__ != 'Box' and not (or_discrete and kind == 'action'):
      raise errors.UsageError(
        f'The {kind}s of {name} are {space}; {system} needs a box of real '
        'numbers. Choose an environment with continuous actions, or wrap and '
        'register it under an id of its own.'
      )
  if len(env.action_space.shape) != 1 and not or_discrete:
    raise errors.UsageError(
      f'The actions of {name} are shaped {env.action_space.shape}; {system} '
      'needs vectors.'
    )
