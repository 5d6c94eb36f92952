"""Small environments for explorers, free of TensorFlow."""

import random

import gymnasium
import numpy as np

from agents.envs import spaces


class CountEnv:
  """Observes [t, number of the episode, last action]; rewards are t.

  Args:
    length: Number of steps per episode.
    truncated: Whether the end is a limit of time.
    nan_at: Step whose observation is NaN.
    fail_at: Step that raises an error.
    exit_at: Step that ends the program.
    reward: Reward instead of t.
    restorable: Whether the state can be read and set.
    info: Name of an info that is only told every other step.
  """

  metadata = {'render_fps': 20}

  def __init__(
    self,
    length=3,
    truncated=False,
    nan_at=None,
    restorable=False,
    info=None,
    fail_at=None,
    exit_at=None,
    reward=None,
    bound=1,
  ):
    self.observation_space = spaces.box([-99] * 3, [99] * 3)
    self.action_space = spaces.box([-bound], [bound])
    self.np_random = np.random.default_rng(0)
    self._length, self._truncated = length, truncated
    self._nan_at, self._fail_at, self._info = nan_at, fail_at, info
    self._exit_at, self._reward = exit_at, reward
    self._state = [0, -1, 0.0]
    if restorable:
      self.get_env_state = lambda: [float(x) for x in self._state]
      self.set_env_state = self._set_state

  def seed(self, seed):
    self.np_random = np.random.default_rng(seed)

  def reset(self):
    self._state = [0, self._state[1] + 1, 0.0]
    return self._observe()

  def step(self, action):
    self._state[0] += 1
    self._state[2] = float(action[0])
    time = self._state[0]
    if time == self._fail_at:
      raise KeyError('broken')
    if time == self._exit_at:
      raise SystemExit(0)
    done = time >= self._length
    info = {'truncated': True} if done and self._truncated else {}
    if self._info and time % 2:
      info[self._info] = {'number': time, 'size': time / 2, 'name': 'text'}
    reward = float(time) if self._reward is None else self._reward
    return self._observe(), reward, done, info

  def render(self, mode):
    assert mode == 'rgb_array'
    return np.full((600, 400, 3), 10 * self._state[0], np.uint8)

  def _observe(self):
    observation = np.array(self._state, np.float32)
    if self._state[0] == self._nan_at:
      observation[1] = np.nan
    return observation

  def _set_state(self, state):
    self._state = list(state)


class TwoAgentsEnv:
  """Nested dictionary of observations; actions of `left` and `right`."""

  def __init__(self, length=4):
    one = spaces.box([-9], [9])
    self.observation_space = spaces.dictionary(
      {'hand': spaces.dictionary({'left': one, 'right': one}), 'time': one}
    )
    pair = spaces.box([-1, -1], [1, 1])
    self.action_space = spaces.dictionary({'left': one, 'right': pair})
    self._length = length
    self._time, self._left, self._right = 0, 0.0, 0.0

  def reset(self):
    self._time, self._left, self._right = 0, 0.0, 0.0
    return self._observe()

  def step(self, actions):
    self._time += 1
    self._left = actions['left'][0]
    self._right = actions['right'].sum()
    done = self._time >= self._length
    return self._observe(), float(self._left - self._right), done, {}

  def _observe(self):
    parts = {'left': self._left, 'right': self._right}
    return {
      'hand': {k: np.array([v], np.float32) for k, v in parts.items()},
      'time': np.array([self._time], np.float32),
    }


class ChainEnv:
  """Two states in a row, one-hot; the second step is rewarded with 1.

  Args:
    truncated: Whether the end is a limit of time.
  """

  def __init__(self, truncated=False):
    self.observation_space = spaces.box([0, 0, 0], [1, 1, 1])
    self.action_space = spaces.box([-1], [1])
    self._truncated = truncated
    self._time = 0

  def reset(self):
    self._time = 0
    return self._observe()

  def step(self, unused_action):
    self._time += 1
    done = self._time == 2
    info = {'truncated': True} if done and self._truncated else {}
    return self._observe(), float(done), done, info

  def _observe(self):
    return np.eye(3, dtype=np.float32)[self._time]


class GlobalEnv:
  """Observes what the generators of the whole process give."""

  def __init__(self):
    self.observation_space = spaces.box([0, 0], [1, 1])
    self.action_space = spaces.box([-1], [1])

  def reset(self):
    return np.array([random.random(), np.random.uniform()])

  def step(self, unused_action):
    return self.reset(), 0.0, False, {}


class Observing(gymnasium.Env):
  """Ten steps; the observations of a space are drawn by the seed.

  Args:
    space: Observation space.
  """

  def __init__(self, space):
    self.observation_space = space
    self.action_space = gymnasium.spaces.Box(-2, 2, (1,), np.float32)

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    if seed is not None:
      self.observation_space.seed(seed)
    self._step = 0
    return self.observation_space.sample(), {}

  def step(self, action):
    self._step += 1
    observ = self.observation_space.sample()
    return observ, float(action[0]), self._step == 10, False, {}


def picture():
  return Observing(gymnasium.spaces.Box(0, 255, (40, 36, 3), np.uint8))


def state_and_picture():
  place = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
  text = gymnasium.spaces.Text(9)
  camera = picture().observation_space
  parts = {'camera': camera, 'place': place, 'mission': text}
  return Observing(gymnasium.spaces.Dict(parts))


def choices():
  return Observing(gymnasium.spaces.MultiDiscrete([3, 2]))
