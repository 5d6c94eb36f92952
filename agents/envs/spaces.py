"""Observation and action spaces, all of gymnasium's types."""

import logging
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np

_logger = logging.getLogger(__name__)


def box(low: Any, high: Any, dtype: Any = np.float32) -> gymnasium.spaces.Box:
  """Return a box space from arrays of bounds."""
  low, high = np.asarray(low, dtype), np.asarray(high, dtype)
  return gymnasium.spaces.Box(low, high, dtype=dtype)


def discrete(count: int) -> gymnasium.spaces.Discrete:
  """Return the space of the integers from zero to `count` - 1."""
  return gymnasium.spaces.Discrete(int(count))


def is_discrete(space: Any) -> bool:
  """Return whether a space of gym or gymnasium is `Discrete`."""
  return type(space).__name__ == 'Discrete'


def first_action(space: Any) -> int | None:
  """Return the smallest discrete action, None if actions are not discrete."""
  return int(getattr(space, 'start', 0)) if is_discrete(space) else None


def count_outputs(space: Any) -> int:
  """Return the number of discrete actions, or the size of an action vector."""
  return int(space.n) if is_discrete(space) else space.shape[0]


def to_plain(space: Any) -> dict[str, Any]:
  """Convert a box or discrete space to plain data for `from_plain`."""
  if is_discrete(space):
    return {'n': int(space.n), 'start': first_action(space)}
  low, high = (
    (x.min() if x.min() == x.max() else x).tolist()
    for x in (space.low, space.high)
  )
  shape, dtype = list(space.shape), str(space.dtype)
  return {'low': low, 'high': high, 'shape': shape, 'dtype': dtype}


def from_plain(plain: Mapping[str, Any]) -> Any:
  """Restore a space from the result of `to_plain`."""
  if 'n' in plain:
    return gymnasium.spaces.Discrete(**plain)
  shape, dtype = plain['shape'], plain['dtype']
  low, high = (np.broadcast_to(plain[x], shape) for x in ('low', 'high'))
  return box(low, high, dtype)


class Ranges:
  """Linear scaling between the ranges of an environment and [-1, 1].

  Integers, such as those of images, become floats. Discrete actions are only
  shifted to start at zero. A range too wide for its dtype counts as infinite.

  Args:
    observation_space: Box of observations.
    action_space: Box of actions, or discrete space.
    observ: Whether to scale observations; by default, if their range is
      finite.
    action: The same for actions.

  Attributes:
    observation_space: Space of scaled observations.
    action_space: Space of scaled actions.

  Raises:
    ValueError: If a range to scale is infinite.
  """

  def __init__(
    self,
    observation_space: Any,
    action_space: Any,
    observ: bool | None = None,
    action: bool | None = None,
  ):
    self._start = first_action(action_space)
    self._observ = _bounds(observation_space, observ, 'observation')
    self._action = None
    self.observation_space, self.action_space = observation_space, action_space
    if self._observ:
      low, high = self._observ
      # Constant dimensions become -1.
      self._width = np.where(high > low, high - low, 1).astype(low.dtype)
      self.observation_space = _unit_box(observation_space)
    if self._start is None:
      self._action = _bounds(action_space, action, 'action')
      if self._action:
        self.action_space = _unit_box(action_space)
    elif self._start:
      self.action_space = discrete(action_space.n)

  def observ(self, value: Any) -> Any:
    """Return observations scaled to [-1, 1]."""
    if not self._observ:
      return value
    return 2 * (value - self._observ[0]) / self._width - 1

  def action(self, value: Any) -> Any:
    """Return actions scaled to the range of the environment."""
    if self._start:
      return value + self._start
    if not self._action:
      return value
    low, high = self._action
    return (value + 1) / 2 * (high - low) + low

  def clipped_action(self, value: Any) -> Any:
    """Return `action` of the clipped value, never beyond the range."""
    if self._start is not None:
      return self.action(value)
    value = np.clip(value, self.action_space.low, self.action_space.high)
    # Rounding can lead beyond.
    scaled = self.action(value)
    return np.clip(scaled, *self._action) if self._action else scaled


def _bounds(space, enabled, name):
  """Lower and upper bounds to scale by, or None."""
  low, high = (
    x if x.dtype.kind == 'f' else x.astype(np.float32)
    for x in (np.asarray(getattr(space, x, np.inf)) for x in ('low', 'high'))
  )
  with np.errstate(over='ignore', invalid='ignore'):
    finite = np.isfinite(2 * (high - low)).all()
  if enabled and not finite:
    raise ValueError(f'Cannot normalize infinite {name} range.')
  if enabled is None and not finite:
    _logger.info('Not normalizing infinite %s range.', name)
  if enabled is False or not finite:
    return None
  return low, high


def _unit_box(space):
  ones = np.ones(space.shape, np.float32)
  return box(-ones, ones)


def dictionary(spaces: Mapping[str, Any]) -> gymnasium.spaces.Dict:
  """Return a dict space whose entries may come from gym or gymnasium."""
  return gymnasium.spaces.Dict({k: convert(v) for k, v in spaces.items()})


def convert(space: Any) -> gymnasium.Space:
  """Convert a space of old gym to the same space of gymnasium.

  Raises:
    NotImplementedError: If the kind of space is not supported.
  """
  if isinstance(space, gymnasium.Space):
    return space
  kind = type(space).__name__
  if kind == 'Box':
    return box(space.low, space.high, space.dtype)
  if kind == 'Discrete':
    start = getattr(space, 'start', 0)
    return gymnasium.spaces.Discrete(int(space.n), start=int(start))
  if kind == 'Dict':
    return dictionary(space.spaces)
  raise NotImplementedError(f'Unknown kind of space {space!r}.')
