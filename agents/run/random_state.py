"""Random number generators, of the whole process and of environments."""

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


def get_generator_state(env: Any) -> dict[str, Any] | None:
  """Return the state of the generator of an environment.

  Args:
    env: Environment without wrappers. Its `np_random` may be a `RandomState`,
      as in gym until 0.21.

  Returns:
    Dict of plain data and arrays; None for classes without a base, which draw
    from what they like.
  """
  generator = getattr(env, 'np_random', None)
  if isinstance(generator, np.random.RandomState):
    return generator.get_state(legacy=False)
  if isinstance(generator, np.random.Generator):
    return dict(generator.bit_generator.state)
  return None


def set_generator_state(env: Any, state: dict[str, Any] | None) -> None:
  """Restore the result of `get_generator_state`; None changes nothing."""
  if state is None:
    return
  if isinstance(env.np_random, np.random.RandomState):
    env.np_random.set_state(state)
  else:
    env.np_random.bit_generator.state = state


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
