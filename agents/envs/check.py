"""Check that PlaNet, PPO, HER and DDPG can use an environment.

The requirements are in `agents.envs.contract`, of which every training checks
the spaces and one step. Here, the program `agents-check-env` plays an episode.
"""

import dataclasses
import itertools
import re
import time
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from agents.envs import (
  adapters,
  contract,
  guard,
  images,
  interfaces,
  opengl,
  spaces,
  wrappers,
)
from agents.run import errors

# Warnings of gymnasium's checker that concern none of the systems.
_TASTE = r'.*(is probably too|symmetric and normalized)'
# Episodes longer than this count as endless.
_MOST_STEPS = 10000
# Number of the step to render at.
_RENDER_STEP = 3
_OPENGL = (
  'It opens OpenGL by itself, in software, which crashes in one process with '
  'TensorFlow; switch that off, or train on a machine with a graphics card.'
)
_OLD = (
  'The environment has an interface of earlier versions of gym. That works '
  'here; docs/coming-from.md has the lines to change for gymnasium.'
)
_STATISTICS = (
  '{} keeps statistics that no run stores: each environment has its own, and '
  'those of a continued run or a loaded agent start again. Scale by fixed '
  'numbers; the systems normalize what they observe.'
)

_WIDE = (
  'PPO scales observations by the bounds of their space. Some used less than a '
  'hundred-thousandth of that range, of which float32 keeps few digits or '
  'none; declare the values that occur, or infinite bounds.'
)
# Fraction of a range; float32 tells some ten million parts of it apart.
_LEAST_USED = 1e-5


@dataclasses.dataclass
class Report:
  """Result of `check`.

  Attributes:
    facts: Dict from name to value of useful facts.
    problems: Dict from system to sentences that say why it cannot use the
      environment, and what to do.
    unseen: Sentences about what the episode could not show.
    hints: Sentences about what works but may be unintended.
  """

  facts: dict[str, str] = dataclasses.field(default_factory=dict)
  problems: dict[str, list[str]] = dataclasses.field(default_factory=dict)
  unseen: list[str] = dataclasses.field(default_factory=list)
  hints: list[str] = dataclasses.field(default_factory=list)

  def lines(self) -> list[str]:
    """Return the lines of the report."""
    result = [f'{key}: {value}' for key, value in self.facts.items()]
    for system, found in self.problems.items():
      result.append(f'{contract.SYSTEMS[system]}: {"fails" if found else "ok"}')
      result += [f'  - {x}' for x in found]
    result += [f'Not seen: {x}' for x in self.unseen]
    return result + [f'Hint: {x}' for x in self.hints]

  def add(self, system: str, problem: str) -> None:
    """Add a problem of a system, if that is being checked."""
    if system in self.problems:
      self.problems[system].append(problem)


def check(
  env_id: str,
  systems: Iterable[str] = contract.ALL,
  seed: int = 0,
  settings: Mapping[str, Any] | None = None,
) -> Report:
  """Play one episode with random actions.

  Rendering may need OpenGL, so call this from a process without TensorFlow.

  Args:
    env_id: Id of the environment.
    systems: Keys of `contract.SYSTEMS` to check for.
    seed: Seed of the environment and the actions.
    settings: Arguments of the environment.

  Raises:
    UsageError: If the id is unknown, or the environment refuses the settings.
    EnvError: If the environment raises an error.
  """
  report = Report(problems={name: [] for name in systems})
  env, blind = adapters.create_rendering(env_id, **(settings or {}))
  subjects = [contract.Subject(env, env_id, x, blind=blind) for x in systems]
  try:
    for subject in subjects:
      found = _ask(report, subject, 'spaces')
      if subject.system == 'planet' and not found:
        report.facts['PlaNet learns from'] = _find_input(env)
    report.facts['observations'] = str(env.observation_space)
    report.facts['actions'] = str(env.action_space)
    space = env.action_space
    if hasattr(space, 'low') and not spaces.find_scalable(space).all():
      report.hints.append(
        'The action space has no finite bounds: actions are not scaled, and '
        'PlaNet plans within [-1, 1]. Declare bounds in action_space.'
      )
    env.seed(seed)
    _check_episode(env, env_id, subjects, report)
    # Last, because this closes another environment, and what both share.
    if isinstance(env, adapters.GymnasiumEnv):
      report.hints += _ask_gymnasium(env)
    if adapters.is_old(env):
      report.hints.append(_OLD)
    for layer in interfaces.layers(getattr(env, '_env', env)):
      if hasattr(type(layer), 'update_running_mean'):
        report.hints.append(_STATISTICS.format(type(layer).__name__))
  finally:
    env.close()
  return report


def _ask(report, subject, seen, image=None):
  """Add what the contract finds to a report, and return it."""
  try:
    found = contract.find_problems(subject, seen, image)
  except errors.EnvError as error:
    if error.details:
      raise
    found = [str(error)]
  report.problems[subject.system] += found
  return found


def _find_input(env):
  """Return what PlaNet sees."""
  path = contract.find_picture(env)
  if path is None:
    return 'rendered images'
  return f'the observation {images.name_of(path)}'.strip()


def _ask_gymnasium(env):
  """Return the problems that gymnasium's checker finds."""
  from gymnasium.utils import env_checker

  found: list[str] = []
  if adapters.is_old(env):
    return found
  with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter('always')
    warnings.filterwarnings('ignore', _TASTE)
    try:
      env_checker.check_env(env.unwrapped, skip_render_check=True)
    # Whatever the user's code may raise.
    except (Exception, SystemExit) as error:
      found.append(str(error) or repr(error))
  # Without the colors of gymnasium's warnings.
  found += [re.sub(r'\x1b\[\d+m', '', str(x.message)) for x in caught]
  return [f"gymnasium's check_env: {x}" for x in dict.fromkeys(found)]


