"""What PlaNet, PPO and HER need of an environment.

Every training looks at the spaces and at one step; `check`, the program
`agents-check-env`, plays an episode.
"""

import dataclasses
import time
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from agents.envs import adapters, guard, opengl, spaces
from agents.run import errors

# Systems as users name them, and as sentences do.
SYSTEMS = {'planet': 'PlaNet', 'ppo': 'PPO', 'her': 'HER'}
GOAL_KEYS = ('observation', 'achieved_goal', 'desired_goal')
_NEEDED = {
  'observation': 'a Box, such as a one-hot vector or a flattened dictionary',
  'action': 'a Box or Discrete space',
}
# Warnings of gymnasium's checker that concern neither of the systems.
_TASTE = r'.*(is probably too|symmetric and normalized)'
# Episodes longer than this count as endless.
_MOST_STEPS = 10000
# Numbers of steps to compare rewards and to render at.
_REWARDS, _RENDER_STEP = 10, 3


def check_spaces(env: Any, name: Any, system: str) -> None:
  """Make sure that a system works with the spaces of an environment.

  For HER, makes a step to compute rewards of goals.

  Args:
    env: Environment with the interface of `agents.envs.adapters`, unwrapped.
    name: What the user calls it.
    system: Key of `SYSTEMS`.

  Raises:
    UsageError: Saying what the first problem is.
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
    EnvError: Naming the first problem.
  """
  name = guard.find_name(env) if name is None else name
  with guard.explained(name, 'when it is reset'):
    observation = env.reset()
  problem = _find_problem(observation, env.observation_space, 'the reset')
  info: dict[str, Any] = {}
  if not problem:
    with guard.explained(name, 'in step 1'):
      after, reward, _, info = env.step(env.action_space.sample())
    problem = _find_problem(after, env.observation_space, 'step 1', reward)
  if problem:
    raise errors.EnvError(f'Environment {name} is not usable: {problem}')
  return observation, info


@dataclasses.dataclass
class Report:
  """What `check` has found.

  Attributes:
    facts: Dict from a word to what is good to know.
    problems: Dict from the names of systems to sentences that say why they
      cannot use the environment, and what to do.
    hints: Sentences about what works, but may not be meant.
  """

  facts: dict[str, str] = dataclasses.field(default_factory=dict)
  problems: dict[str, list[str]] = dataclasses.field(default_factory=dict)
  hints: list[str] = dataclasses.field(default_factory=list)

  def lines(self) -> list[str]:
    """Return the report as text."""
    result = [f'{key}: {value}' for key, value in self.facts.items()]
    for system, found in self.problems.items():
      result.append(f'{SYSTEMS[system]}: {"fails" if found else "ok"}')
      result += [f'  - {x}' for x in found]
    return result + [f'Hint: {x}' for x in self.hints]

  def add(self, system: str, problem: str | None) -> None:
    """Note a problem of a system, if there is one and the system is asked."""
    if problem and system in self.problems:
      self.problems[system].append(problem)


def check(
  env_id: str, systems: Iterable[str] = tuple(SYSTEMS), seed: int = 0
) -> Report:
  """Play one episode with random actions.

  Images may need OpenGL, so call this from a process without TensorFlow.

  Args:
    env_id: Id of the environment.
    systems: Which of `SYSTEMS` to check for.
    seed: Seed of environment and actions.

  Raises:
    UsageError: If the id is unknown.
    EnvError: If the environment raises an error.
  """
  report = Report(problems={name: [] for name in systems})
  env, images = _make(env_id, report)
  try:
    for system in report.problems:
      try:
        check_spaces(env, env_id, system)
      except errors.UsageError as error:
        report.add(system, str(error))
    report.facts['observations'] = str(env.observation_space)
    report.facts['actions'] = str(env.action_space)
    if not np.isfinite(getattr(env.action_space, 'low', 0)).all():
      report.hints.append(
        'The action space has no finite bounds, so actions are not scaled, and '
        'PlaNet plans within [-1, 1]; declare bounds in action_space.'
      )
    if isinstance(env, adapters.GymnasiumEnv):
      report.hints += _ask_gymnasium(env)
    _play(env, env_id, seed, images, report)
  finally:
    env.close()
  return report


def _make(env_id, report):
  """Return the environment, and whether it can render images."""
  try:
    if adapters.renders_with_opengl(env_id):
      opengl.select_backend()
    return adapters.make(env_id, 'rgb_array'), True
  except (errors.UsageError, errors.EnvError) as error:
    # Whatever else is wrong is raised once more.
    env = adapters.make(env_id)
    message = f"Cannot be created with render_mode='rgb_array': {error}"
    report.add('planet', message)
    return env, False


def _ask_gymnasium(env):
  """Return what the checker of gymnasium says."""
  from gymnasium.utils import env_checker

  with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter('always')
    warnings.filterwarnings('ignore', _TASTE)
    try:
      env_checker.check_env(env.unwrapped, skip_render_check=True)
      found = []
    except (
      Exception
    ) as error:  # Assertions, or whatever the user's code raises.
      found = [str(error)]
  # Without the colours.
  found += [str(x.message)[5:-4] for x in caught]
  return [f"gymnasium's check_env: {x}" for x in dict.fromkeys(found)]


