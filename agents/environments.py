"""Environments of PPO, and those of PyBullet that have no id.

Free of TensorFlow, as environments are built in processes of their own.
"""

import functools
import importlib
from typing import Any

from agents.envs import adapters
from agents.envs import spaces
from agents.envs import vector_env
from agents.run import errors
from agents.run import references
from agents.tools import wrappers
from agents.tools.wrappers import randomness


def make(env: Any, render_mode: str | None = None) -> Any:
  """Create an environment as it comes.

  Args:
    env: Id of PyBullet, gymnasium or gymnasium-robotics, or a function
      without arguments that returns an environment.
    render_mode: Mode for `render`, usually `rgb_array`; None for no images.

  Returns:
    Environment with the interface of `agents.envs.adapters`. Once it is
    seeded, its episodes depend on nothing else in the process.

  Raises:
    UsageError: If the environment is unknown, lacks what it needs, or does
      not have boxes of observations and actions.
  """
  if isinstance(env, str):
    created = adapters.make(env, render_mode)
  else:
    created = env()
  spaces.check_continuous(created, env, 'PPO')
  return randomness.with_own_randomness(created)


def seeded(env: Any, seed: int) -> Any:
  """Create an environment as it comes, and seed it.

  Args:
    env: See `make`.
    seed: Integer.
  """
  created = make(env)
  created.seed(seed)
  return created


def wrapped(env: Any, max_length: int | None = None) -> Any:
  """Create an environment with the wrappers of the original.

  Args:
    env: See `make`.
    max_length: Number of steps of the longest episode; no limit if None.
  """
  created = make(env)
  if max_length:
    created = wrappers.LimitDuration(created, max_length)
  created = wrappers.RangeNormalize(created)
  created = wrappers.ClipAction(created)
  created = wrappers.ConvertTo32Bit(created)
  return wrappers.CacheSpaces(created)


def batch(
  config: Any,
  num_agents: int,
  seed: int | None = None,
  num_workers: int | None = 0,
) -> vector_env.VectorEnv:
  """Create the environments of a training run.

  They give the numbers of `wrapped`, but are stepped as a batch.

  Args:
    config: AttrDict with `env` and `max_length`.
    num_agents: Number of environments.
    seed: The environment of index i is seeded by this plus i, if given.
    num_workers: Number of processes; 0 for the current one, None for one per
      core.

  Returns:
    `VectorEnv`.
  """
  constructors = [
    functools.partial(make, config.env)
    if seed is None
    else functools.partial(seeded, config.env, seed + index)
    for index in range(num_agents)
  ]
  return vector_env.VectorEnv(constructors, config.max_length, num_workers)


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
  with adapters.quietly():
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
    with adapters.quietly():
      return importlib.import_module(f'pybullet_envs.bullet.minitaur_{name}')
  except ImportError as error:
    raise errors.UsageError(
      f'The minitaur needs PyBullet, which cannot be imported ({error}): '
      f'{errors.how_to_install("pybullet")}.'
    ) from None
