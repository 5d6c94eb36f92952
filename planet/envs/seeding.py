"""Seeds of environments."""

import zlib
from collections.abc import Callable
from typing import Any


def seeded_constructor(env_ctor: Callable, seed: int | None) -> Any:
  """Create an environment and seed it and its action space.

  Args:
    env_ctor: Function without arguments that returns an environment.
    seed: Integer, or None to skip seeding.
  """
  env = env_ctor()
  if seed is not None:
    env.action_space.seed(seed)
    if hasattr(env, 'seed'):
      env.seed(seed)
  return env


def derive_seed(seed: int | None, *names: object) -> int | None:
  """Derive a separate seed for each purpose; None if `seed` is None.

  Args:
    seed: Integer or None.
    *names: Numbers or strings that identify the purpose.
  """
  if seed is None:
    return None
  text = '/'.join(str(name) for name in (seed,) + names)
  return zlib.crc32(text.encode()) % (2**31 - 1000)
