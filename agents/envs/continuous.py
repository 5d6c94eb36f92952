"""Environments of PPO, and batches of them."""

import functools
from typing import Any

from agents.envs import adapters, guard, requirements, vector_env
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
      not have a box of observations, and actions that are vectors or
      discrete.
    EnvError: If its constructor fails.
  """
  if isinstance(env, str):
    created = adapters.make(env, render_mode)
  else:
    created = env()
  requirements.check_spaces(created, env, 'ppo')
  return randomness.with_own_randomness(guard.Guard(created, env))


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
