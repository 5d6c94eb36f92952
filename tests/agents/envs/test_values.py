"""Numbers of environments arrive as they are, or are refused."""

import functools

import gymnasium
import numpy as np
import pytest

from agents.envs import adapters, spaces
from agents.envs.wrappers import Guard
from agents.pipeline import worker
from agents.run import errors
from agents.tools import wrappers
from agents.tools.attr_dict import AttrDict
from baselines_her import envs
from tests.agents import batches

Box, Discrete = gymnasium.spaces.Box, gymnasium.spaces.Discrete


class Played(gymnasium.Env):
  """Plays observations, rewards and infos from lists; the last one ends."""

  action_space = Box(-1, 1, (1,))

  def __init__(self, space, observations, reward=1.0, info=None):
    self.observation_space = space
    self._observations, self._reward = observations, reward
    self._info = info or {}

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    self._rest = list(self._observations)
    return self._rest.pop(0), {}

  def step(self, action):
    observation = self._rest.pop(0)
    return observation, self._reward, not self._rest, False, dict(self._info)


def play(env, steps, workers=0):
  """Observations of the network of PPO, one row per step."""
  config = AttrDict(env=env, max_length=9)
  batch = batches.make(config, 1, None, workers)
  try:
    rows = [batch.reset()[0]]
    for _ in range(steps):
      rows.append(batch.step(np.ones([1, 1], np.float32))[0][0])
    return np.array(rows).tolist()
  finally:
    batch.close()


@pytest.mark.parametrize(
  'reward, total',
  [
    (np.uint8(200), 400),
    (np.int8(100), 200),
    (np.float16(60000), 120000),
    (np.uint32(2**31), 2**32),
    (np.bool_(True), 2),
    (np.array([200], np.uint8), 400),
  ],
)
def test_sums_of_small_rewards(reward, total):
  env = Played(Box(0, 1, (1,)), [np.zeros(1, np.float32)] * 4, reward)
  repeated = wrappers.ActionRepeat(Guard(adapters.adapt(env), 'it'), 2)
  repeated.reset()
  assert repeated.step(np.ones(1))[1] == total


@pytest.mark.parametrize(
  'low, high, dtype',
  [
    (-np.inf, np.inf, np.int64),
    (-np.inf, np.inf, np.int32),
    (-np.finfo(np.float32).max, np.finfo(np.float32).max, np.float64),
    (-np.inf, np.inf, np.float16),
  ],
)
def test_largest_numbers_are_no_bounds(low, high, dtype):
  """Of observations, which stay as they are, nor of actions."""
  space = Box(low, high, (2,), dtype)
  assert not spaces.find_scalable(space).any()
  assert np.isinf(spaces.float_bounds(space)).all()
  unit = spaces.UnitBox(space)
  assert unit.to_box(np.array([0.6, -3.0])).tolist() == [0.6, -3.0]
  rows = [np.array(x, dtype) for x in ([1, 2], [3, 4], [5, 6])]
  env = functools.partial(Played, space, rows)
  assert play(env, 1) == [[1, 2], [3, 4]]


def test_bytes_and_small_integers_are_bounds():
  for high, dtype in ((255, np.uint8), (2**31 - 1, np.int64), (7, np.int32)):
    assert spaces.find_scalable(Box(0, high, (2,), dtype)).all()


@pytest.mark.parametrize('workers', [0, 1])
def test_first_observation_of_a_smaller_type(workers):
  rows = np.zeros(2, np.uint8), np.array([301, 5]), np.array([302, 6])
  env = functools.partial(Played, Box(-1e6, np.inf, (2,), np.int64), rows)
  assert play(env, 1, workers) == [[0, 0], [301, 5]]


@pytest.mark.parametrize('workers', [0, 1])
@pytest.mark.parametrize('kind', [np.array, list])
def test_later_observation_of_another_type(workers, kind):
  rows = np.zeros(2, int), kind([0.35, 0.5]), np.zeros(2, int)
  env = functools.partial(Played, Box(0, np.inf, (2,), np.int64), rows)
  with pytest.raises(
    errors.EnvError, match='type float64, but of int64 before'
  ):
    play(env, 1, workers)


@pytest.mark.parametrize(
  'space, wrong',
  [
    (Discrete(5), -1),
    (Discrete(5, start=3), 2),
    (Discrete(5), 5),
    (gymnasium.spaces.MultiDiscrete([3, 4]), np.array([0, -1])),
  ],
)
def test_choices_that_do_not_exist(space, wrong):
  """Are no others of the space, counted from its end."""
  right = space.sample()
  env = functools.partial(Played, space, [right, wrong, right])
  with pytest.raises(errors.EnvError, match='not in its space'):
    play(env, 1)


class Reused(Played):
  """Returns the same array again and again."""

  def __init__(self):
    super().__init__(Box(0, 9, (2,)), [0] * 4)
    self._buffer = np.zeros(2, np.float32)

  def reset(self, **more):
    self._buffer[:] = 0
    return self._buffer, super().reset(**more)[1]

  def step(self, action):
    self._buffer += 1
    return (self._buffer, *super().step(action)[1:])


def test_arrays_that_are_used_again():
  """The last observation of an episode is not the first of the next."""
  one = worker.Worker({'constructor': f'{__name__}.Reused'})
  one.reset()
  for _ in range(3):
    observation, _, done, infos = one.step({'agent': np.ones(1, np.float32)})
  assert done and infos['final']['agent'].tolist() == [3, 3]
  assert observation['agent'].tolist() == [0, 0]


def test_an_info_that_is_called_truncated():
  """It is no time limit if the environment says that it has terminated."""
  row = np.zeros(1, np.float32)
  made = Played(Box(0, 1, (1,)), [row] * 2, info={'truncated': True})
  env = adapters.adapt(made)
  env.reset()
  _, _, done, info = env.step(np.ones(1))
  assert done and not info['truncated']
  other = adapters.AsGymnasium(adapters.adapt(made))
  other.reset()
  assert other.step(np.ones(1))[2:4] == (True, False)


def test_rewards_that_change_goals():
  """As a function may that works in place."""

  class Goals(gymnasium.Env):
    def compute_reward(self, achieved, desired, info):
      achieved -= desired
      return -np.abs(achieved).sum(-1)

  env = envs.GoalEnv.__new__(envs.GoalEnv)
  env._env, env._name, env._row_by_row = Goals(), 'it', False
  env._whole = None, None
  achieved, desired = np.ones([3, 2]), np.zeros([3, 2]) + 0.5
  rewards = env.compute_reward(achieved, desired, {})
  assert rewards.tolist() == [-1] * 3 and (achieved == 1).all()
