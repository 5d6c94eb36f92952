"""Physics worlds of PyBullet for environments that have none of their own."""

import functools
import importlib
import inspect
import weakref
from collections.abc import Callable
from typing import Any

from agents.envs.wrappers import Wrapper

# They act on the first world of the process, whoever has created it.
_MODULES = (
  'pybullet_envs.bullet.kuka',
  'pybullet_envs.bullet.kukaGymEnv',
  'pybullet_envs.bullet.kukaCamGymEnv',
  'pybullet_envs.bullet.kuka_diverse_object_gym_env',
)


def needed(env_id: str) -> bool:
  """Whether an environment of PyBullet needs a world made by `OwnWorld`."""
  return env_id.startswith('Kuka')


class OwnWorld(Wrapper):
  """Let an environment of the Kuka robot act in a world of its own.

  As they come, all of them in a process share one world, which each reset
  empties, and which ends with the first of them. The original was not hurt
  by it, as it had a process per environment.

  Args:
    constructor: Function that creates the environment.
  """

  def __init__(self, constructor: Callable[[], Any]):
    self._world = _World()
    self._modules: list[Any] = [
      importlib.import_module(name) for name in _MODULES
    ]
    super().__init__(self._inside(constructor))

  def step(self, *args: Any, **kwargs: Any) -> tuple:
    return self._inside(self._env.step, *args, **kwargs)

  def reset(self, *args: Any, **kwargs: Any) -> Any:
    return self._inside(self._env.reset, *args, **kwargs)

  def render(self, *args: Any, **kwargs: Any) -> Any:
    return self._inside(self._env.render, *args, **kwargs)

  def close(self) -> None:
    """Close the environment and end its world."""
    self._inside(self._env.close)
    self._world.close()

  def _inside(self, function, *args, **kwargs):
    for module in self._modules:
      module.p = self._world
    try:
      return function(*args, **kwargs)
    finally:
      for module in self._modules:
        module.p = _outside


class _World:
  """Functions of PyBullet for a physics server, which ends with this object."""

  def __init__(self):
    import pybullet

    self._server = pybullet.connect(pybullet.DIRECT)
    self.close = weakref.finalize(
      self, pybullet.disconnect, physicsClientId=self._server
    )

  def __getattr__(self, name):
    import pybullet

    value = getattr(pybullet, name)
    if inspect.isbuiltin(value):
      value = functools.partial(value, physicsClientId=self._server)
    setattr(self, name, value)
    return value

  def connect(self, *unused_args, **unused_kwargs):
    return self._server

  def disconnect(self, *unused_args, **unused_kwargs):
    pass

  def loadURDF(self, filename, *pose, **kwargs):
    """Load a model; pybullet takes bare numbers for its first server only."""
    import pybullet

    if len(pose) in (3, 7):
      pose = tuple(x for x in (pose[:3], pose[3:]) if x)
    return pybullet.loadURDF(
      filename, *pose, physicsClientId=self._server, **kwargs
    )


class _Outside:
  """Stands for the module `pybullet` while no environment of `OwnWorld` acts.

  Environments that are garbage disconnect at any time, and would end the
  first world of the process.
  """

  def __getattr__(self, name):
    import pybullet

    return getattr(pybullet, name)

  def disconnect(self, *unused_args, **unused_kwargs):
    pass


_outside = _Outside()
