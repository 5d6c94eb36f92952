"""Observation and action spaces, all of gymnasium's types."""

import collections
import logging
import operator
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np

from agents.run import errors

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


def is_box(space: Any) -> bool:
  """Return whether a space of gym or gymnasium is `Box`."""
  return type(space).__name__ == 'Box'


def is_text(space: Any) -> bool:
  """Return whether a space has texts, such as the missions of MiniGrid."""
  return getattr(getattr(space, 'dtype', None), 'kind', None) == 'U'


def vector_box(space: Any) -> gymnasium.spaces.Box | None:
  """Return the box of a space of vectors; None for spaces of other values.

  Bits (`MultiBinary`) and several integers (`MultiDiscrete`) are vectors, too.
  """
  kind = type(space).__name__
  if len(getattr(space, 'shape', None) or ()) != 1:
    return None
  if kind == 'MultiBinary':
    return box(np.zeros(space.shape), np.ones(space.shape))
  if kind == 'MultiDiscrete':
    start = getattr(space, 'start', np.zeros(space.shape))
    return box(start, start + space.nvec - 1)
  return box(space.low, space.high) if kind == 'Box' else None


def suits_convolutions(space: Any) -> bool:
  """Return whether observations are images that PPO's convolutions can see.

  They have at least 36 pixels in both directions, with any number of channels,
  first or last, such as stacked frames. They are of uint8, or other numbers
  with finite bounds. Gray ones of uint8 need no channels.
  """
  shape = list(getattr(space, 'shape', None) or [])
  if not is_box(space) or len(shape) not in (2, 3):
    return False
  large = sorted(shape)[-2] >= 36 and shape[1] >= 36
  if np.dtype(space.dtype) == np.uint8:
    return large
  # Matrices of other numbers are rarely images.
  return large and len(shape) == 3 and bool(find_scalable(space).all())


def first_action(space: Any) -> int | None:
  """Return the smallest discrete action, None if actions are not discrete."""
  return int(getattr(space, 'start', 0)) if is_discrete(space) else None


def count_outputs(space: Any) -> int:
  """Return the number of discrete actions, or the size of an action vector."""
  return int(space.n) if is_discrete(space) else space.shape[0]


def to_plain(space: Any) -> dict[str, Any]:
  """Convert a space to plain data for `from_plain`.

  Args:
    space: Box, `Discrete`, `MultiBinary`, `MultiDiscrete`, texts, or a
      dictionary or tuple of them, of gym or gymnasium.

  Raises:
    NotImplementedError: If the kind of space is not supported.
  """
  kind = type(space).__name__
  if kind == 'Discrete':
    return {'n': int(space.n), 'start': first_action(space)}
  if kind == 'Dict':
    return {'dict': {k: to_plain(x) for k, x in space.spaces.items()}}
  if kind == 'Tuple':
    return {'tuple': [to_plain(x) for x in space.spaces]}
  if is_text(space):
    return {'text': True}
  if kind == 'MultiBinary':
    # Spaces made from a number differ from those made from a shape.
    return {'bits': np.asarray(space.n).tolist()}
  if kind == 'MultiDiscrete':
    start = getattr(space, 'start', np.zeros(space.shape, int))
    return {
      'choices': space.nvec.tolist(),
      'starts': np.asarray(start).tolist(),
    }
  if kind != 'Box':
    raise NotImplementedError(f'Unknown kind of space {space!r}.')
  low, high = (_plain_bound(x, 0) for x in (space.low, space.high))
  shape, dtype = list(space.shape), str(space.dtype)
  return {'low': low, 'high': high, 'shape': shape, 'dtype': dtype}


def from_plain(plain: Mapping[str, Any]) -> Any:
  """Restore a space from the result of `to_plain`.

  Raises:
    UsageError: If it is not complete.
  """
  try:
    return _restore(plain)
  except (AssertionError, AttributeError, KeyError, TypeError, ValueError):
    raise errors.UsageError(
      f'A stored space is damaged: {plain!r:.200}. Restore its file from a '
      'copy, or start a new run.'
    ) from None


