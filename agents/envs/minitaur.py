"""The minitaur of PyBullet, a quadruped without a registered id."""

import importlib
from typing import Any

from agents.envs import adapters, quiet
from agents.run import errors

_DEFAULTS = {
  'accurate_motor_model_enabled': True,
  'motor_overheat_protection': True,
  'pd_control_enabled': True,
  'render': False,
}


def minitaur(duck: bool = False, **changes: Any) -> adapters.GymEnv:
  """Create the quadruped of PyBullet.

  Simulates its motors, with torque protection, and an angle controller; masses,
  friction and battery vary per episode.

  Args:
    duck: Whether it carries a duck.
    **changes: Other arguments of PyBullet's class, such as
      `env_randomizer=None` to always use the same robot.

  Returns:
    Environment with the interface of `agents.envs.adapters`.

  Raises:
    UsageError: If PyBullet is missing.
  """
  # The original looks for the class with the duck in the other module.
  constructor = (
    _import_minitaur('duck_gym_env').MinitaurBulletDuckEnv
    if duck
    else _import_minitaur('gym_env').MinitaurBulletEnv
  )
  if 'env_randomizer' not in changes:
    randomizer = _import_minitaur('env_randomizer').MinitaurEnvRandomizer()
    changes['env_randomizer'] = randomizer
  with quiet.quietly():
    return adapters.GymEnv(constructor(**{**_DEFAULTS, **changes}))


def _import_minitaur(name):
  """Import a module of PyBullet about the minitaur."""
  try:
    with quiet.quietly():
      return importlib.import_module(f'pybullet_envs.bullet.minitaur_{name}')
  except ImportError as error:
    raise errors.UsageError(
      f'The minitaur needs PyBullet, which cannot be imported ({error}): '
      f'{errors.how_to_install("pybullet")}.'
    ) from None
