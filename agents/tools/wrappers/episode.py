"""Wrappers that change where episodes start and end."""

import logging
from typing import Any

import numpy as np

from agents.tools.wrappers.base import Wrapper


class AutoReset(Wrapper):
  """Reset instead of stepping when the episode is over.

  Such a step returns the first observation, reward 0, and done False.
  """

  def __init__(self, env: Any):
    super().__init__(env)
    self._done = True

  def step(self, action: Any) -> tuple:
    if self._done:
      return self.reset(), 0.0, False, {}
    observ, reward, self._done, info = self._env.step(action)
    return observ, reward, self._done, info

  def reset(self) -> Any:
    self._done = False
    return self._env.reset()


class RandomStart(Wrapper):
  """Begin each episode with a random number of random actions.

  The number comes from NumPy's global generator, as in the original.

  Args:
    env: Environment to wrap.
    max_steps: Exclusive upper limit of the number of actions.
  """

  def __init__(self, env: Any, max_steps: int):
    super().__init__(env)
    self._max_steps = max_steps

  def reset(self) -> Any:
    while True:
      observ = self._env.reset()
      for _ in range(np.random.randint(0, self._max_steps)):
        observ, _, done, _ = self._env.step(self._env.action_space.sample())
        if done:
          logging.getLogger(__name__).warning(
            'Episode ended during random start.'
          )
          break
      else:
        return observ


class _Counted(Wrapper):
  """Count the steps of an episode; `_step` is None while it is over.

  Args:
    env: Environment to wrap.
    duration: Number of steps that matters.

  Raises:
    RuntimeError: When stepped while the episode is over.
  """

  def __init__(self, env: Any, duration: int):
    super().__init__(env)
    self._duration = duration
    self._step: Any = None

  def step(self, action: Any) -> tuple:
    if self._step is None:
      raise RuntimeError('Must reset environment.')
    transition = self._env.step(action)
    self._step += 1
    return transition

  def reset(self) -> Any:
    self._step = 0
    return self._env.reset()


class MaximumDuration(_Counted):
  """End episodes after `duration` steps; they must be reset then.

  Only `reset` clears the counter, not an earlier end by the environment. The
  step that reaches the limit says so in `info['truncated']`.
  """

  def step(self, action: Any) -> tuple:
    observ, reward, done, info = super().step(action)
    if self._step >= self._duration:
      info = info if done else dict(info, truncated=True)
      done = True
      self._step = None
    return observ, reward, done, info


LimitDuration = MaximumDuration


class MinimumDuration(_Counted):
  """Ignore the end of episodes of fewer than `duration` steps.

  The environment is stepped on past its own end.
  """

  def step(self, action: Any) -> tuple:
    observ, reward, done, info = super().step(action)
    return observ, reward, done and self._step >= self._duration, info