def _restore(plain):
  kinds = gymnasium.spaces
  if 'n' in plain:
    return kinds.Discrete(**plain)
  if 'dict' in plain:
    return dictionary({k: from_plain(x) for k, x in plain['dict'].items()})
  if 'tuple' in plain:
    return kinds.Tuple([from_plain(x) for x in plain['tuple']])
  if 'text' in plain:
    # Which texts does not matter, as agents do not read them.
    return kinds.Text(1)
  if 'bits' in plain:
    return kinds.MultiBinary(plain['bits'])
  if 'choices' in plain:
    start = np.array(plain['starts'])
    return kinds.MultiDiscrete(np.array(plain['choices']), start=start)
  shape, dtype = plain['shape'], plain['dtype']
  low, high = (np.broadcast_to(plain[x], shape) for x in ('low', 'high'))
  return box(low, high, dtype)


def fitting(space: Any) -> Callable[[Any], Any]:
  """Return the function that every action passes on its way to an environment.

  The result is the nearest action of the space, with its dtype. Sides without
  a bound end at the largest number of the dtype, so actions are always finite.
  Boxes of integers get the nearest integers; ties go to the even one.

  Args:
    space: Space of gym or gymnasium. Discrete actions only get the dtype,
      dictionaries are treated by entry, and other kinds are left alone.

  Returns:
    Function from one action, or a batch of them, to legal ones. It raises
    `NotFinite` for NaN.
  """
  if hasattr(space, 'spaces') and isinstance(space.spaces, Mapping):
    parts = {key: fitting(part) for key, part in space.spaces.items()}
    return lambda action: {
      k: parts[k](v) if k in parts else v for k, v in action.items()
    }
  if is_discrete(space):
    # Plain integers suit every environment.
    kind = np.dtype(getattr(space, 'dtype', None) or np.int64)
    return lambda action: (
      action if isinstance(action, int) else np.asarray(action).astype(kind)[()]
    )
  if not hasattr(space, 'low'):
    return lambda action: action
  low, high = np.asarray(space.low), np.asarray(space.high)
  dtype = np.dtype(getattr(space, 'dtype', None) or low.dtype)
  if dtype.kind == 'f':
    most = np.finfo(dtype).max
    low, high = np.maximum(low, -most), np.minimum(high, most)
    lowest, highest = low.tolist(), high.tolist()
    is_small = low.ndim == 1 and low.size <= 64

    def clip(action):
      # Most are within the bounds, which short lists tell faster than arrays.
      known = is_small and type(action) is np.ndarray and action.dtype == dtype
      if known and action.shape == low.shape:
        values = action.tolist()
        above = all(map(operator.le, lowest, values))
        if above and all(map(operator.le, values, highest)):
          return action.copy()
      return _clip(action, low, high).astype(dtype, copy=False)

    return clip

  def nearest(action):
    if np.asarray(action).dtype == dtype:
      return _clip(action, low, high)
    # The ends of 64 bit integers are not numbers of 64 bit floats.
    lowest, highest = low.astype(np.float64), high.astype(np.float64)
    value = np.rint(_clip(action, lowest, highest))
    within = (lowest < value) & (value < highest)
    whole = np.where(within, value, 0).astype(dtype)
    return np.where(within, whole, np.where(value >= highest, high, low))

  return nearest


def _clip(action, low, high):
  clipped = np.minimum(np.maximum(action, low), high)
  if (clipped != clipped).any():
    raise errors.NotFinite(
      f'An action is NaN: {action}. Training has diverged; lower the learning '
      'rate, and start again, or from an earlier checkpoint.'
    )
  return clipped


def sample(space: Any) -> Any:
  """Draw a random action, from [-1, 1] if the range is too wide to draw from.

  Args:
    space: Space of gymnasium.
  """
  try:
    with np.errstate(over='ignore'):
      return space.sample()
  except OverflowError:
    return fitting(space)(space.np_random.uniform(-1, 1, space.shape))


def find_scalable(space: Any) -> np.ndarray:
  """Return which dimensions of a box have bounds to scale by, bool [...].

  Infinite bounds do not count, nor do ranges too wide for their dtype.
  """
  low, high = float_bounds(space)
  with np.errstate(over='ignore', invalid='ignore'):
    return np.isfinite(2 * (high - low))


