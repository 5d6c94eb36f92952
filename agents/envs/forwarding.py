"""Wrappers below the adapters, which take environments as they are."""

import contextlib
import random
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from agents.run import references


class Forwarding:
  """Forward everything to another environment.

  Args:
    env: Environment with `reset` and `step`.
  """

  def __init__(self, env: Any):
    self._env = env

  def __getattr__(self, name: str) -> Any:
    # Copying and unpickling look for names before `_env` exists.
    if name == '_env' or name.startswith('__'):
      raise AttributeError(name)
    return getattr(self._env, name)

  def step(self, action: Any, *args: Any, **kwargs: Any) -> tuple:
    return self._env.step(action, *args, **kwargs)

  def reset(self, *args: Any, **kwargs: Any) -> Any:
    return self._env.reset(*args, **kwargs)

  def close(self) -> None:
    """Close the environment, if it can be closed."""
    getattr(self._env, 'close', lambda: None)()


# Modules of environments that draw from generators of their own only.
_OWN_GENERATORS = (
  'gymnasium.',
  'gymnasium_robotics.',
  'pybullet_envs.gym_',
)


def with_own_randomness(env: Any) -> Any:
  """Return an environment that depends on nothing else once it is seeded.

  Args:
    env: Environment without wrappers; it is wrapped if necessary.
  """
  kind = type(getattr(env, 'unwrapped', env))
  if kind.__module__.startswith(_OWN_GENERATORS):
    return env
  return OwnRandomness(env)


# Threads take turns: what they exchange belongs to the process.
_EXCHANGE = threading.RLock()


@references.nameable
class OwnRandomness(Forwarding):
  """Give a seeded environment its own global random number generators.

  Some environments draw from `random` and `np.random` regardless of their seed,
  so they depend on everything else in the process. After `seed`, the state of
  these generators is swapped during each call; before that nothing changes. In
  several threads, such environments work one after the other.

  It costs about 20 microseconds per call, mostly for the state of `random`.
  NumPy's generator is swapped rather than its state, which is cheap, but drops
  the second of a pair of normal numbers that it may hold.

  Args:
    env: Environment to wrap; it does not need a method `seed`.
  """

  def __init__(self, env: Any):
    super().__init__(env)
    self._python: Any = None
    self._numpy: Any = None

  def seed(self, seed: int) -> None:
    """Seed the environment, if it supports that, and both generators."""
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
    """Use the generators of this environment as those of the process."""
    if self._python is None:
      yield
      return
    # NumPy's stubs lack these functions.
    legacy: Any = np.random
    with _EXCHANGE:
      others = random.getstate(), legacy.get_bit_generator()
      random.setstate(self._python)
      legacy.set_bit_generator(self._numpy)
      try:
        yield
      finally:
        self._python = random.getstate()
        random.setstate(others[0])
        legacy.set_bit_generator(others[1])