def _check_episode(env, env_id, subjects, report):
  """Play an episode; the first problem concerns all systems."""
  first_problem, rewarded, length = None, -np.inf, 0
  done, info, observation = False, {}, None
  sizes: dict[str, int] = {}
  ends: list[Any] = []
  began = time.perf_counter()
  try:
    played = itertools.islice(contract.play(env, env_id), _MOST_STEPS + 1)
    for length, (transition, problem) in enumerate(played):
      observation, reward, done, info = transition
      _widen(ends, observation, env.observation_space)
      if not length:
        _check_opengl(report, env)
      else:
        rewarded = max(rewarded, reward)
        if length == 1:
          sizes = {k: v.size for k, v in contract.find_numbers(info).items()}
        _check_info(report, info, sizes, env_id, length)
      first_problem = first_problem or problem
      if length == _RENDER_STEP or (done and length < _RENDER_STEP):
        paused = time.perf_counter()
        _check_render(env, env_id, subjects, report)
        _check_picture(env, observation, report)
        began += time.perf_counter() - paused
  except errors.EnvError as error:
    if error.details:
      raise
    first_problem = first_problem or str(error)
    report.facts['episode'] = f'{length} steps until the first mistake'
  else:
    episode = contract.Episode(length, bool(done))
    report.facts['episode'] = f'{length} steps' + ('' if done else ' and more')
    speed = length / (time.perf_counter() - began)
    report.facts['speed'] = f'at least {speed:.0f} steps per second'
    for subject in subjects:
      if not report.problems[subject.system]:
        report.unseen += contract.find_unseen(subject.system, episode)
    if report.problems.get('ppo') == [] and not first_problem:
      report.hints += _advise_ppo(ends, env.observation_space)
    if report.problems.get('her') == [] and not first_problem:
      seen = observation, info, rewarded
      report.hints += _advise_her(report, env, env_id, seen, episode)
  report.unseen = list(dict.fromkeys(report.unseen))
  if first_problem:
    for found in report.problems.values():
      found.insert(0, first_problem)


def _check_opengl(report, env):
  """Check that an environment has not opened OpenGL without being asked."""
  if opengl.is_loaded_in_software() and not adapters.wraps_dm_control(env):
    # Only PlaNet's environments are always in processes of their own.
    for system in ('ppo', 'her', 'pipeline'):
      report.add(system, _OPENGL)


def _check_picture(env, observation, report):
  """Check the image that PlaNet finds in observations, if it does."""
  path = contract.find_picture(env)
  if path is None:
    return
  value, space = (
    images.pick(x, path) for x in (observation, env.observation_space)
  )
  try:
    images.from_observation(value, space)
  except errors.EnvError as error:
    report.add('planet', str(error))


def _check_info(report, info, sizes, env_id, step):
  """Check for HER, which stores infos, that each has the same numbers."""
  if report.problems.get('her') == []:
    try:
      for key, size in sizes.items():
        contract.read_numbers(info, key, size, env_id, step)
    except errors.EnvError as error:
      report.add('her', str(error))


def _widen(ends, observation, space):
  """Let the two arrays `ends` enclose an observation of a box, if it is one."""
  if not spaces.is_box(space):
    return
  value = np.asarray(observation, np.float64)
  if value.shape == space.shape:
    low, high = ends or (value, value)
    ends[:] = np.minimum(low, value), np.maximum(high, value)


def _advise_ppo(ends, space):
  """Return hints about observations between `ends`, which PPO scales."""
  if not ends or not spaces.find_scalable(space).all():
    return []
  low, high = spaces.float_bounds(space)
  used = np.subtract(*ends[::-1]) / np.maximum(high - low, 1e-30)
  hidden = (used > 0) & (used < _LEAST_USED)
  return [_WIDE] if hidden.any() else []


def _advise_her(report, env, env_id, seen, episode):
  """Return hints for HER after an episode; adds what fails for reached goals.

  Args:
    seen: Last observation and info, and the highest reward.
  """
  hints, (observation, info, rewarded) = [], seen
  limit = contract.find_time_limit(env) or 0
  if episode.done and episode.length < limit:
    hints.append(
      f'The episode ended after {episode.length} of {limit} steps; HER counts '
      f'it as {limit}, see docs/her.md.'
    )
  success = contract.find_success(info)
  if success is None:
    hints.append(
      "info has no 'is_success', so HER cannot report a success rate."
    )
  try:
    guard.check_finite(success or 0.0, 'success', env_id)
    positive = contract.has_positive_rewards(
      env.compute_reward, observation, info, env_id
    )
  except errors.EnvError as error:
    report.add('her', str(error))
    return hints
  if rewarded > 0 or positive:
    hints.append(
      'Rewards can be above 0, so HER uses --clip_pos_returns=False.'
    )
  return hints


def _check_render(env, env_id, subjects, report):
  """Check an image if PlaNet would use it."""
  if not contract.can_render(env):
    return
  subject = next((x for x in subjects if x.system == 'planet'), None)
  try:
    image = wrappers.Guard(env, env_id).render()
  except errors.EnvError as error:
    if not subject or contract.find_picture(env) is not None:
      report.hints.append(str(error))
    else:
      report.add('planet', f'{error} {contract.WITHOUT_IMAGES}')
    return
  report.facts['images'] = f'{image.dtype} {list(image.shape)}'
  if subject and contract.find_picture(env) is None:
    _ask(report, subject, 'image', image)
