"""Check that PlaNet, PPO and HER can use an environment.

Every training checks the spaces and one step; `check`, used by the program
`agents-check-env`, plays an episode.
"""

import dataclasses
import itertools
import re
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from agents.envs import adapters, guard, spaces, wrappers
from agents.run import errors

# Systems as users name them, and as sentences do.
SYSTEMS = {'planet': 'PlaNet', 'ppo': 'PPO', 'her': 'HER'}
GOAL_KEYS = ('observation', 'achieved_goal', 'desired_goal')
SUCCESS_KEYS = ('is_success', 'success')
_NEEDED = {
  'observation': 'a Box, such as a one-hot vector or a flattened dictionary',
  'action': 'a Box or Discrete space',
}
# Warnings of gymnasium's checker that concern neither of the systems.
_TASTE = r'.*(is probably too|symmetric and normalized)'
# Episodes longer than this count as endless.
_MOST_STEPS = 10000
_REWARD = spaces.box(-np.inf, np.inf)
# Environments whose rewards of a batch mix up rows and columns, in the original
# as well: the angle that should not count is overwritten in one row.
REWARD_ROW_BY_ROW = 'HandManipulatePen'
# Number of the step to render at.
_RENDER_STEP = 3


def check_spaces(env: Any, name: Any, system: str) -> None:
  """Check that a system supports the spaces of an environment.

  For HER, also takes a step to check the rewards of goals.

  Args:
    env: Environment with the interface of `agents.envs.adapters`, unwrapped.
    name: Name that the user gave.
    system: Key of `SYSTEMS`.

  Raises:
    UsageError: Describes the first problem.
    EnvError: If the step fails.
  """
  if system == 'her':
    with guard.explained(name, 'in its first step'):
      problem = _find_goal_problem(env)
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
  if discrete:
    return
  if len(env.action_space.shape) != 1:
    raise errors.UsageError(
      f'The actions of {name} have shape {env.action_space.shape}, but '
      f'{SYSTEMS[system]} needs vectors.'
    )
  low, high = spaces.float_bounds(env.action_space)
  unscaled = ~spaces.find_scalable(env.action_space)
  if system == 'planet' and (unscaled & ((low > -1) | (high < 1))).any():
    raise errors.UsageError(
      f'The actions of {name} have only one bound, or bounds too far apart to '
      'scale, but PlaNet plans within [-1, 1]; declare two finite bounds.'
    )


def find_time_limit(env: Any) -> int | None:
  """Return the time limit of an environment in steps, None if unknown."""
  spec = getattr(env, 'spec', None)
  limit = getattr(spec, 'max_episode_steps', None)
  return limit or getattr(env, '_max_episode_steps', None)


def try_step(env: Any, name: Any = None) -> tuple[Any, float, dict[str, Any]]:
  """Reset an environment, take a random action, and check the results.

  Args:
    env: Environment with or without wrappers, not seeded.
    name: Name that the user gave; the environment's id by default.

  Returns:
    Tuple of the initial observation, and the reward and info of the step.

  Raises:
    EnvError: Describes the first problem.
  """
  name = guard.find_name(env) if name is None else name
  played = _play(env, name)
  (observation, reward, _, info), problem = next(played)
  if not problem:
    (_, reward, _, info), problem = next(played)
  if problem:
    raise errors.EnvError(f'Environment {name} is not usable: {problem}')
  return observation, float(np.squeeze(reward)), info


def has_positive_rewards(
  compute: Callable[..., Any], observation: dict, info: Mapping[str, Any]
) -> bool:
  """Return whether rewards of a goal environment can be above 0.

  Where goals are rarely reached by chance, no step shows that. Therefore asks
  for the rewards of goals that are reached, too.

  Args:
    compute: Function of batches of achieved goals, goals and infos to rewards.
    observation: Observation of a goal environment.
    info: Info of a step.
  """
  achieved, desired = (observation[key] for key in GOAL_KEYS[1:])
  pairs = [(achieved, desired), (achieved, achieved), (desired, desired)]
  rows = {
    k: np.repeat([v], len(pairs), 0) for k, v in find_numbers(info).items()
  }
  rewards = compute(*(np.array(x) for x in zip(*pairs)), rows)
  return bool((np.asarray(rewards, float) > 0).any())


def find_success(info: Mapping[str, Any]) -> float | None:
  """Return whether an info reports success, None if it does not say.

  Environments name it `is_success` or, like mazes, `success`.
  """
  for key in SUCCESS_KEYS:
    value = np.asarray(info.get(key))
    if value.size == 1 and value.dtype.kind in 'biuf':
      return float(value.reshape(()))
  return None


def find_numbers(info: Mapping[str, Any]) -> dict[str, np.ndarray]:
  """Return the numbers and arrays of numbers in an info, as vectors."""
  flat = {k: np.ravel(v) for k, v in info.items() if not isinstance(v, dict)}
  return {k: v for k, v in flat.items() if v.dtype.kind in 'biuf' and v.size}


