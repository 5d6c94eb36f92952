"""Random number generators that the whole process shares."""

import random
from collections.abc import Mapping
from typing import Any

import numpy as np


def seed_of_rank(seed: int | None, step: int, rank: int) -> int | None:
  """Return the seed of an MPI process for a run that begins at a step.

  Args:
    seed: Seed of the run, or None for none.
    step: Global step, 0 for a new run.
    rank: Rank of the process.
  """
  # A prime keeps ranks apart from continued runs, which add their steps.
  return None if seed is None else seed + step + 7919 * rank


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
