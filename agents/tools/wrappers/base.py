"""What all wrappers have in common."""


class Wrapper:
  """Forward everything to the environment below.

  Args:
    env: Environment with `reset`, `step`, and both spaces.
  """

  def __init__(self, env):
    self._env = env

  def __getattr__(self, name):
    # Copying and unpickling look for names before `_env` exists.
    if name == '_env' or name.startswith('__'):
      raise AttributeError(name)
    return getattr(self._env, name)

  def step(self, action, *args, **kwargs):
    return self._env.step(action, *args, **kwargs)

  def reset(self, *args, **kwargs):
    return self._env.reset(*args, **kwargs)