def _play(env, name):
  """Play an episode with random actions.

  Yields:
    Tuple of a transition and its problem, or None: first for the reset, as a
    transition without reward, then for each step.
  """
  space = env.observation_space
  with guard.explained(name, 'in reset'):
    observation = env.reset()
  yield (observation, 0, False, {}), _find_problem(observation, space, 'reset')
  number, done = 0, False
  while not done:
    number += 1
    with guard.explained(name, f'in step {number}'):
      transition = env.step(spaces.sample(env.action_space))
    observation, reward, done, _ = transition
    problem = _find_problem(observation, space, f'step {number}', reward)
    yield transition, problem


@dataclasses.dataclass
class Report:
  """Result of `check`.

  Attributes:
    facts: Dict from name to value of useful facts.
    problems: Dict from system to sentences that say why it cannot use the
      environment, and what to do.
    hints: Sentences about what works but may be unintended.
  """

  facts: dict[str, str] = dataclasses.field(default_factory=dict)
  problems: dict[str, list[str]] = dataclasses.field(default_factory=dict)
  hints: list[str] = dataclasses.field(default_factory=list)

  def lines(self) -> list[str]:
    """Return the lines of the report."""
    result = [f'{key}: {value}' for key, value in self.facts.items()]
    for system, found in self.problems.items():
      result.append(f'{SYSTEMS[system]}: {"fails" if found else "ok"}')
      result += [f'  - {x}' for x in found]
    return result + [f'Hint: {x}' for x in self.hints]

  def add(self, system: str, problem: str) -> None:
    """Add a problem of a system, if that is being checked."""
    if system in self.problems:
      self.problems[system].append(problem)


def check(
  env_id: str,
  systems: Iterable[str] = tuple(SYSTEMS),
  seed: int = 0,
  settings: Mapping[str, Any] | None = None,
) -> Report:
  """Play one episode with random actions.

  Rendering may need OpenGL, so call this from a process without TensorFlow.

  Args:
    env_id: Id of the environment.
    systems: Keys of `SYSTEMS` to check for.
    seed: Seed of the environment and the actions.
    settings: Arguments of the environment.

  Raises:
    UsageError: If the id is unknown, or the environment refuses the settings.
    EnvError: If the environment raises an error.
  """
  report = Report(problems={name: [] for name in systems})
  env, images = _make(env_id, report, settings or {})
  try:
    for system in report.problems:
      try:
        check_spaces(env, env_id, system)
      except errors.UsageError as error:
        report.add(system, str(error))
    report.facts['observations'] = str(env.observation_space)
    report.facts['actions'] = str(env.action_space)
    space = env.action_space
    if hasattr(space, 'low') and not spaces.find_scalable(space).all():
      report.hints.append(
        'The action space has no finite bounds: actions are not scaled, and '
        'PlaNet plans within [-1, 1]. Declare bounds in action_space.'
      )
    if isinstance(env, adapters.GymnasiumEnv):
      report.hints += _ask_gymnasium(env)
    env.seed(seed)
    _check_episode(env, env_id, images, report)
  finally:
    env.close()
  return report


def _make(env_id, report, settings):
  """Return the environment, and whether it can render images."""
  try:
    return adapters.make(env_id, 'rgb_array', **settings), True
  except (errors.UsageError, errors.EnvError) as error:
    # Whatever else is wrong is raised once more.
    env = adapters.make(env_id, **settings)
    message = f"It cannot be created with render_mode='rgb_array': {error}"
    report.add('planet', message)
    return env, False


def _ask_gymnasium(env):
  """Return the problems that gymnasium's checker finds."""
  from gymnasium.utils import env_checker

  found = []
  with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter('always')
    warnings.filterwarnings('ignore', _TASTE)
    try:
      env_checker.check_env(env.unwrapped, skip_render_check=True)
    except Exception as error:  # Whatever the user's code may raise.
      found.append(str(error))
  # Without the colours of gymnasium's warnings.
  found += [re.sub(r'\x1b\[\d+m', '', str(x.message)) for x in caught]
  return [f"gymnasium's check_env: {x}" for x in dict.fromkeys(found)]


