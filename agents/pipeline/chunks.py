"""Build the chunks of explorers step by step."""

from typing import Any

import numpy as np

_FIRST_CAPACITY = 65


class Chunk:
  """Arrays [workers, T + 1, ...] that are filled in place.

  Entries that are not set are NaN, or zero for types without NaN.

  Args:
    workers: Number of workers.
    steps: Number of steps if known; otherwise the arrays grow.
  """

  def __init__(self, workers: int, steps: int | None = None) -> None:
    self._workers = workers
    self._capacity = steps + 1 if steps else _FIRST_CAPACITY
    self._arrays: dict[str, np.ndarray] = {}

  def put(self, time: int, key: str, values: Any) -> None:
    """Set the values [workers, ...] of a time index, or a single number."""
    values = np.asarray(values)
    self._find(time, key, values.shape[1:], values.dtype)
    self._arrays[key] = widened(self._arrays[key], values.dtype)
    self._arrays[key][:, time] = values

  def put_row(self, time: int, key: str, worker: int, value: Any) -> None:
    """Set the value of a single worker unless its shape has changed."""
    value = np.asarray(value)
    array = self._find(time, key, value.shape, value.dtype)
    if array.shape[2:] == value.shape:
      array[worker, time] = value

  def finish(self, steps: int) -> dict[str, np.ndarray]:
    """Return the arrays after some steps, including the half-step."""
    return {k: v[:, : steps + 1] for k, v in self._arrays.items()}

  def _find(self, time, key, shape, dtype):
    """Array of a key, with room for a time index."""
    if time >= self._capacity:
      more = max(self._capacity, time + 1 - self._capacity)
      for name, array in self._arrays.items():
        tail = _fill((self._workers, more, *array.shape[2:]), array.dtype)
        self._arrays[name] = np.concatenate([array, tail], 1)
      self._capacity += more
    if key not in self._arrays:
      self._arrays[key] = _fill((self._workers, self._capacity, *shape), dtype)
    return self._arrays[key]


def widened(array: np.ndarray, dtype: Any) -> np.ndarray:
  """Return an array that holds numbers of a type, the same one if it does.

  The first numbers decide on the type of an array, and may happen to be whole.
  """
  # If the first numbers are floats, others are rounded to their size.
  whole = array.dtype.kind in 'biu'
  if np.can_cast(dtype, array.dtype, 'safe' if whole else 'same_kind'):
    return array
  return array.astype(np.result_type(array, dtype))


def _fill(shape, dtype):
  array = np.zeros(shape, dtype)
  if dtype.kind == 'f':
    # `np.full` takes several times as long for the arrays of a single step.
    array.fill(np.nan)
  return array
