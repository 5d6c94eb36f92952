"""Generators of random numbers that a whole process shares."""

import random
from collections.abc import Mapping
from typing import Any

import numpy as np


def set_seeds(seed: int | None) -> None:
  """Seed Python, NumPy's global generator and the default graph.

  Args:
    seed: Whole number, or None to change nothing.
  """
  if seed is None:
    return
  from agents.tools.tf1 import tf

  tf.set_random_seed(seed)
  np.random.seed(seed % 2**32)
  random.seed(seed)


def get_random_state() -> dict[str, Any]:
  """Return the states of Python's and NumPy's generators, for a checkpoint."""
  return {'python': random.getstate(), 'numpy': np.random.get_state()}


def set_random_state(state: Mapping[str, Any]) -> None:
  """Restore what `get_random_state` has returned."""
  random.setstate(state['python'])
  np.random.set_state(state['numpy'])


class Separate:
  """Context whose random numbers are its own, again when it is entered again.

  It begins with numbers of the system, as a new process does.
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
