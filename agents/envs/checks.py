"""What the project asks of an environment, found out by playing with it."""

import dataclasses
import time
from collections.abc import Iterable

import numpy as np

from agents.envs import adapters, guard, requirements
from agents.run import errors

SYSTEMS = tuple(requirements.SYSTEMS)
# Episodes longer than this count as endless.
_MOST_STEPS = 10000
# Numbers of steps to compare rewards and to render at.
_REWARDS, _RENDER_STEP = 10, 3


@dataclasses.dataclass
class Report:
  """What `check` has found out.

  Attributes:
    facts: Dict from a word to what is good to know.
    problems: Dict from the names of systems to sentences that say what keeps
      the environment from being used, and what to do.
    hints: Sentences about what works, but may not be meant.
  """

  facts: dict[str, str] = dataclasses.field(default_factory=dict)
  problems: dict[str, list[str]] = dataclasses.field(default_factory=dict)
  hints: list[str] = dataclasses.field(default_factory=list)

  def lines(self) -> list[str]:
    """Return the report as text."""
    result = [f'{key}: {value}' for key, value in self.facts.items()]
    for system, found in self.problems.items():
      name = requirements.SYSTEMS[system]
      result.append(f'{name}: {"fails" if found else "ok"}')
      result += [f'  - {x}' for x in found]
    return result + [f'Hint: {x}' for x in self.hints]


def check(
  env_id: str, systems: Iterable[str] = SYSTEMS, seed: int = 0
) -> Report:
  """Play one episode with random actions, and look at everything.

  Images may need OpenGL, so call this from a process without TensorFlow.

  Args:
    env_id: Id of the environment.
    systems: Which of `SYSTEMS` it should suit.
    seed: Seed of environment and actions.

  Returns:
    `Report`.

  Raises:
    UsageError: If the id is unknown.
    EnvError: If the environment raises an error.
  """
  report = Report(problems={name: [] for name in systems})
  env, images = _make(env_id, report)
  try:
    _check_spaces(env, env_id, report)
    everywhere = [*_Episode(env, env_id, report, images).play(seed)]
  finally:
    env.close()
  for found in report.problems.values():
    # What concerns all systems comes first.
    found[:0] = everywhere
  return report


def _make(env_id, report):
  """Return the environment, and whether it can render images."""
  images = True
  try:
    if adapters.renders_with_opengl(env_id):
      from agents.envs import opengl

      opengl.select_backend()
    env = adapters.make(env_id, 'rgb_array')
  except (errors.UsageError, errors.EnvError) as error:
    images = False
    # Whatever else is wrong is raised once more.
    env = adapters.make(env_id)
    _add(
      report,
      'planet',
      f"Cannot be created with render_mode='rgb_array': {error}",
    )
  return env, images


def _check_spaces(env, env_id, report):
  """Compare the spaces to what the systems take."""
  for system, found in report.problems.items():
    try:
      requirements.check_spaces(env, env_id, system)
    except errors.UsageError as error:
      found.append(str(error))
  report.facts['observations'] = str(env.observation_space)
  report.facts['actions'] = str(env.action_space)
  low = getattr(env.action_space, 'low', None)
  if low is not None and not np.isfinite(low).all():
    report.hints.append(
      'The action space has no finite bounds, so actions are not scaled, and '
      'PlaNet plans within [-1, 1]; declare bounds in action_space.'
    )


def _add(report, system, sentence):
  if system in report.problems:
    report.problems[system].append(sentence)


