"""Environments that insist on actions of their space."""

import gymnasium
import numpy as np

from agents.envs.contract import GOAL_KEYS

LARGEST = np.finfo(np.float32).max
SPACES = {
  # Scaling to the second one ends at 0.90000004.
  'rounding': ([0.1, -0.3], [0.7, 0.9], np.float32),
  'integers': ([0, -3], [4, 3], np.int64),
  'bytes': ([0, 0], [255, 4], np.uint8),
  'doubles': ([-0.1, -2], [0.1, 2], np.float64),
  'infinite': ([-np.inf, -np.inf], [np.inf, np.inf], np.float32),
  'wide': ([-LARGEST, -LARGEST], [LARGEST, LARGEST], np.float32),
  'half': ([-2, -2], [np.inf, np.inf], np.float32),
}


def action_space(name):
  low, high, dtype = SPACES[name]
  low, high = np.array(low, dtype), np.array(high, dtype)
  return gymnasium.spaces.Box(low, high, dtype=dtype)


class Strict(gymnasium.Env):
  """Refuses other actions, and remembers those it gets.

  Args:
    name: Key of `SPACES`.
    goals: Whether observations have goals, with rewards 0 and 1.
    success: Name of the success in the info.
  """

  def __init__(self, name, goals=False, success='success'):
    box = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    self.observation_space = box
    if goals:
      self.observation_space = gymnasium.spaces.Dict(
        dict.fromkeys(GOAL_KEYS, box)
      )
    self.action_space = action_space(name)
    self._goals, self._success = goals, success
    self.actions = []

  def reset(self, seed=None, options=None):
    super().reset(seed=seed)
    return self._observe(), {}

  def step(self, action):
    assert self.action_space.contains(action), repr(action)
    assert np.isfinite(action).all(), repr(action)
    self.actions.append(action)
    return self._observe(), 0.0, False, False, {self._success: True}

  def compute_reward(self, achieved, desired, info):
    near = np.linalg.norm(achieved - desired, axis=-1) < 0.1
    return near.astype(np.float32)

  def _observe(self):
    observ = np.zeros(2, np.float32)
    goal = np.ones(2, np.float32)
    if not self._goals:
      return observ
    return dict(zip(GOAL_KEYS, (observ, observ, goal)))


class Duck:
  """The same with the interface of this project, without its classes."""

  def __init__(self, name):
    self._strict = Strict(name)
    self.observation_space = self._strict.observation_space
    self.action_space = self._strict.action_space

  def reset(self):
    return self._strict.reset()[0]

  def step(self, action):
    observ, reward, *_, info = self._strict.step(action)
    return observ, reward, False, info


def _register(name):
  env_id = f'Strict-{name}-v0'
  if env_id not in gymnasium.registry:
    gymnasium.register(
      env_id,
      'tests.agents.envs.strict:Strict',
      max_episode_steps=5,
      kwargs=dict(name=name, goals=True),
    )
  return env_id


GOAL_IDS = {name: _register(name) for name in SPACES}
