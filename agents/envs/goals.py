"""Environments with goals, as hindsight needs them."""

from typing import Any

import numpy as np

KEYS = ('observation', 'achieved_goal', 'desired_goal')


def find_problem(env: Any) -> str | None:
  """Find what keeps an environment from being used with hindsight.

  Args:
    env: Environment with the interface of `agents.envs.adapters`.

  Returns:
    Part of a sentence that names the first thing that is missing, or None.
  """
  parts = getattr(env.observation_space, 'spaces', None)
  if not isinstance(parts, dict) or not set(KEYS) <= set(parts):
    found = sorted(parts) if isinstance(parts, dict) else env.observation_space
    return (
      f'observations must be dictionaries with {", ".join(KEYS)}, not {found}.'
    )
  shapes = {key: parts[key].shape for key in KEYS}
  if any(len(shape) != 1 for shape in shapes.values()):
    return f'observations must be vectors, but have shapes {shapes}.'
  if shapes['achieved_goal'] != shapes['desired_goal']:
    return f'achieved and desired goal differ in shape: {shapes}.'
  if len(getattr(env.action_space, 'shape', None) or ()) != 1:
    return f'actions must be vectors, not {env.action_space}.'
  spec = getattr(env, 'spec', None)
  if not getattr(spec, 'max_episode_steps', None):
    return 'it has no time limit; register it with max_episode_steps.'
  return _find_reward_problem(env, shapes['desired_goal'][0])


def _find_reward_problem(env, size):
  compute = getattr(env.unwrapped, 'compute_reward', None)
  if compute is None:
    return 'it has no method compute_reward(achieved, desired, info).'
  env.reset()
  _, _, _, info = env.step(env.action_space.sample())
  rows = {k: np.repeat(np.reshape(v, [1, -1]), 3, 0) for k, v in info.items()}
  goals = np.zeros((3, size))
  try:
    rewards = np.asarray(compute(goals, goals, rows))
  except Exception as error:  # Whatever the user's code may raise.
    return (
      'compute_reward fails for a batch of achieved and desired goals '
      f'[3, {size}] and a dict of arrays as info: {error!r}.'
    )
  if rewards.shape != (3,):
    return (
      'compute_reward must return one reward per goal, shape (3,) for three '
      f'goals, but returns shape {rewards.shape}.'
    )
  return None
