"""Numbers of environments that are not finite, called by their kind."""

from typing import Any

import numpy as np

from agents.run import errors
from agents.tools.wrappers.base import Wrapper


class NotFinite(errors.EnvError, ValueError):
  """An environment returns NaN or infinite numbers."""


def find_problem(value: Any) -> str | None:
  """Return 'NaN' or 'infinite' if some numbers are, None if all are finite."""
  if np.isfinite(value).all():
    return None
  return 'NaN' if np.isnan(value).any() else 'infinite'


def check(value: Any, what: str, env: Any) -> None:
  """Refuse numbers that are not finite.

  Args:
    value: Number or float array.
    what: What it is, `observation` or `reward`.
    env: Environment that it comes from, or the name of one.

  Raises:
    NotFinite: Saying what is wrong, and the name of the environment.
  """
  problem = find_problem(value)
  if problem:
    name = env if isinstance(env, str) else find_name(env)
    kind = problem[0].upper() + problem[1:]
    raise NotFinite(f'{kind} {what} encountered in {name}.')


def find_name(env: Any) -> str:
  """Return the id of an environment, or its class if it has none."""
  spec = getattr(env, 'spec', None)
  known = getattr(env, 'requested_id', None) or getattr(spec, 'id', None)
  while isinstance(env, Wrapper):
    env = env._env
  return known or type(env).__name__
