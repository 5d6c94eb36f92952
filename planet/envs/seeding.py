"""Environments whose random numbers are known."""

import zlib
from collections.abc import Callable
from typing import Any


def seeded_constructor(env_ctor: Callable, seed: int | None) -> Any:
  """Build an environment and seed it, its actions included.

  Args:
    env_ctor: Function without arguments that returns an environment.
    seed: Integer, None to leave the environment as it is.

  Returns:
    The environment.
  """
  env = env_ctor()
  if seed is not None:
    env.action_space.seed(seed)
    if hasattr(env, 'seed'):
      env.seed(seed)
  return env


def derive_seed(seed: int | None, *names: object) -> int | None:
  """Derive a different seed for each purpose, None without a seed.

  Args:
    seed: Integer or None.
    *names: Numbers or text that tell the purposes apart.
  """
  if seed is None:
    return None
  text = '/'.join(str(name) for name in (seed,) + names)
  return zlib.crc32(text.encode()) % (2**31 - 1000)
