"""What all wrappers have in common."""

from typing import Any


class Wrapper:
  """Forward everything to the environment below.

  Args:
    env: Environment with `reset`, `step`, and both spaces.
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