def _play(env, env_id, seed, images, report):
  """Play an episode; the first problem concerns all systems."""
  env.seed(seed)
  with guard.explained(env_id, 'when it is reset'):
    observation = env.reset()
  problem = _find_problem(observation, env.observation_space, 'reset')
  kept: list[tuple] = []
  seconds, length, done, info = 1e-9, 0, False, {}
  while not done and length < _MOST_STEPS:
    action = env.action_space.sample()
    length += 1
    began = time.perf_counter()
    with guard.explained(env_id, f'in step {length}'):
      observation, reward, done, info = env.step(action)
    seconds += time.perf_counter() - began
    problem = problem or _find_problem(
      observation, env.observation_space, f'step {length}', reward
    )
    kept += [(observation, reward, info)][: _REWARDS - len(kept)]
    if length == _RENDER_STEP and images:
      _check_render(env, env_id, report)
  report.facts['episode'] = f'{length} steps' + ('' if done else ' and more')
  report.facts['speed'] = f'{length / seconds:.0f} steps per second'
  if not done:
    report.hints.append(
      f'The episode did not end within {_MOST_STEPS} steps; register the '
      'environment with max_episode_steps, or set max_length for PPO.'
    )
  if report.problems.get('her') == []:
    _check_goals(env, kept, length, report)
  for found in report.problems.values():
    found[:0] = [problem] if problem else []


def _check_render(env, env_id, report):
  try:
    with guard.explained(env_id, 'when it renders'):
      image = env.render('rgb_array')
    guard.check_image(image, env_id)
    kind = f'{np.asarray(image).dtype} {list(np.shape(image))}'
    report.facts['images'] = kind
    if not (kind.startswith('uint8') and kind.endswith(', 3]')):
      raise errors.EnvError(
        f'render returns {kind}; it must return uint8 [height, width, 3].'
      )
  except errors.EnvError as error:
    message = 'To train without images, use --params "{observations: vector}".'
    report.add('planet', f'{error} {message}')


def _check_goals(env, kept, length, report):
  """Compare rewards of steps to those that hindsight computes."""
  limit = env.spec.max_episode_steps
  if length < limit:
    report.add(
      'her',
      f'The episode ended after {length} of {limit} steps; HER needs '
      'episodes of equal length, so never set terminated.',
    )
  achieved, desired = (
    np.stack([x[key] for x, _, _ in kept])
    for key in ('achieved_goal', 'desired_goal')
  )
  rows = {
    key: np.stack([np.reshape(x[key], [-1]) for _, _, x in kept])
    for key in kept[0][2]
    if key != 'truncated' and all(key in x for _, _, x in kept)
  }
  rewards = env.unwrapped.compute_reward(achieved, desired, rows)
  if not np.allclose(rewards, [reward for _, reward, _ in kept]):
    report.add(
      'her',
      'compute_reward and step return different rewards; call '
      'compute_reward in step.',
    )
  if 'is_success' not in kept[-1][2]:
    report.hints.append(
      "info has no 'is_success', so HER cannot report a success rate."
    )


def _find_problem(observation, space, when, reward=0.0):
  """Return what is wrong with an observation and a reward, or None."""
  for name, value, part in _pairs(observation, space, 'The observation'):
    array = np.asarray(value)
    if array.shape != (part.shape or ()):
      return (
        f'{name} of {when} has shape {array.shape}, but its space has shape '
        f'{part.shape}; make them equal.'
      )
    if array.dtype.kind in 'fc' and guard.not_finite(array):
      kind = guard.not_finite(array)
      return f'{name} of {when} is {kind}; return finite numbers.'
    if not np.can_cast(array.dtype, part.dtype, 'same_kind'):
      return (
        f'{name} of {when} has dtype {array.dtype}, but its space has dtype '
        f'{part.dtype}; make them equal.'
      )
  if np.shape(reward) not in ((), (1,)):
    return (
      f'The reward of {when} has shape {np.shape(reward)}; return a number.'
    )
  kind = guard.not_finite(reward)
  return kind and f'The reward of {when} is {kind}; return finite numbers.'


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
  if any(len(shape) != 1 for shape in shapes.values()):
    return f'observations must be vectors, but have shapes {shapes}.'
  if shapes['achieved_goal'] != shapes['desired_goal']:
    return f'achieved and desired goal differ in shape: {shapes}.'
  if len(getattr(env.action_space, 'shape', None) or ()) != 1:
    return f'actions must be vectors, not {env.action_space}.'
  if not getattr(getattr(env, 'spec', None), 'max_episode_steps', None):
    return 'it has no time limit; register it with max_episode_steps.'
  compute = getattr(env.unwrapped, 'compute_reward', None)
  if compute is None:
    return 'it has no method compute_reward(achieved, desired, info).'
  env.reset()
  _, _, _, info = env.step(env.action_space.sample())
  rows = {k: np.repeat(np.reshape(v, [1, -1]), 3, 0) for k, v in info.items()}
  goals = np.zeros((3, *shapes['desired_goal']))
  try:
    shape = np.shape(compute(goals, goals, rows))
  except Exception as error:  # Whatever the user's code may raise.
    return (
      'compute_reward fails for a batch of achieved and desired goals '
      f'{goals.shape} and a dict of arrays as info: {error!r}.'
    )
  if shape != (3,):
    return (
      'compute_reward must return one reward per goal, shape (3,) for three '
      f'goals, but returns shape {shape}.'
    )
  return None
