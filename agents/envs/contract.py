"""The contract: what PlaNet, PPO, HER and DDPG need of environments.

PPO and HER need the same in the pipeline as by themselves.
`TABLE` states each requirement once, as a sentence for users and as a function
that finds what contradicts it. The start of every training and the program
`agents-check-env` ask these functions; docs/environments.md contains the
sentences.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import gymnasium
import numpy as np

from agents.envs import guard, images, observations, spaces, wrappers
from agents.run import errors

# Systems as users name them, and as sentences do.
SYSTEMS = {
  'planet': 'PlaNet',
  'ppo': 'PPO',
  'her': 'HER',
  'pipeline': 'DDPG',
}
ALL = tuple(SYSTEMS)
GOAL_KEYS = ('observation', 'achieved_goal', 'desired_goal')
_SUCCESS_KEYS = ('is_success', 'success')
# Advice where images are missing.
WITHOUT_IMAGES = (
  'To train without images, use --params "{observations: vector}".'
)
# Environments whose rewards of a batch mix up rows and columns, in the original
# as well: the angle that should not count is overwritten in one row.
REWARD_ROW_BY_ROW = 'HandManipulatePen'
_REWARD = spaces.box(-np.inf, np.inf)


@dataclasses.dataclass(frozen=True)
class Subject:
  """Environment that one system should use.

  Attributes:
    env: Environment with the interface of `agents.envs.adapters`, unwrapped.
    name: Name that the user gave.
    system: Key of `SYSTEMS`.
    vector: Whether PlaNet learns from vectors, not from images.
    blind: Why the environment was created without images; '' if it was not.
    key: Path of the observation that DDPG uses; `agent` if it is the only one.
  """

  env: Any
  name: Any
  system: str
  vector: bool = False
  blind: str = ''
  key: str = 'agent'


@dataclasses.dataclass(frozen=True)
class Episode:
  """What was seen of an episode.

  Attributes:
    length: Number of steps.
    done: Whether the environment ended it.
  """

  length: int
  done: bool


@dataclasses.dataclass(frozen=True)
class Requirement:
  """Something that an environment must be or do.

  Attributes:
    part: What it is about.
    systems: Keys of `SYSTEMS`.
    text: Sentences for users.
    seen: What shows it: `spaces`, known once the environment exists; `image`,
      what it renders; or `step`.
    find: Function from `Subject` and the rendered image, if that shows it, to a
      sentence about what is wrong, or None.
    unseen: Function from `Episode` to a sentence if it did not show whether the
      requirement is met; None otherwise.
  """

  part: str
  systems: tuple[str, ...]
  text: str
  seen: str
  find: Callable[[Subject, Any], str | None] = lambda subject, image: None
  unseen: Callable[[Episode], str | None] = lambda episode: None


def check_spaces(env: Any, name: Any, system: str, **kwargs: Any) -> None:
  """Check what is known of an environment once it exists.

  For HER, also takes a step to check the rewards of goals.

  Args:
    env: Environment.
    name: Name that the user gave.
    system: Key of `SYSTEMS`.
    **kwargs: Other attributes of `Subject`.

  Raises:
    UsageError: Describes the first problem.
    EnvError: If the step fails.
  """
  subject = Subject(env, name, system, **kwargs)
  problems = find_problems(subject, 'spaces')
  if problems:
    raise errors.UsageError(problems[0])


def find_problems(subject: Subject, seen: str, image: Any = None) -> list[str]:
  """Return a sentence for each requirement that is not met.

  Args:
    subject: Environment and system.
    seen: See `Requirement`.
    image: Rendered image, if that was seen.

  Raises:
    EnvError: If a step fails.
  """
  rows = (x for x in TABLE if subject.system in x.systems and x.seen == seen)
  found = (x.find(subject, image) for x in rows)
  return [x for x in found if x]


def find_unseen(system: str, episode: Episode) -> list[str]:
  """Return what an episode could not show about the requirements."""
  found = (x.unseen(episode) for x in TABLE if system in x.systems)
  return [x for x in found if x]


def table() -> str:
  """Return all requirements as a table in Markdown, for the documentation."""
  lines = ['| agent | what | needs |', '|---|---|---|']
  for system, name in SYSTEMS.items():
    for row in TABLE:
      if system in row.systems and row.systems != ALL:
        lines.append(f'| {name} | {row.part} | {row.text} |')
  for row in TABLE:
    if row.systems == ALL:
      lines.append(f'| all | {row.part} | {row.text} |')
  return '\n'.join(lines)


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
  played = play(env, name)
  (observation, reward, _, info), problem = next(played)
  if not problem:
    (_, reward, _, info), problem = next(played)
  if problem:
    raise errors.EnvError(f'Environment {name} is not usable: {problem}')
  return observation, float(reward), info


def has_positive_rewards(
  compute: Callable[..., Any],
  observation: dict,
  info: Mapping[str, Any],
  name: Any,
) -> bool:
  """Return whether rewards of a goal environment can be above 0.

  Where goals are rarely reached by chance, no step shows that. Therefore asks
  for the rewards of goals that are reached, too.

  Args:
    compute: Function of batches of achieved goals, goals and infos to rewards.
    observation: Observation of a goal environment.
    info: Info of a step.
    name: Name that the user gave.

  Raises:
    EnvError: If the function fails there, or does not return finite numbers.
  """
  achieved, desired = (observation[key] for key in GOAL_KEYS[1:])
  pairs = [(achieved, desired), (achieved, achieved), (desired, desired)]
  rows = {
    k: np.repeat([v], len(pairs), 0) for k, v in find_numbers(info).items()
  }
  with guard.explained(name, 'in compute_reward'):
    rewards = compute(*(np.array(x) for x in zip(*pairs)), rows)
  guard.check_rewards(rewards, len(pairs), name)
  return bool((np.asarray(rewards, float) > 0).any())


def play(env: Any, name: Any) -> Iterator[tuple[tuple, str | None]]:
  """Play an episode with random actions.

  Args:
    env: Environment with or without wrappers.
    name: Name that the user gave.

  Yields:
    Tuple of a transition and its problem, or None: first for the reset, as a
    transition without reward, then for each step. Like a training, it cannot go
    on after what `wrappers.Guard` refuses.
  """
  env = wrappers.Guard(env, name)
  space = env.observation_space
  observation = env.reset()
  problem = find_mistake(observation, space, 'reset')
  yield (observation, 0, False, {}), problem
  number, done = 0, False
  while not done:
    number += 1
    transition = env.step(spaces.sample(env.action_space))
    observation, reward, done, _ = transition
    when = f'step {number}'
    yield transition, find_mistake(observation, space, when, reward)


def can_render(env: Any) -> bool:
  """Return whether an environment was created to render images.

  Args:
    env: Environment with the interface of `agents.envs.adapters`.
  """
  inner = getattr(env, 'unwrapped', env)
  if isinstance(inner, gymnasium.Env):
    inherited = type(inner).render is gymnasium.Env.render
    return env.render_mode == 'rgb_array' and not inherited
  return hasattr(inner, 'render')


def find_picture(env: Any) -> images.Path | None:
  """Return where PlaNet finds images in observations; None if it renders.

  It renders environments that do, unless a dictionary has an image.

  Args:
    env: Environment with the interface of `agents.envs.adapters`.
  """
  path = images.find(env.observation_space)
  return None if path == () and can_render(env) else path


def find_mistake(
  observation: Any, space: Any, when: str, reward: Any = 0.0
) -> str | None:
  """Return what is wrong with an observation and a reward, or None.

  Args:
    observation: Observation that `wrappers.Guard` lets pass.
    space: Its space.
    when: When it was returned, such as `step 3`.
    reward: Reward, a number.
  """
  parts = []
  for path, part in images.parts(space):
    if type(part).__name__ in images.FLAT:
      name = f'The observation {images.name_of(path)}'.strip()
      parts.append((name, images.pick(observation, path), part))
  parts.append(('The reward', reward, _REWARD))
  for name, value, part in parts:
    array = np.asarray(value)
    if array.shape != part.shape or not np.can_cast(
      array.dtype, part.dtype, 'same_kind'
    ):
      return (
        f'{name} in {when} has shape {array.shape} and dtype {array.dtype}, '
        f'but its space is {part}; make them match.'
      )
    kind = array.dtype.kind == 'f' and guard.not_finite(array)
    if kind:
      return f'{name} in {when} is {kind}; return finite numbers.'
  return None


def find_time_limit(env: Any) -> int | None:
  """Return the time limit of an environment in steps, None if unknown."""
  spec = getattr(env, 'spec', None)
  limit = getattr(spec, 'max_episode_steps', None)
  return limit or getattr(env, '_max_episode_steps', None)


def find_numbers(info: Mapping[str, Any]) -> dict[str, np.ndarray]:
  """Return the numbers and arrays of numbers in an info, as vectors.

  Leaves out keys that are not strings.
  """
  flat = {
    k: np.ravel(guard.to_array(v))
    for k, v in info.items()
    if isinstance(k, str) and not isinstance(v, dict)
  }
  return {k: v for k, v in flat.items() if v.dtype.kind in 'biuf' and v.size}


def find_success(info: Mapping[str, Any]) -> float | None:
  """Return whether an info reports success, None if it does not say.

  Environments name it `is_success` or, like mazes, `success`.
  """
  for key in _SUCCESS_KEYS:
    value = guard.to_array(info.get(key))
    if value.size == 1 and value.dtype.kind in 'biuf':
      return float(value.reshape(()))
  return None


def read_numbers(
  info: Mapping[str, Any], key: str, size: int, name: Any, step: int
) -> np.ndarray:
  """Return a value of an info as a vector, as long as in the first step.

  Args:
    info: Info of a step.
    key: Key of `find_numbers` for the first step.
    size: Size of its value in the first step.
    name: Name that the user gave to the environment.
    step: Number of the step.

  Raises:
    EnvError: If there are not as many numbers.
  """
  value = np.ravel(guard.to_array(info.get(key, ())))
  if value.size != size or value.dtype.kind not in 'biuf':
    raise errors.EnvError(
      f'Environment {name} gives info[{key!r}] = {info.get(key)!r} in step '
      f'{step}, but numbers of size {size} in its first step; give the same '
      'numbers in every step.'
    )
  return value


def _is_vector(space):
  """Whether a space holds vectors with at least one number."""
  return spaces.is_box(space) and len(space.shape) == 1 and space.shape[0] > 0


def _find_other_actions(subject, _):
  """PlaNet and PPO: vectors or a choice."""
  space, system = subject.env.action_space, SYSTEMS[subject.system]
  if spaces.is_discrete(space):
    return None
  if not spaces.is_box(space):
    return (
      f'The action space of {subject.name} is {space}, but {system} needs a '
      'Box or Discrete space. Wrap the environment and register it under a new '
      'id.'
    )
  if not _is_vector(space):
    return (
      f'The actions of {subject.name} have shape {space.shape}, but {system} '
      'needs vectors. Wrap the environment and register it under a new id.'
    )
  return None


def _find_one_bound(subject, _):
  """PlaNet: bounds that it can scale to, or [-1, 1] within them."""
  space = subject.env.action_space
  if not spaces.is_box(space):
    return None
  low, high = spaces.float_bounds(space)
  unscaled = ~spaces.find_scalable(space)
  if (unscaled & ((low > -1) | (high < 1))).any():
    return (
      f'The actions of {subject.name} have only one bound, or bounds too far '
      'apart to scale, but PlaNet plans within [-1, 1]; declare two finite '
      'bounds.'
    )
  return None


def _find_no_input(subject, _):
  """PPO: observations that become the input of a network."""
  problem = observations.explain(subject.env.observation_space)
  if not problem:
    return None
  return (
    f'A network cannot learn from the observations of {subject.name}: '
    f'{problem}. Observations must be Box, Discrete, MultiBinary or '
    'MultiDiscrete spaces, or dictionaries and tuples of them; wrap the '
    'environment and register it under a new id.'
  )


def _find_no_vector(subject, _):
  """PlaNet: vectors, if it learns from them."""
  space = subject.env.observation_space
  if not subject.vector or images.list_parts(space):
    return None
  return (
    f'The observation space of {subject.name} is {space}, which does not '
    'become a vector, as observations: vector needs; use observations: image.'
  )


def _find_no_image(subject, _):
  """PlaNet: something to see, if it learns from images."""
  env, name = subject.env, subject.name
  if subject.vector or can_render(env) or find_picture(env) is not None:
    return None
  advice = subject.blind or (
    'Add render() for the render_mode rgb_array, which the constructor must '
    'take and store, or declare an observation of bytes or bounded floats '
    '[height, width, channels].'
  )
  return (
    f'PlaNet learns from images, but {name} does not render any, and none of '
    f'its observations is one. {advice} {WITHOUT_IMAGES}'
  )


def _find_bad_image(subject, image):
  """PlaNet: what is rendered is a picture."""
  channels = images.find_channels(subject.env)
  try:
    image = images.fit_channels(image, channels, subject.name)
    images.convert(image, np.uint8)
  except errors.EnvError as error:
    return f'{error} {WITHOUT_IMAGES}'
  return None


def _find_no_observed_vector(subject, _):
  """DDPG: a vector to observe."""
  name, space = subject.name, subject.env.observation_space
  try:
    parts = spaces.describe(space)
  except errors.UsageError as error:
    return f'The observation space of {name} does not fit: {error}'
  part = parts.get(subject.key)
  if part and part['typ'] == 'Box' and len(part['dim']) == 1 and part['dim'][0]:
    return None
  if part:
    return (
      f'DDPG observes vectors, but the observations of {name} are {space}. '
      'Wrap the environment and register it under a new id.'
    )
  return (
    f'DDPG observes one vector, but the observations of {name} have the parts '
    f'{", ".join(parts)}; set observation_key to one of them.'
  )


def _find_no_bounded_vector(subject, _):
  """DDPG: actions are bounded vectors."""
  name, space = subject.name, subject.env.action_space
  if not _is_vector(space):
    return (
      f'The actions of {name} are {space}, but DDPG needs vectors. Wrap the '
      'environment and register it under a new id.'
    )
  if not spaces.find_scalable(space).all():
    return (
      f'The actions of {name} are {space}, but DDPG needs two finite bounds, '
      'not too far apart to scale; declare them.'
    )
  return None


def _find_goal_problem(subject, _):
  """HER: a goal environment."""
  with guard.explained(subject.name, 'in its first step'):
    problem = _explain_goals(wrappers.Guard(subject.env, subject.name))
  if not problem:
    return None
  return (
    f'HER cannot train on {subject.name}: {problem} See docs/her.md, or try '
    'FetchReach-v4.'
  )


def _explain_goals(env):
  """Return part of a sentence about why HER cannot use spaces, or None."""
  parts = getattr(env.observation_space, 'spaces', None)
  if not isinstance(parts, Mapping) or not set(GOAL_KEYS) <= set(parts):
    found = env.observation_space
    found = [*parts] if isinstance(parts, Mapping) else found
    return (
      f'observations must be dictionaries with {", ".join(GOAL_KEYS)}, not '
      f'{found}.'
    )
  for key in GOAL_KEYS:
    part = spaces.vector_box(parts[key])
    if part is None or not part.shape[0]:
      return f'their parts must be vectors, but {key} is {parts[key]}.'
  shapes = {key: parts[key].shape for key in GOAL_KEYS}
  if shapes['achieved_goal'] != shapes['desired_goal']:
    return f'goals must be of one size, but have shapes {shapes}.'
  if not _is_vector(env.action_space):
    return f'actions must be vectors, not {env.action_space}.'
  limit = find_time_limit(env)
  if not limit or limit < 2:
    found = f'the time limit {limit}' if limit else 'no time limit'
    return (
      f'it has {found}; register it with max_episode_steps of at least 2 or, '
      'if it has an id, set --T.'
    )
  compute = getattr(env, 'compute_reward', None)
  if compute is None:
    return 'it has no method compute_reward(achieved, desired, info).'
  env.reset()
  observation, reward, _, info = env.step(spaces.sample(env.action_space))
  rows = {k: np.repeat([v], 3, 0) for k, v in find_numbers(info).items()}
  goals = [np.repeat([observation[key]], 3, 0) for key in GOAL_KEYS[1:]]
  try:
    rewards = np.asarray(compute(*goals, rows), float)
    found = f'returns shape {rewards.shape}' if rewards.shape != (3,) else ''
  except Exception as error:  # Whatever the user's code may raise.
    found = f'fails with {error!r}'
  if found:
    return (
      'compute_reward must return one reward per goal, shape (3,) for a batch '
      f'of three goals and a dict of arrays as info, but {found}.'
    )
  if not np.isfinite(goals).all():
    # An episode shows that.
    return None
  if kind := guard.not_finite(rewards):
    return f'compute_reward returns a reward that is {kind}.'
  if guard.find_name(env).startswith(REWARD_ROW_BY_ROW):
    return None
  if not np.allclose(rewards[0], reward):
    return (
      f'compute_reward returns {rewards[0]:g} for a step whose reward is '
      f'{float(reward):g}; call compute_reward in step.'
    )
  return None


def _tell_endless(episode):
  if episode.done:
    return None
  return (
    f'The episode did not end within {episode.length} steps, so what follows '
    'was not seen; register the environment with max_episode_steps, or set '
    'max_length for PPO.'
  )


TABLE = (
  Requirement(
    'actions',
    ('planet', 'ppo'),
    'A `Box` of vectors, of any dtype, or `Discrete`.',
    'spaces',
    _find_other_actions,
  ),
  Requirement(
    'bounds of actions',
    ('planet',),
    'Two finite ones; a dimension without them, or with ones too far apart to '
    'scale, must contain [-1, 1], where PlaNet plans.',
    'spaces',
    _find_one_bound,
  ),
  Requirement(
    'images',
    ('planet',),
    '`render()` in the mode `rgb_array`, or an image in the observations: '
    '`uint8` or bounded floats, at least 16 x 16. In dictionaries, it is '
    'preferred; of several, the one called `image`, `rgb` or `pixels`.',
    'spaces',
    _find_no_image,
  ),
  Requirement(
    'rendered images',
    ('planet',),
    'Of any size; `uint8`, or floats from 0 to 1; gray, RGB or RGBA, or with '
    'as many channels as `image_channels` says.',
    'image',
    _find_bad_image,
  ),
  Requirement(
    'observations',
    ('planet',),
    'Anything for images. For `observations: vector`, `Box`, `Discrete`, '
    '`MultiBinary`, `MultiDiscrete`, or dictionaries and tuples of them, which '
    'are joined without their images and texts.',
    'spaces',
    _find_no_vector,
  ),
  Requirement(
    'observations',
    ('ppo',),
    '`Box` of any shape, `Discrete`, `MultiBinary`, `MultiDiscrete`, or '
    'dictionaries and tuples of them. Texts in them are ignored.',
    'spaces',
    _find_no_input,
  ),
  Requirement(
    'goals',
    ('her',),
    'Observations with the vectors `observation`, `achieved_goal` and '
    '`desired_goal`; actions are vectors; a time limit of at least 2, which '
    'episodes may end before; `compute_reward` returns the reward of each goal '
    'of a batch.',
    'spaces',
    _find_goal_problem,
  ),
  Requirement(
    'observations',
    ('pipeline',),
    'A `Box` of vectors, or a dictionary of which `observation_key` is one.',
    'spaces',
    _find_no_observed_vector,
  ),
  Requirement(
    'actions',
    ('pipeline',),
    'A `Box` of vectors with finite bounds.',
    'spaces',
    _find_no_bounded_vector,
  ),
  Requirement(
    'values',
    ALL,
    'Observations of the shape and kind of number of their space; one reward; '
    'finite numbers; a flag that ends the episode; an info that is a '
    'dictionary.',
    # `wrappers.Guard` and `find_mistake` look at every step.
    'step',
    unseen=_tell_endless,
  ),
)