class _Episode:
  """One episode that is watched."""

  def __init__(self, env, env_id, report, images):
    self._env = env
    self._id = env_id
    self._report = report
    self._images = images
    self._found: dict[str, None] = {}

  def play(self, seed):
    """Play; return sentences about what no system can do with."""
    env, report = self._env, self._report
    env.seed(seed)
    with guard.explained(self._id, 'when it is reset'):
      observation = env.reset()
    self._check_observation(observation, 'reset')
    self._check_seed(seed, observation)
    kept: list[tuple] = []
    seconds, length, done, info = 1e-9, 0, False, {}
    while not done and length < _MOST_STEPS:
      action = env.action_space.sample()
      began = time.perf_counter()
      with guard.explained(self._id, f'in step {length + 1}'):
        observation, reward, done, info = env.step(action)
      seconds += time.perf_counter() - began
      length += 1
      self._check_observation(observation, f'step {length}')
      self._check_reward(reward, length)
      if len(kept) < _REWARDS:
        kept.append((observation, reward, info))
      if length == _RENDER_STEP and self._images:
        self._check_render()
    report.facts['episode'] = f'{length} steps' + ('' if done else ' and more')
    report.facts['speed'] = f'{length / seconds:.0f} steps per second'
    if not done:
      report.hints.append(
        f'The episode did not end within {_MOST_STEPS} steps; register the '
        'environment with max_episode_steps, or set max_length for PPO.'
      )
    if not report.problems.get('her', ['']):
      self._check_goals(kept, length, info)
    return list(self._found)

  def _check_observation(self, observation, when):
    space = self._env.observation_space
    problem = requirements.find_observation_problem(observation, space, when)
    if problem:
      self._add(problem)
      return
    for name, value, part in requirements.pairs(observation, space):
      if not part.contains(np.asarray(value, part.dtype)):
        self._hint(
          f'{name} of {when} is outside its space {part}; correct the '
          'bounds, because they scale the observations.'
        )

  def _check_reward(self, reward, step):
    problem = requirements.find_reward_problem(reward, f'step {step}')
    if problem:
      self._add(problem)

  def _check_seed(self, seed, first):
    self._env.seed(seed)
    again = self._env.reset()
    space = self._env.observation_space
    for (_, a, _), (_, b, _) in zip(
      requirements.pairs(first, space), requirements.pairs(again, space)
    ):
      if not np.array_equal(a, b):
        self._hint(
          'Two resets with the same seed differ, so runs are not reproducible; '
          'use self.np_random for all random numbers.'
        )

  def _check_render(self):
    problem = ''
    try:
      image = self._env.render('rgb_array')
      if image is None:
        problem = 'returns None'
      elif np.ndim(image) != 3 or np.shape(image)[-1] != 3:
        problem = f'returns shape {np.shape(image)}'
      elif np.asarray(image).dtype != np.uint8:
        problem = f'returns dtype {np.asarray(image).dtype}'
    except Exception as error:  # Whatever the user's code may raise.
      problem = f'raises {error!r}'
    if problem:
      _add(
        self._report,
        'planet',
        f'render {problem}; with render_mode rgb_array it must return a uint8 '
        'image [height, width, 3]. To train without images, use --params '
        '"{observations: vector}".',
      )
    else:
      self._report.facts['images'] = f'uint8 {list(np.shape(image))}'

  def _check_goals(self, kept, length, info):
    """Compare rewards of steps to those that hindsight computes."""
    limit = self._env.spec.max_episode_steps
    if length < limit:
      _add(
        self._report,
        'her',
        f'The episode ended after {length} of {limit} steps; HER needs '
        'episodes of equal length, so never set terminated.',
      )
    achieved = np.stack([x['achieved_goal'] for x, _, _ in kept])
    desired = np.stack([x['desired_goal'] for x, _, _ in kept])
    rows = {
      key: np.stack([np.reshape(x[key], [-1]) for _, _, x in kept])
      for key in kept[0][2]
      if key != 'truncated' and all(key in x for _, _, x in kept)
    }
    compute = self._env.unwrapped.compute_reward
    rewards = [reward for _, reward, _ in kept]
    if not np.allclose(compute(achieved, desired, rows), rewards):
      _add(
        self._report,
        'her',
        'compute_reward and step return different rewards; call '
        'compute_reward in step.',
      )
    if 'is_success' not in info:
      self._hint(
        "info has no 'is_success', so HER cannot report a success rate."
      )

  def _add(self, sentence):
    # One observation that is wrong is wrong in most of the steps.
    if not self._found:
      self._found[sentence] = None

  def _hint(self, sentence):
    if len(self._report.hints) < 3 and sentence not in self._report.hints:
      self._report.hints.append(sentence)
