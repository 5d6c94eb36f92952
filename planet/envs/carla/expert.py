"""A driver that knows how to drive, for episodes to learn from."""

from typing import Any

import numpy as np

from agents.envs import wrappers
from planet.envs.carla import env as env_lib
from planet.envs.carla import policies


class ExpertDriver(wrappers.Wrapper):
  """Repeat what an expert does, whatever actions are given.

  On a server the traffic manager drives, and decides anew at every step;
  offline it is the scripted driver, once per decision. The info of a step has
  the `applied_action`, float32 [2], which is the mean of those of its steps.

  Args:
    env: Environment whose setting `expert` is given.
    amount: Number of steps per decision, as of `ActionRepeat`.
  """

  def __init__(self, env: env_lib.CarlaEnv, amount: int):
    super().__init__(env)
    self._amount = amount
    self._is_scripted = env.backend.name == 'offline'
    self._policy = policies.PurePursuit()

  def step(self, unused_action: Any) -> tuple:
    action = np.zeros(2, np.float32)
    if self._is_scripted:
      action = self._policy(self._env)
    total, applied = 0.0, []
    for _ in range(self._amount):
      observ, reward, done, info = self._env.step(action)
      total += reward
      if 'control' in info:
        throttle, steer, brake = info['control']
        applied.append((throttle - brake, steer))
      if done:
        break
    if applied:
      info['applied_action'] = np.mean(applied, 0, dtype=np.float32)
    return observ, total, done, info
