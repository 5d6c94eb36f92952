"""Observations that are given to an agent, alone or as a batch.

They are arrays, or dicts and tuples of them, as their space is.
"""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np

from agents.envs import guard, images, interfaces, spaces


def read(observation: Any, space: gymnasium.Space) -> Any:
  """Return an observation, or a batch, as arrays in the form of its space.

  Parts that the space lacks are left out; no training reads them.

  Raises:
    ValueError: If it comes with an info or lacks parts of the space.
  """
  check_alone(observation, space)
  return _map(guard.to_array, _pick_parts(observation, space), space)


def check(observation: Any, space: gymnasium.Space) -> int | None:
  """Return the number of observations in a batch, None for a single one.

  Args:
    observation: Result of `read`.
    space: Space of a single observation.

  Raises:
    ValueError: If it does not have the shape of the space, or is infinite or
      NaN.
  """
  count = _count_rows(observation, space)
  check_shape(observation, space, rows=() if count is None else (count,))
  _map(_check_finite, observation, space)
  return count


def check_shape(
  value: Any,
  space: gymnasium.Space,
  name: str = 'observation',
  rows: tuple[int, ...] = (),
) -> None:
  """Raise a ValueError unless an observation fits into its space.

  It has to have its shape and, where the space has choices, be one of them.

  Args:
    value: Array, or dict or tuple of arrays if the space is one.
    space: Space of a single observation.
    name: What the value is, for the error.
    rows: Shape of the batch.
  """
  if isinstance(space, (gymnasium.spaces.Dict, gymnasium.spaces.Tuple)):
    for key, part in _parts(space):
      check_shape(value[key], part, images.name_of((key,)), rows)
    return
  if not (spaces.is_text(space) or _is_array(value)):
    raise ValueError(
      f'The {name} is {value!r:.80}, but must be numbers of shape '
      f'{space.shape} as in the training.'
    )
  expected = (*rows, *(space.shape or ()))
  if np.shape(value) != expected:
    raise ValueError(
      f'The {name} has shape {np.shape(value)}, but must have {expected} as in '
      'the training.'
    )
  if not guard.is_choice(np.asarray(value), space):
    raise ValueError(
      f'The {name} is {value}, but must be in {space} as in the training.'
    )


def _is_array(value):
  """Return whether a value is neither a dictionary nor text."""
  if isinstance(value, Mapping):
    return False
  return np.asarray(value).dtype.kind not in ('S', 'U', 'V')


def check_alone(observation: Any, space: Any) -> None:
  """Raise a ValueError if an observation comes with an info.

  Args:
    observation: What was given to `predict`.
    space: Space of what the environment observes, None if it is not known.
  """
  _, alone = interfaces.read_reset(observation, space)
  if not alone:
    raise ValueError(
      'The observation is a pair with an info, as reset() of an environment '
      'returns it; give only its first part.'
    )


def _pick_parts(value, space):
  """Return the parts that a space has; raise a ValueError if one is missing."""
  if isinstance(space, gymnasium.spaces.Dict):
    if not isinstance(value, Mapping) or not set(space) <= set(value):
      found = sorted(value) if isinstance(value, Mapping) else np.shape(value)
      raise ValueError(
        f'The observation must be a dictionary with {", ".join(space)}, as in '
        f'the training, not {found}.'
      )
    return {key: _pick_parts(value[key], part) for key, part in _parts(space)}
  if isinstance(space, gymnasium.spaces.Tuple):
    if not isinstance(value, (tuple, list)) or len(value) != len(space):
      raise ValueError(
        f'The observation must be a tuple of {len(space)} parts, as in the '
        f'training, not {value!r:.80}.'
      )
    return tuple(_pick_parts(value[key], part) for key, part in _parts(space))
  return value


def _check_finite(value):
  if value.dtype == object:
    # Lists with None are arrays of objects.
    with contextlib.suppress(TypeError, ValueError):
      value = value.astype(float)
  if value.dtype.kind == 'f' and (kind := guard.not_finite(value)):
    raise guard.BadNumber(f'The observation is {kind}; give finite numbers.')


def take_row(observation: Any, space: gymnasium.Space, row: int) -> Any:
  """Return one observation of a batch.

  Args:
    observation: Arrays [n, ...], or dicts or tuples of them.
    space: Space of a single observation.
    row: Index of the observation.
  """
  return _map(lambda x: x[row], observation, space)


def of_one(observation: Any, space: gymnasium.Space) -> Any:
  """Return a batch of one observation, see `take_row`."""
  return _map(lambda x: x[None], observation, space)


def stack(observations: Sequence[Any], space: gymnasium.Space) -> Any:
  """Return a batch of observations of a space, see `take_row`."""
  if isinstance(space, gymnasium.spaces.Tuple):
    return tuple(
      stack([x[key] for x in observations], part) for key, part in _parts(space)
    )
  if isinstance(space, gymnasium.spaces.Dict):
    return {
      key: stack([x[key] for x in observations], part)
      for key, part in _parts(space)
    }
  return np.stack([np.asarray(x) for x in observations])


def _parts(space):
  """Pairs of keys and spaces of a dictionary or tuple."""
  parts = space.spaces
  return parts.items() if isinstance(parts, Mapping) else enumerate(parts)


def _map(function, value, space):
  """Apply a function to an array or to all arrays in dicts and tuples."""
  parts: Any = getattr(space, 'spaces', None)
  if isinstance(value, Mapping):
    parts = parts if isinstance(parts, Mapping) else {}
    return {k: _map(function, x, parts.get(k)) for k, x in value.items()}
  # Some environments return vectors as tuples.
  if isinstance(space, gymnasium.spaces.Tuple):
    return tuple(_map(function, x, y) for x, y in zip(value, parts))
  return function(value)


def _count_rows(observation, space):
  """Number of observations in a batch, None for a single one."""
  while hasattr(space, 'spaces') and isinstance(observation, (Mapping, tuple)):
    key, space = next(iter(_parts(space)))
    observation = observation[key]
  shape = np.shape(observation)
  return shape[0] if shape and shape[1:] == space.shape else None
