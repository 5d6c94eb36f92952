"""Environments of gymnasium that make mistakes, by ids of this module."""

import warnings

import gymnasium
import numpy as np


class Odd(gymnasium.Env):
  """Ten steps; each argument is a mistake."""

  metadata = {'render_modes': ['rgb_array']}
  action_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)

  def __init__(
    self,
    render_mode=None,
    nan_at=0,
    shape_at=0,
    reward=1.0,
    image='uint8',
    unseeded=False,
    goals=False,
    other_reward=False,
    end_at=10,
    broken=False,
    fails_at=0,
    warning=None,
    words=False,
    info=None,
    observed=None,
    actions=None,
  ):
    if broken:
      raise KeyError('no such robot')
    self.render_mode = render_mode
    self._wrong = {'nan': nan_at, 'shape': shape_at}
    self._fails_at = fails_at
    self._warning = warning
    self._reward, self._image, self._unseeded = reward, image, unseeded
    self._goals, self._other, self._end = goals, other_reward, end_at
    space = gymnasium.spaces.Box(-np.inf, np.inf, (3,), np.float64)
    self.observation_space = space
    # Function from the number of the step.
    self._info = info or (lambda step: {})
    if actions:
      self.action_space = actions
    if words:
      self.observation_space = gymnasium.spaces.Text(5)
    if goals:
      keys = 'observation', 'achieved_goal', 'desired_goal'
      self.observation_space = gymnasium.spaces.Dict(
        {key: space for key in keys}
      )
    self._sampled = observed is not None
    if observed:
      self.observation_space = observed

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    if self._warning:
      warnings.warn(self._warning, stacklevel=1)
    self._steps = 0
    return self._observe(), {}

  def step(self, action):
    self._steps += 1
    if self._steps == self._fails_at:
      raise ZeroDivisionError('by the robot')
    observation = self._observe()
    reward = self._reward
    if self._goals:
      achieved = observation['achieved_goal']
      reward = self.compute_reward(achieved, observation['desired_goal'], {})
      reward += float(self._other)
    info = self._info(self._steps)
    return observation, reward, self._steps == self._end, False, info

  def compute_reward(self, achieved, desired, info):
    return -np.linalg.norm(achieved - desired, axis=-1)

  def render(self):
    if self._image == 'none':
      return None
    return np.zeros((8, 8, 3), self._image)

  def _observe(self):
    if self._sampled:
      return self.observation_space.sample()
    if self._wrong['shape'] and self._steps >= self._wrong['shape']:
      return np.zeros(4)
    rng = np.random if self._unseeded else self.np_random
    value = rng.uniform(size=3)
    if self._wrong['nan'] and self._steps >= self._wrong['nan']:
      value[1] = np.nan
    if self._goals:
      goals = {'achieved_goal': value, 'desired_goal': np.ones(3)}
      return {'observation': value, **goals}
    return value


class Near(Odd):
  """Rewards that goals have which are not reached."""

  def compute_reward(self, achieved, desired, info):
    distance = np.linalg.norm(achieved - desired, axis=-1)
    if self._image == 'float64' and not np.all(distance):
      raise ZeroDivisionError('distance')
    with np.errstate(divide='ignore'):
      return -np.log(distance)


class Blind(gymnasium.Env):
  """Takes no render_mode."""

  observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
  action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    return np.zeros(1, np.float32), {}

  def step(self, action):
    return np.zeros(1, np.float32), 0.0, False, False, {}


class Slip(gymnasium.Env):
  """Fine until a step, in which it exits or returns other values."""

  metadata = {'render_modes': ['rgb_array']}
  observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
  action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

  def __init__(self, render_mode=None, at=5, exits=None, **others):
    self.render_mode = render_mode
    self._at, self._exits, self._others = at, exits, others

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    self._steps = 0
    return np.zeros(2, np.float32), {}

  def step(self, action):
    self._steps += 1
    names = 'observation', 'reward', 'terminated', 'truncated', 'info'
    usual = np.zeros(2, np.float32), 1.0, False, False, {}
    result = dict(zip(names, usual))
    if self._steps == self._at:
      if self._exits:
        raise self._exits
      result.update(self._others)
    return tuple(result.values())

  def render(self):
    return np.zeros((8, 8, 3), np.uint8)


def register(name, **kwargs):
  """Register an environment; return its id."""
  kind = kwargs.pop('kind', Odd)
  env_id = f'{name}-v0'
  gymnasium.register(env_id, kind, max_episode_steps=10, kwargs=kwargs)
  return env_id


MODULE = __name__
register('OddBroken', broken=True)
register('OddNaN', nan_at=1)
register('OddGoalNaN', nan_at=1, goals=True)
register('OddGrowing', shape_at=4)
register('OddFaulty', fails_at=5)
register('OddNoImage', image='none')
register('OddBlind', kind=Blind)
register('OddExit', kind=Slip, exits=SystemExit(0))
register('OddInfoNone', kind=Slip, info=None)
register('OddRewards', kind=Slip, reward=np.ones(2))
register('OddLast', kind=Slip, at=10, info=None)