class UnitBox:
  """Scaling of actions from [-1, 1] to a box, dimension by dimension.

  Dimensions without finite bounds, or with bounds too far apart for their
  dtype, are passed through unchanged.

  Args:
    space: Box of gym or gymnasium.

  Attributes:
    space: Box of the actions to scale.
    enabled: Which dimensions are scaled, bool [size].
    low, high: Bounds to scale them to [size].
  """

  def __init__(self, space: Any):
    self.enabled = find_scalable(space)
    low, high = _wide_bounds(space)
    self.low = np.where(self.enabled, low, -1)
    self.high = np.where(self.enabled, high, 1)
    # What is too wide to scale counts as infinite.
    wide = np.isfinite(low) & np.isfinite(high) & ~self.enabled
    self.space = box(
      np.where(self.enabled, -1, np.where(wide, -np.inf, low)),
      np.where(self.enabled, 1, np.where(wide, np.inf, high)),
    )

  def to_box(self, action: Any) -> np.ndarray:
    """Return actions [..., size] scaled from [-1, 1]."""
    # Huge actions are those of dimensions that are not scaled.
    with np.errstate(over='ignore'):
      mapped = (action + 1) / 2 * (self.high - self.low) + self.low
    return np.where(self.enabled, mapped, action)

  def from_box(self, action: Any) -> np.ndarray:
    """Return actions [..., size] scaled to [-1, 1]."""
    width = self.high - self.low
    with np.errstate(over='ignore'):
      mapped = 2 * (action - self.low) / np.where(width > 0, width, 1) - 1
    return np.where(self.enabled, mapped, action)


class Choice:
  """Choice of a discrete action by the largest entry of a vector.

  Args:
    space: `Discrete` of gym or gymnasium.

  Attributes:
    space: Box of the vectors, [-1, 1] in each dimension.
    start: Smallest action.
  """

  def __init__(self, space: Any):
    ones = np.ones(int(space.n), np.float32)
    self.space = box(-ones, ones)
    self.start = first_action(space) or 0

  def choose(self, vector: Any) -> Any:
    """Return the actions int64 [...] that vectors [..., n] choose."""
    return self.start + np.argmax(vector, -1)


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
    observ_range: Lower bounds and widths of observations, None if they stay.
    action_bounds: Lower and upper bounds of actions, None if they stay.
    start: Smallest discrete action, None if actions are not discrete.

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
    self.start = first_action(action_space)
    self._fit = fitting(action_space)
    self.observ_range: tuple[np.ndarray, np.ndarray] | None = None
    self.action_bounds: tuple[np.ndarray, np.ndarray] | None = None
    self.observation_space, self.action_space = observation_space, action_space
    if bounds := _bounds(observation_space, observ, 'observation'):
      low, high = bounds
      # Constant dimensions become -1.
      width = np.where(high > low, high - low, 1).astype(low.dtype)
      self.observ_range = low, width
      self.observation_space = _unit_box(observation_space)
    if self.start is None:
      self.action_bounds = _bounds(action_space, action, 'action')
      if self.action_bounds:
        self.action_space = _unit_box(action_space)
    elif self.start:
      self.action_space = discrete(action_space.n)

  def observ(self, value: Any) -> Any:
    """Return observations scaled to [-1, 1]."""
    if not self.observ_range:
      return value
    low, width = self.observ_range
    return 2 * (value - low) / width - 1

  def action(self, value: Any) -> Any:
    """Return actions scaled to the range of the environment."""
    if self.start:
      return value + self.start
    if not self.action_bounds:
      return value
    low, high = self.action_bounds
    return (value + 1) / 2 * (high - low) + low

  def clipped_action(self, value: Any) -> Any:
    """Return `action` of the clipped value, see `fitting`."""
    if self.start is None:
      value = np.clip(value, self.action_space.low, self.action_space.high)
    return self._fit(self.action(value))


def _bounds(space, enabled, name):
  """Lower and upper bounds to scale by, or None."""
  finite = find_scalable(space).all()
  if enabled and not finite:
    raise ValueError(f'Cannot normalize infinite {name} range.')
  if enabled is None and not finite:
    _logger.info('Not normalizing infinite %s range.', name)
  if enabled is False or not finite:
    return None
  return _wide_bounds(space)


def _wide_bounds(space):
  """Bounds to scale by; small floats would round what is scaled."""
  low, high = float_bounds(space)
  kind = np.result_type(low, np.float32)
  return low.astype(kind), high.astype(kind)


def float_bounds(space: Any) -> tuple[np.ndarray, np.ndarray]:
  """Return lower and upper bounds as floats, infinite if there are none.

  The largest numbers of float32 and of integers with 32 bits or more are none.
  """
  low, high = (np.asarray(getattr(space, x, np.inf)) for x in ('low', 'high'))
  if low.dtype.kind == 'f':
    # The largest number of float32, or of smaller floats.
    limit = float(min(np.finfo(np.float32).max, np.finfo(low.dtype).max))
  else:
    # gymnasium takes a number a little smaller than the largest one.
    wide = low.dtype.itemsize >= 4
    limit = np.iinfo(low.dtype).max - 2 if wide else np.inf
    low, high = low.astype(np.float32), high.astype(np.float32)
  infinite = low.dtype.type(np.inf)
  return (
    np.where(low <= -limit, -infinite, low),
    np.where(high >= limit, infinite, high),
  )


