"""The minitaur of PyBullet, a quadruped that no id leads to."""

import importlib
from typing import Any

from agents.envs import adapters, quiet
from agents.run import errors, references


@references.nameable
def minitaur_randomizer() -> Any:
  """Create what changes masses, friction and battery in every episode."""
  return _import_minitaur('env_randomizer').MinitaurEnvRandomizer()


@references.nameable
def minitaur(
  duck: bool = False,
  accurate_motor_model_enabled: bool = True,
  motor_overheat_protection: bool = True,
  pd_control_enabled: bool = True,
  env_randomizer: Any = minitaur_randomizer,
  render: bool = False,
) -> adapters.GymEnv:
  """Create the quadruped of PyBullet.

  Args:
    duck: Let it carry a duck.
    accurate_motor_model_enabled: Simulate the electrics of the motors.
    motor_overheat_protection: Switch motors off after too much torque.
    pd_control_enabled: Take actions for angles, which a controller follows.
    env_randomizer: Function without arguments that creates a randomizer, so
      that configurations stay plain data; None for the same robot always.
    render: Open a window.

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
  with quiet.quietly():
    env = constructor(
      accurate_motor_model_enabled=accurate_motor_model_enabled,
      motor_overheat_protection=motor_overheat_protection,
      pd_control_enabled=pd_control_enabled,
      env_randomizer=env_randomizer and env_randomizer(),
      render=render,
    )
  return adapters.GymEnv(env)


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