def _check_episode(env, env_id, images, report):
  """Play an episode; the first problem concerns all systems."""
  first_problem, rewarded = None, -np.inf
  began = time.perf_counter()
  played = itertools.islice(_play(env, env_id), _MOST_STEPS + 1)
  for length, (transition, problem) in enumerate(played):
    reward, done, info = transition[1:]
    if length:
      rewarded = max(rewarded, np.max(reward))
    first_problem = first_problem or problem
    if length == _RENDER_STEP and images:
      paused = time.perf_counter()
      _check_render(env, env_id, report)
      began += time.perf_counter() - paused
  report.facts['episode'] = f'{length} steps' + ('' if done else ' and more')
  speed = length / (time.perf_counter() - began)
  report.facts['speed'] = f'at least {speed:.0f} steps per second'
  if not done:
    report.hints.append(
      f'The episode did not end within {_MOST_STEPS} steps; register the '
      'environment with max_episode_steps, or set max_length for PPO.'
    )
  if report.problems.get('her') == []:
    limit = find_time_limit(env) or 0
    if done and length < limit:
      report.add(
        'her',
        f'The episode ended after {length} of {limit} steps; HER needs '
        'episodes of equal length, so never set terminated.',
      )
    if find_success(info) is None:
      report.hints.append(
        "info has no 'is_success', so HER cannot report a success rate."
      )
    compute = env.unwrapped.compute_reward
    if rewarded > 0 or has_positive_rewards(compute, transition[0], info):
      report.hints.append(
        'Rewards can be above 0, so HER uses --clip_pos_returns=False.'
      )
    if np.any(env.action_space.high != 1):
      report.hints.append(
        f'Actions go up to {env.action_space.high}; HER uses 1 unless --max_u '
        'is given.'
      )
  for found in report.problems.values():
    found[:0] = [first_problem] if first_problem else []


def _check_render(env, env_id, report):
  try:
    image = np.asarray(wrappers.Guard(env, env_id).render())
    kind = f'{image.dtype} {list(image.shape)}'
    report.facts['images'] = kind
    if image.dtype != np.uint8 or image.shape[2] != 3:
      raise errors.EnvError(
        f'render returns {kind}; it must return uint8 [height, width, 3].'
      )
  except errors.EnvError as error:
    message = 'To train without images, use --params "{observations: vector}".'
    report.add('planet', f'{error} {message}')


def _find_problem(observation, space, when, reward=0.0):
  """Return the problem of an observation and a reward, or None."""
  parts = [*_pairs(observation, space, 'The observation')]
  # Some environments return rewards in arrays.
  parts.append(('The reward', np.squeeze(reward), _REWARD))
  for name, value, part in parts:
    array = np.asarray(value)
    if array.shape != part.shape or not np.can_cast(
      array.dtype, part.dtype, 'same_kind'
    ):
      return (
        f'{name} in {when} has shape {array.shape} and dtype {array.dtype}, '
        f'but its space is {part}; make them match.'
      )
    kind = array.dtype.kind in 'fc' and guard.not_finite(array)
    if kind:
      return f'{name} in {when} is {kind}; return finite numbers.'
  return None


def _pairs(
  observation: Any, space: Any, name: str
) -> Iterator[tuple[str, Any, Any]]:
  """Yield name, value and space of all parts of an observation."""
  if hasattr(space, 'spaces') and isinstance(observation, dict):
    for key, part in dict(space.spaces).items():
      if key in observation:
        yield from _pairs(observation[key], part, f'{name} {key!r}')
  else:
    yield name, observation, space


def _find_goal_problem(env):
  """Return part of a sentence about why HER cannot use spaces, or None."""
  parts = getattr(env.observation_space, 'spaces', None)
  if not isinstance(parts, dict) or not set(GOAL_KEYS) <= set(parts):
    found = sorted(parts) if isinstance(parts, dict) else env.observation_space
    return (
      f'observations must be dictionaries with {", ".join(GOAL_KEYS)}, not '
      f'{found}.'
    )
  shapes = {key: parts[key].shape for key in GOAL_KEYS}
  vectors = all(len(shape) == 1 for shape in shapes.values())
  if not vectors or shapes['achieved_goal'] != shapes['desired_goal']:
    return f'they must be vectors, goals of one size, but have shapes {shapes}.'
  if len(getattr(env.action_space, 'shape', None) or ()) != 1:
    return f'actions must be vectors, not {env.action_space}.'
  if not find_time_limit(env):
    return 'it has no time limit; register it with max_episode_steps.'
  compute = getattr(env.unwrapped, 'compute_reward', None)
  if compute is None:
    return 'it has no method compute_reward(achieved, desired, info).'
  env.reset()
  observation, reward, _, info = env.step(spaces.sample(env.action_space))
  rows = {k: np.repeat([v], 3, 0) for k, v in find_numbers(info).items()}
  goals = [np.repeat([observation[key]], 3, 0) for key in GOAL_KEYS[1:]]
  try:
    rewards = np.asarray(compute(*goals, rows), float)
    found = f'returns shape {rewards.shape}' if rewards.shape != (3,) else None
  except Exception as error:  # Whatever the user's code may raise.
    found = f'fails with {error!r}'
  if found:
    return (
      'compute_reward must return one reward per goal, shape (3,) for a batch '
      f'of three goals and a dict of arrays as info, but {found}.'
    )
  if guard.find_name(env).startswith(REWARD_ROW_BY_ROW):
    return None
  if np.isfinite(goals).all() and not np.allclose(rewards[0], reward):
    return (
      f'compute_reward returns {rewards[0]:g} for a step whose reward is '
      f'{float(np.squeeze(reward)):g}; call compute_reward in step.'
    )
  return None
