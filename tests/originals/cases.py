"""Results of a comparison with an original."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np


class Case(NamedTuple):
  """Row of the table.

  Attributes:
    name: Description of the compared numbers.
    numbers: Number of compared numbers.
    difference: Largest relative difference.
    limit: Largest difference that counts as equal.
  """

  name: str
  numbers: int
  difference: float
  limit: float

  @property
  def same(self) -> bool:
    """Whether the difference is within the limit; False for NaN."""
    return self.difference <= self.limit


def relative(
  original: np.ndarray, ours: np.ndarray, floor: float = 1e-6
) -> float:
  """Return the largest difference relative to the original.

  Args:
    original: Float array.
    ours: Array of the same shape.
    floor: Smallest denominator.
  """
  original, ours = np.float64(original), np.float64(ours)
  if original.shape != ours.shape:
    return float('inf')
  scale = np.maximum(np.abs(original), floor)
  return float((np.abs(original - ours) / scale).max())


def relative_norm(original: np.ndarray, ours: np.ndarray) -> float:
  """Return the norm of the difference relative to the original."""
  original, ours = np.float64(original).ravel(), np.float64(ours).ravel()
  return float(np.linalg.norm(original - ours) / np.linalg.norm(original))


def largest(differences: Iterable[float]) -> float:
  """Return the largest difference; NaN if any is NaN, unlike `max`."""
  return float(np.max(list(differences)))


def recorded(function: Callable, results: list) -> Callable:
  """Return a function that also appends its results to a list."""

  def record(*args: Any, **kwargs: Any) -> Any:
    results.append(function(*args, **kwargs))
    return results[-1]

  return record
