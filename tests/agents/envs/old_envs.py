"""Environments as they were written for the versions of gym.

All of them move a point by half of the action, from a random place.
"""

import functools

import gym
import gymnasium
import numpy as np
from gym.envs import registration

LENGTH = 5


class Point:
  """Neither of gym nor of gymnasium."""

  def __init__(self, rng=None):
    self.observation_space = gym.spaces.Box(-9, 9, (2,), np.float32)
    self.action_space = gym.spaces.Box(-1, 1, (1,), np.float32)
    self._rng = rng or np.random

  def seed(self, seed=None):
    self._rng = np.random.RandomState(seed)
    return [seed]

  def reset(self):
    self._x = np.float32(self._rng.uniform(-1, 1, 2))
    return self._x

  def step(self, action):
    self._x = np.clip(self._x + np.float32(action) / 2, -9, 9)
    return self._x, float(-abs(self._x[0])), np.bool_(False), {}

  def render(self, mode='human'):
    return np.full((64, 64, 3), 7, np.uint8) if mode == 'rgb_array' else None

  def close(self):
    pass


class Old(Point, gym.Env):
  """Of gym until 0.21."""

  metadata = {'render.modes': ['human', 'rgb_array']}


class Middle(gym.Env):
  """Of gym 0.22 to 0.25: `reset` has a seed, and returns no info."""

  metadata = {'render_modes': ['human', 'rgb_array']}
  base = gym.Env

  def __init__(self):
    inner = Point()
    self.observation_space = inner.observation_space
    self.action_space = inner.action_space

  def reset(self, *, seed=None, return_info=False, options=None):
    self.base.reset(self, seed=seed)
    self._inner = Point(self.np_random)
    return self._inner.reset()

  def step(self, action):
    return self._inner.step(action)

  def render(self, mode='human'):
    return self._inner.render(mode)


class Late(Middle):
  """Of gym 0.26: two and five values, and a mode for the constructor."""

  def __init__(self, render_mode=None):
    super().__init__()
    self.render_mode = render_mode

  def reset(self, *, seed=None, options=None):
    return super().reset(seed=seed), {}

  def step(self, action):
    observ, reward, done, info = self._inner.step(action)
    return observ, reward, done, False, info

  def render(self):
    return self._inner.render(self.render_mode)


class Renamed(gymnasium.Env):
  """Only the import was changed."""

  metadata = {'render.modes': ['human', 'rgb_array']}

  def __init__(self):
    self._inner = Point()
    self.observation_space = gymnasium.spaces.Box(-9, 9, (2,), np.float32)
    self.action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

  def reset(self):
    self._inner = Point(self.np_random)
    return self._inner.reset()

  def step(self, action):
    return self._inner.step(action)

  def render(self, mode='human'):
    return self._inner.render(mode)


class Half(Renamed):
  """The first half of gymnasium: `reset`."""

  def __init__(self, render_mode=None):
    super().__init__()
    self.render_mode = render_mode

  def reset(self, seed=None):
    gymnasium.Env.reset(self, seed=seed)
    return super().reset(), {}

  def render(self):
    return self._inner.render(self.render_mode)


class Composed(gym.Env):
  """Plays another one, made by `gym.make` with its checker."""

  def __init__(self):
    self.env = gym.make('OldPoint-v0')
    self.observation_space = self.env.observation_space
    self.action_space = self.env.action_space

  def seed(self, seed=None):
    return self.env.unwrapped.seed(seed)

  def reset(self):
    return self.env.reset()

  def step(self, action):
    return self.env.step(action)

  def render(self, mode='human'):
    return self.env.render(mode=mode)


class Goals(Old):
  """With goals, as those of gym's robotics."""

  def __init__(self):
    super().__init__()
    box = gym.spaces.Box(-9, 9, (2,), np.float32)
    keys = 'observation', 'achieved_goal', 'desired_goal'
    self.observation_space = gym.spaces.Dict(dict.fromkeys(keys, box))
    self.action_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    self.np_random = np.random.RandomState()

  def seed(self, seed=None):
    self._rng = self.np_random = np.random.RandomState(seed)
    return [seed]

  def reset(self):
    self._goal = np.float32(self.np_random.uniform(-1, 1, 2))
    return self._observe(super().reset())

  def step(self, action):
    observ = self._observe(super().step(action)[0])
    reward = self.compute_reward(observ['achieved_goal'], self._goal, {})
    return observ, reward, False, {'is_success': float(reward == 0)}

  def compute_reward(self, achieved_goal, desired_goal, info):
    far = np.linalg.norm(achieved_goal - desired_goal, axis=-1) > 0.3
    return -far.astype(np.float32)

  def _observe(self, x):
    return {'observation': x, 'achieved_goal': x, 'desired_goal': self._goal}


def made():
  return gym.make('OldPoint-v0')


def made_late():
  return gymnasium.make('RenamedPoint-v0')


# Of classes of gym in gymnasium's registry, too.
GYM = {'Old': Old, 'Middle': Middle, 'Late': Late, 'Composed': Composed}
GYMNASIUM = {'Renamed': Renamed, 'Half': Half, 'Moved': Old, 'Duck': Point}
for _name, _kind in {**GYM, 'OldGoals': Goals}.items():
  registration.register(
    f'{_name}Point-v0',
    entry_point=f'{__name__}:{_kind.__name__}',
    max_episode_steps=LENGTH,
  )
for _name, _kind in {**GYMNASIUM, 'MovedGoals': Goals}.items():
  gymnasium.register(
    f'{_name}Point-v0',
    f'{__name__}:{_kind.__name__}',
    max_episode_steps=LENGTH,
  )
IDS = [f'{__name__}:{x}Point-v0' for x in (*GYM, *GYMNASIUM)]
GOAL_IDS = [f'{__name__}:{x}GoalsPoint-v0' for x in ('Old', 'Moved')]
NAMES = [f'{__name__}:{x}' for x in ('made', 'made_late', 'Old')]
OBJECTS = [Old, Point, Renamed, Half, functools.partial(Middle)]
