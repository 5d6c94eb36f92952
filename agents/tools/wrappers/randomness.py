"""Environments that draw from the generators of the whole process."""

import contextlib
import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from agents.tools.wrappers.base import Wrapper

# Modules of environments that draw from generators of their own only.
_OWN_GENERATORS = (
  'gymnasium.',
  'gymnasium_robotics.',
  'pybullet_envs.gym_',
)


def with_own_randomness(env: Any) -> Any:
  """Return an environment that depends on nothing else once it is seeded.

  Args:
    env: Environment as it comes, which is wrapped if it has to be.
  """
  kind = type(getattr(env, 'unwrapped', env))
  if kind.__module__.startswith(_OWN_GENERATORS):
    return env
  return OwnRandomness(env)


class OwnRandomness(Wrapper):
  """Give a seeded environment global generators of its own.

  Some environments draw from `random` and `np.random`, whatever their seed
  is, and so depend on everything else in the process. From `seed` on, these
  generators are exchanged for the time of each call; until then nothing
  changes. Not for several threads at once.

  This costs some 20 microseconds per call, most of it for the state of
  `random`. Exchanging the generator of NumPy, instead of its state, is cheap,
  but drops the second of a pair of normal numbers that it may hold.

  Args:
    env: Environment to wrap; it need not have a method `seed`.
  """

  def __init__(self, env: Any):
    super().__init__(env)
    self._python: Any = None
    self._numpy: Any = None

  def seed(self, seed: int) -> None:
    """Seed the environment, if it can be seeded, and both generators."""
    if hasattr(self._env, 'seed'):
      self._env.seed(seed)
    self._python = random.Random(seed).getstate()
    self._numpy = np.random.MT19937(seed % 2**32)

  def step(self, action: Any, *args: Any, **kwargs: Any) -> tuple:
    with self.exchanged():
      return self._env.step(action, *args, **kwargs)

  def reset(self, *args: Any, **kwargs: Any) -> Any:
    with self.exchanged():
      return self._env.reset(*args, **kwargs)

  @contextlib.contextmanager
  def exchanged(self) -> Iterator[None]:
    """Let the generators of this environment be those of the process."""
    if self._python is None:
      yield
      return
    # Its stubs do not name these functions.
    legacy: Any = np.random
    others = random.getstate(), legacy.get_bit_generator()
    random.setstate(self._python)
    legacy.set_bit_generator(self._numpy)
    try:
      yield
    finally:
      self._python = random.getstate()
      random.setstate(others[0])
      legacy.set_bit_generator(others[1])
