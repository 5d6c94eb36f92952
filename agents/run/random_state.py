"""Random number generators that the whole process shares."""

import random
from collections.abc import Mapping
from typing import Any

import numpy as np


def set_seeds(seed: int | None) -> None:
  """Seed Python, NumPy's global generator and the default graph.

  Args:
    seed: Integer, or None to change nothing.
  """
  if seed is None:
    return
  from agents.run.tf1 import tf

  tf.set_random_seed(seed)
  np.random.seed(seed % 2**32)
  random.seed(seed)


def get_random_state() -> dict[str, Any]:
  """Return the states of Python's and NumPy's generators for a checkpoint."""
  return {'python': random.getstate(), 'numpy': np.random.get_state()}


def set_random_state(state: Mapping[str, Any]) -> None:
  """Restore the result of `get_random_state`."""
  random.setstate(state['python'])
  np.random.set_state(state['numpy'])


class Separate:
  """Reusable context with its own random numbers.

  It starts with a seed from the system, as a new process does.
  """

  def __init__(self) -> None:
    self._other = {
      'python': random.Random().getstate(),
      'numpy': np.random.RandomState().get_state(),
    }

  def __enter__(self) -> None:
    self._swap()

  def __exit__(self, *unused: Any) -> None:
    self._swap()

  def _swap(self):
    current = get_random_state()
    set_random_state(self._other)
    self._other = current
