"""A zoo of environments, shaped after those of other people.

`ROWS` has a line for each: what it is, and what `agents-check-env` and the
systems say; `GOALS` has those with goals. `OK` means that it works; other texts
are patterns of the sentence that refuses it; None has not been tried.
Environments with an id come from libraries, others are built by `Own` or a
class here.

MiniGrid and ALE are no part of the extra `test`: MiniGrid requires pygame-ce,
which overwrites pygame. `pip install --no-deps minigrid ale-py` installs them.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np

S = gymnasium.spaces
OK = ''
VECTOR = S.Box(-1, 1, (3,), np.float32)
TURN = S.Box(-1, 1, (2,), np.float32)
PICTURE = S.Box(0, 255, (64, 64, 3), np.uint8)


class Own(gymnasium.Env):
  """Environment with given spaces, images and mistakes.

  Args:
    observe: Observation space, or function from the step to an observation of
      it; by default, the space's samples.
    space: Observation space, if `observe` is a function.
    act: Action space.
    image: Function from the step to what `render` returns; None for an
      environment that takes no images.
    reward: Function from the step to the reward.
    end: Step in which an episode ends.
    strict: Whether a step after the end is an error.
    info: Function from the step to the info.
    failing: Step that raises.
  """

  metadata = {'render_modes': ['rgb_array']}

  def __init__(
    self,
    observe=VECTOR,
    space=None,
    act=TURN,
    image=lambda step: np.full((64, 64, 3), step % 256, np.uint8),
    reward=lambda step: 1.0,
    end=10,
    strict=False,
    info=lambda step: {},
    failing=0,
  ):
    self.observation_space = space or observe
    self.action_space = act
    self.render_mode = 'rgb_array' if image else None
    self._observe = observe if space else lambda step: observe.sample()
    self._image, self._reward, self._info = image, reward, info
    self._end, self._strict, self._failing = end, strict, failing

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    self._step = 0
    return self._observe(0), {}

  def step(self, action):
    if self._strict and self._step >= self._end:
      raise RuntimeError('reset first')
    self._step += 1
    if self._step == self._failing:
      raise ValueError('broken sensor')
    assert self.action_space.contains(action), action
    ends = self._step >= self._end
    number = self._step
    return (
      self._observe(number),
      self._reward(number),
      ends,
      False,
      self._info(number),
    )

  def render(self):
    return self._image(self._step)


class NoRender(gymnasium.Env):
  """Ten steps without `render`.

  Args:
    space: Observation space.
  """

  def __init__(self, space=VECTOR):
    self.observation_space, self.action_space = space, TURN

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    self._step = 0
    return self.observation_space.sample(), {}

  def step(self, action):
    self._step += 1
    observ = self.observation_space.sample()
    return observ, 0.0, self._step == 10, False, {}


class OwnGoals(gymnasium.Env):
  """A point in the plane that wants to reach another one.

  Args:
    observe: Space of the part `observation`.
    goal: Space of the goals.
    desired: Space of the desired goal, if it is another one.
    act: Action space.
    more: Spaces of other parts of the observations.
    reward: Function from the distance to the reward.
    apart: Whether rewards of steps are not those of `compute_reward`.
    ends: Whether an episode ends at the goal.
    info: Function from whether the goal is reached to the info.
    distance: Function of goals to their distances.
  """

  def __init__(
    self,
    observe=VECTOR,
    goal=TURN,
    desired=None,
    act=TURN,
    more=None,
    reward=lambda distance: -(distance > 0.3).astype(np.float32),
    apart=False,
    ends=False,
    info=lambda reached: {'is_success': reached},
    distance=lambda a, b: np.linalg.norm(
      np.subtract(a, b, dtype=float), axis=-1
    ),
  ):
    self.observation_space = S.Dict(
      observation=observe,
      achieved_goal=goal,
      desired_goal=desired or goal,
      **(more or {}),
    )
    self.action_space = act
    self._reward, self._apart = reward, apart
    self._ends, self._info, self._distance = ends, info, distance

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    return self.observation_space.sample(), {}

  def step(self, action):
    assert self.action_space.contains(action), action
    observ = self.observation_space.sample()
    goals = (observ[x] for x in ('achieved_goal', 'desired_goal'))
    reward = self.compute_reward(*goals, {}) - self._apart
    reached = bool(reward == 0)
    return observ, reward, reached and self._ends, False, self._info(reached)

  def compute_reward(self, achieved, desired, info):
    return self._reward(self._distance(achieved, desired))


class Row(NamedTuple):
  """A line of the table.

  Attributes:
    what: What it is.
    env: Function without arguments that returns it, or its id.
    check: What the check says for PlaNet with images.
    planet: What PlaNet does with images.
    vector: What PlaNet does with `observations: vector`.
    needs: Package that it comes from.
    her: What HER does.
    ppo: What the check and PPO do, by itself and in sessions.
    ddpg: What the check and DDPG do.
  """

  what: str
  env: Callable[[], Any] | str
  check: str | None = OK
  planet: str | None = OK
  vector: str | None = OK
  needs: str | None = None
  her: str | None = 'observations must be dictionaries with observation, ach'
  ppo: str | None = OK
  ddpg: str | None = OK


def own(**kwargs):
  return functools.partial(Own, **kwargs)


def goals(what, her=OK, limit=5, **kwargs):
  """A row with goals."""

  def make():
    env = OwnGoals(**kwargs)
    return gymnasium.wrappers.TimeLimit(env, limit) if limit else env

  return Row(f'goals: {what}', make, None, None, None, her=her)


def actions(low, high, dtype=np.float32):
  low, high = np.array(low, dtype), np.array(high, dtype)
  return own(act=S.Box(low, high, dtype=dtype))


def picture(shape=(64, 64, 3), dtype=np.uint8, value=1):
  return own(image=lambda step: np.full(shape, value, dtype))


def blind(space):
  return functools.partial(NoRender, space)


def refused(what, env, words, vector=None, **kwargs):
  """A row that PlaNet refuses in the words of the check."""
  vector = words if vector is None else vector
  return Row(what, env, words, words, vector, **kwargs)


def wrong(what, env, words, **kwargs):
  """A row that all refuse in the same words."""
  return refused(what, env, words, ppo=words, ddpg=words, **kwargs)


_BOUND = 'only one bound, or bounds too far apart'
_KIND = 'needs a Box or Discrete space'
_BOUNDS = 'DDPG needs two finite bounds'
_ACTIONS = 'but DDPG needs vectors'
_NO_IMAGE = 'does not render any'
_NO_VECTOR = 'does not become a vector'
_DICT = S.Dict(image=PICTURE, speed=S.Discrete(3), place=VECTOR)
_MAX = np.finfo(np.float32).max

ROWS = [
  Row('plain', own()),
  # Actions.
  Row('bounds that are no powers of two', actions([0.1, -0.3], [0.7, 0.9])),
  Row('bounds that differ much', actions([-1000, 0], [1000, 0.001])),
  Row('actions of integers', actions([0, 0], [4, 9], np.int64)),
  Row('actions of bytes', actions([0], [255], np.uint8)),
  Row('actions of doubles', actions([-2], [2], np.float64)),
  Row('actions without bounds', actions([-np.inf], [np.inf]), ddpg=_BOUNDS),
  Row(
    'actions with the largest bounds', actions([-_MAX], [_MAX]), ddpg=_BOUNDS
  ),
  refused(
    'actions with a lower bound', actions([0], [np.inf]), _BOUND, ddpg=_BOUNDS
  ),
  refused(
    'actions with an upper bound', actions([-np.inf], [0]), _BOUND, ddpg=_BOUNDS
  ),
  refused('half of a huge range', actions([0], [_MAX]), _BOUND, ddpg=_BOUNDS),
  Row('one bound beyond [-1, 1]', actions([-5], [np.inf]), ddpg=_BOUNDS),
  Row('discrete actions', own(act=S.Discrete(4)), ddpg=_ACTIONS),
  Row(
    'discrete actions from -1', own(act=S.Discrete(3, start=-1)), ddpg=_ACTIONS
  ),
  refused(
    'several discrete actions',
    own(act=S.MultiDiscrete([3, 2])),
    _KIND,
    ppo=_KIND,
    ddpg=_ACTIONS,
  ),
  refused(
    'bits as actions',
    own(act=S.MultiBinary(3)),
    _KIND,
    ppo=_KIND,
    ddpg=_ACTIONS,
  ),
  refused(
    'dictionary of actions',
    own(act=S.Dict(a=TURN)),
    _KIND,
    ppo=_KIND,
    ddpg=_ACTIONS,
  ),
  refused(
    'matrix of actions',
    own(act=S.Box(-1, 1, (2, 2))),
    'but PlaNet needs vect',
    ppo='but PPO needs vectors',
    ddpg=_ACTIONS,
  ),
  # Observations beside rendered images.
  Row('observation of doubles', own(observe=S.Box(-1, 1, (3,), np.float64))),
  Row('observation of integers', own(observe=S.Box(0, 9, (3,), np.int64))),
  Row(
    'one number',
    own(observe=S.Box(-1, 1, (), np.float32)),
    ddpg='DDPG observes vectors',
  ),
  Row(
    'matrix',
    own(observe=S.Box(-1, 1, (3, 4), np.float32)),
    ddpg='DDPG observes vectors',
  ),
  Row('unbounded observation', own(observe=S.Box(-np.inf, np.inf, (3,)))),
  Row(
    'discrete observation, as FrozenLake',
    own(observe=S.Discrete(16)),
    ddpg='DDPG observes vectors',
  ),
  Row('bits', own(observe=S.MultiBinary(4)), ddpg='does not fit'),
  Row(
    'several discrete numbers',
    own(observe=S.MultiDiscrete([3, 2])),
    ddpg='does not fit',
  ),
  Row(
    'dictionary of vectors',
    own(observe=S.Dict(a=VECTOR, b=VECTOR)),
    ddpg='set observation_key',
  ),
  Row(
    'dictionary with a number as a key',
    own(observe=S.Dict({1: VECTOR, 'two': VECTOR})),
    ddpg='parts 1, two; set observation_key',
  ),
  Row(
    'tuple, as Blackjack',
    own(observe=S.Tuple([S.Discrete(3), VECTOR])),
    ddpg='does not fit',
  ),
  Row(
    'symbols and text, as MiniGrid',
    own(
      observe=S.Dict(
        image=S.Box(0, 255, (7, 7, 3), np.uint8), mission=S.Text(9)
      )
    ),
    ddpg='does not fit',
  ),
  Row('image that renders', own(observe=PICTURE), ddpg='DDPG observes vectors'),
  Row(
    'game of 210 x 160',
    own(observe=S.Box(0, 255, (210, 160, 3), np.uint8)),
    ddpg='DDPG observes vectors',
  ),
  Row(
    'dictionary of image and state',
    own(observe=_DICT),
    ddpg='set observation_key',
  ),
  # Images.
  Row('image without render()', blind(PICTURE), ddpg='DDPG observes vectors'),
  Row(
    'gray image without render()',
    blind(S.Box(0, 255, (84, 84), np.uint8)),
    ddpg='DDPG observes vectors',
  ),
  Row(
    'channels first',
    blind(S.Box(0, 255, (3, 64, 64), np.uint8)),
    ddpg='DDPG observes vectors',
  ),
  Row(
    'floats as image',
    blind(S.Box(0, 1, (64, 64, 3), np.float32)),
    ddpg='DDPG observes vectors',
  ),
  Row('dictionary without render()', blind(_DICT), ddpg='set observation_key'),
  refused('vector without render()', blind(VECTOR), _NO_IMAGE, OK),
  refused(
    'two images without a name',
    blind(S.Dict(left=PICTURE, right=PICTURE)),
    _NO_IMAGE,
    _NO_VECTOR,
    ddpg='set observation_key',
  ),
  Row('gray frames', picture((64, 64))),
  Row('gray frames with a channel', picture((64, 64, 1))),
  Row('frames with opacity', picture((64, 64, 4))),
  Row('frames of floats', picture(dtype=np.float32, value=0.5)),
  Row('frames of 400 x 600', picture((400, 600, 3))),
  refused('frames of big floats', picture(dtype=float, value=9), '0 to 1', OK),
  refused('frames of integers', picture(dtype=int), 'from int64 to uint8', OK),
  refused('two channels', picture((64, 64, 2)), 'images of 3 channels', OK),
  refused('no frames', own(image=lambda step: None), 'returns None', OK),
  # Episodes and values.
  Row('a step after the end is an error', own(strict=True, end=4)),
  Row('episodes of one step', own(end=1, strict=True)),
  Row('rewards in arrays', own(reward=lambda step: np.array([1.0]))),
  Row('rewards that are bools', own(reward=lambda step: step > 3)),
  wrong('reward None', own(reward=lambda step: None), 'returned reward None'),
  wrong('two rewards', own(reward=lambda step: [1, 2]), 'return a number'),
  wrong('reward NaN', own(reward=lambda step: np.nan), '(is NaN|NaN reward)'),
  wrong('infinite', own(reward=lambda step: np.inf), '(?i)infinite'),
  wrong('infinite in 32 bits', own(reward=lambda step: 1e39), '(?i)infinite'),
  wrong(
    'other shape than the space',
    own(
      observe=lambda step: np.zeros(2 + (step > 1)), space=S.Box(-1, 1, (2,))
    ),
    'but its observation_space has shape',
  ),
  wrong(
    'NaN in an observation',
    own(
      observe=lambda step: np.full(2, np.nan if step > 1 else 0),
      space=S.Box(-1, 1, (2,)),
    ),
    'NaN',
  ),
  wrong('info None', own(info=lambda step: None), 'return a dictionary'),
  wrong(
    'several environments',
    lambda: gymnasium.vector.SyncVectorEnv([Own, Own]),
    'steps several environments at once',
    her='steps several environments at once',
  ),
  wrong('raises', own(failing=3), 'failed in step 3 with ValueError')._replace(
    her='failed in step 3 with ValueError|must be dictionaries'
  ),
  # Libraries.
  Row('Pendulum', 'Pendulum-v1'),
  Row('CartPole', 'CartPole-v1', ddpg=_ACTIONS),
  Row('FrozenLake', 'FrozenLake-v1', ddpg='DDPG observes vectors'),
  Row('Taxi', 'Taxi-v3', ddpg='DDPG observes vectors'),
  Row('Blackjack', 'Blackjack-v1', ddpg='does not fit'),
  Row('LunarLander', 'LunarLander-v3', needs='Box2D', ddpg=_ACTIONS),
  Row('BipedalWalker', 'BipedalWalker-v3', needs='Box2D'),
  Row(
    'CarRacing',
    'CarRacing-v3',
    needs='Box2D',
    ddpg='DDPG observes vectors',
  ),
  Row(
    'MiniGrid', 'MiniGrid-Empty-5x5-v0', needs='minigrid', ddpg='does not fit'
  ),
  Row(
    'ALE Breakout',
    'ALE/Breakout-v5',
    needs='ale_py',
    ddpg='DDPG observes vectors',
  ),
]

_BITS = S.MultiBinary(3)
_VECTORS = 'parts must be vectors, but '


def _same(achieved, desired):
  return np.zeros(1)


GOALS = [
  goals('point'),
  goals('ends at the goal', ends=True),
  goals('episodes of one step', 'the time limit 1', limit=1),
  goals('bit flipping', observe=_BITS, goal=_BITS),
  goals('goals of integers', goal=S.MultiDiscrete([3, 3])),
  goals('doubles', observe=S.Box(-9, 9, (4,)), goal=S.Box(-9, 9, (2,))),
  goals('image beside the goals', more=dict(image=PICTURE)),
  goals('rewards above 0', reward=lambda distance: 1 - distance),
  goals('info without success', info=lambda reached: {}),
  goals('success as a bool', info=lambda reached: {'success': reached}),
  goals(
    'actions that differ', act=S.Box(-np.float32([1, 3]), np.float32([1, 3]))
  ),
  goals('nested observation', _VECTORS + 'observation is Dict', observe=_DICT),
  goals(
    'image as observation', _VECTORS + 'observation is Box', observe=PICTURE
  ),
  goals(
    'text as goal',
    _VECTORS + 'achieved_goal is Text',
    goal=S.Text(3),
    distance=_same,
  ),
  goals(
    'one number as goal',
    _VECTORS + 'achieved_goal',
    goal=S.Discrete(3),
    distance=_same,
  ),
  goals('goals of two sizes', 'of one size', desired=VECTOR, distance=_same),
  goals('discrete actions', 'actions must be vectors', act=S.Discrete(3)),
  goals('without time limit', 'no time limit', limit=None),
  goals('another reward', 'call compute_reward in step', apart=True),
  goals('one reward for all', 'one reward per goal', reward=np.sum),
  goals(
    'reward NaN',
    'a reward that is NaN',
    reward=lambda distance: distance * np.nan,
  ),
  goals(
    'reward too large', 'infinite', reward=lambda distance: distance - 1e39
  ),
  goals('info None', 'return a dictionary', info=lambda reached: None),
]