def _unit_box(space):
  ones = np.ones(space.shape, np.float32)
  return box(-ones, ones)


def dictionary(spaces: Mapping[str, Any]) -> gymnasium.spaces.Dict:
  """Return a dict space whose entries may come from gym or gymnasium."""
  return gymnasium.spaces.Dict({k: convert(v) for k, v in spaces.items()})


def convert(space: Any) -> gymnasium.Space:
  """Convert a space to one of gymnasium's own classes.

  Spaces of old gym, and those of classes of users that are derived from a kind
  of space, count as that kind. Other spaces of gymnasium stay as they are.

  Raises:
    NotImplementedError: If the kind of space is not supported.
  """
  kind, is_current = _find_kind(space), isinstance(space, gymnasium.Space)
  if is_current and not _has_own_class(space):
    return space
  if kind == 'Box':
    return box(space.low, space.high, space.dtype)
  if kind == 'Discrete':
    start = getattr(space, 'start', 0)
    return gymnasium.spaces.Discrete(int(space.n), start=int(start))
  if kind == 'MultiBinary':
    return gymnasium.spaces.MultiBinary(space.n)
  if kind == 'MultiDiscrete':
    start = getattr(space, 'start', None)
    return gymnasium.spaces.MultiDiscrete(np.asarray(space.nvec), start=start)
  if kind == 'Tuple':
    return gymnasium.spaces.Tuple([convert(x) for x in space.spaces])
  if kind == 'Dict':
    parts = {key: convert(part) for key, part in space.spaces.items()}
    # Those of gymnasium keep their order; a plain dict is sorted.
    kept = collections.OrderedDict(parts) if is_current else parts
    return gymnasium.spaces.Dict(kept)
  raise NotImplementedError(f'Unknown kind of space {space!r}.')


_KINDS = 'Box', 'Discrete', 'MultiBinary', 'MultiDiscrete', 'Tuple', 'Dict'


def _find_kind(space):
  """Return the kind of a space; its class may be derived from it."""
  names = (x.__name__ for x in type(space).__mro__)
  return next((x for x in names if x in _KINDS), None)


def _has_own_class(space):
  """Return whether a user has derived a class for a space or a part of it."""
  if not _find_kind(space):
    return False
  below = getattr(space, 'spaces', ())
  below = below.values() if isinstance(below, Mapping) else below
  own = not type(space).__module__.startswith('gymnasium.')
  return own or any(map(_has_own_class, below))


def describe(space: Any, path: str = '') -> dict[str, dict[str, Any]]:
  """Describe a space as plain data.

  Args:
    space: Space of gym or gymnasium.
    path: Keys that lead to it, joined by `/`; none by default.

  Returns:
    Dict from path, `agent` if there is none, to a dict, see
    `agents.envs.probe.describe`.

  Raises:
    UsageError: If the kind of space is not supported.
  """
  kind = type(space).__name__
  if kind == 'Dict':
    parts: dict[str, Any] = {}
    for key, below in space.spaces.items():
      parts.update(describe(below, f'{path}/{key}' if path else f'{key}'))
    return parts
  found: dict[str, Any]
  if kind == 'Box':
    # Lists of the bounds of images would fill pages.
    lim = [_plain_bound(x, 2) for x in (space.low, space.high)]
    found = {'typ': kind, 'dim': list(space.shape), 'lim': lim}
    if space.dtype != np.float32:
      found['dtype'] = str(np.dtype(space.dtype))
  elif kind == 'Discrete':
    found = {'typ': kind, 'dim': int(space.n), 'lim': None}
    if start := first_action(space):
      found['start'] = start
  else:
    raise errors.UsageError(
      f'Spaces of the kind {kind} ({space}) are not supported; use an '
      'environment with boxes or discrete spaces, or dictionaries of them.'
    )
  return {path or 'agent': found}


def _plain_bound(bound, least):
  """Lists; a number if all are equal, from some number of dimensions on."""
  if bound.ndim < least or bound.size and bound.min() < bound.max():
    return bound.tolist()
  return bound.flat[0].item() if bound.size else 0
