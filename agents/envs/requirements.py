"""What the systems require of an environment, as far as one step shows it.

Every training looks at this before it begins; `agents.check_env` plays a whole
episode besides.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from agents.envs import finite, goals, guard, spaces
from agents.run import errors

# Systems as users name them, and as sentences do.
SYSTEMS = {'planet': 'PlaNet', 'ppo': 'PPO', 'her': 'HER'}
_NEEDED = {
  'observation': 'a Box; encode discrete observations as vectors',
  'action': 'a Box or Discrete space',
}


def check_spaces(env: Any, name: Any, system: str) -> None:
  """Make sure that a system can do with the spaces of an environment.

  HER asks for rewards of goals besides, for which there is one step.

  Args:
    env: Environment with the interface of `agents.envs.adapters`, as it comes.
    name: What the user calls it.
    system: Key of `SYSTEMS`.

  Raises:
    UsageError: Saying what the first problem is.
    EnvError: If the step fails.
  """
  if system == 'her':
    with guard.explained(name, 'in its first step'):
      problem = goals.find_problem(env)
    if problem:
      raise errors.UsageError(
        f'HER cannot train on {name}: {problem} See docs/her.md, or try '
        'FetchReach-v4.'
      )
    return
  discrete = spaces.is_discrete(env.action_space)
  for kind in ('action', 'observation'):
    space = getattr(env, f'{kind}_space')
    # Boxes of gym and of gymnasium are different classes.
    if type(space).__name__ != 'Box' and not (discrete and kind == 'action'):
      raise errors.UsageError(
        f'The {kind} space of {name} is {space}, but {SYSTEMS[system]} needs '
        f'{_NEEDED[kind]}. Wrap the environment and register it under a new id.'
      )
  if not discrete and len(env.action_space.shape) != 1:
    raise errors.UsageError(
      f'The actions of {name} have shape {env.action_space.shape}, but '
      f'{SYSTEMS[system]} needs vectors.'
    )


def try_step(env: Any, name: Any = None) -> tuple[Any, dict[str, Any]]:
  """Reset an environment, make a step with a random action, look at both.

  Args:
    env: Environment with or without wrappers, not seeded.
    name: What the user calls it; its id by default.

  Returns:
    Tuple of the observation of the reset and the info of the step.

  Raises:
    EnvError: Naming the first thing that no system can do with.
  """
  name = finite.find_name(env) if name is None else name
  with guard.explained(name, 'when it is reset'):
    observation = env.reset()
  problem = find_observation_problem(
    observation, env.observation_space, 'the reset'
  )
  info: dict[str, Any] = {}
  if not problem:
    with guard.explained(name, 'in step 1'):
      after, reward, _, info = env.step(env.action_space.sample())
    problem = find_observation_problem(
      after, env.observation_space, 'step 1'
    ) or find_reward_problem(reward, 'step 1')
  if problem:
    raise errors.EnvError(f'Environment {name} is not usable: {problem}')
  return observation, info


def find_observation_problem(
  observation: Any, space: Any, when: str
) -> str | None:
  """Return a sentence about what is wrong with an observation, or None.

  Args:
    observation: Array, or dict of observations.
    space: Its space.
    when: What has returned it, such as `step 3`.
  """
  for name, value, part in pairs(observation, space):
    array = np.asarray(value)
    if array.shape != (part.shape or ()):
      return (
        f'{name} of {when} has shape {array.shape}, but its space has shape '
        f'{part.shape}; make them equal.'
      )
    if array.dtype.kind in 'fc' and finite.find_problem(array):
      kind = finite.find_problem(array)
      return f'{name} of {when} is {kind}; return finite numbers.'
    if not np.can_cast(array.dtype, part.dtype, 'same_kind'):
      return (
        f'{name} of {when} has dtype {array.dtype}, but its space has dtype '
        f'{part.dtype}; make them equal.'
      )
  return None


def find_reward_problem(reward: Any, when: str) -> str | None:
  """Return a sentence about what is wrong with a reward, or None."""
  if np.shape(reward) not in ((), (1,)):
    return (
      f'The reward of {when} has shape {np.shape(reward)}; return a number.'
    )
  kind = finite.find_problem(reward)
  if kind:
    return f'The reward of {when} is {kind}; return finite numbers.'
  return None


def pairs(
  observation: Any, space: Any, name: str = 'The observation'
) -> Iterator[tuple[str, Any, Any]]:
  """Yield name, value and space of all parts of an observation."""
  if hasattr(space, 'spaces') and isinstance(observation, dict):
    for key, part in dict(space.spaces).items():
      if key in observation:
        yield from pairs(observation[key], part, f'{name} {key!r}')
  else:
    yield name, observation, space
