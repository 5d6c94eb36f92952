"""Wrappers that change what an action means."""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from agents.envs import spaces
from agents.tools.wrappers.base import Wrapper


class ActionRepeat(Wrapper):
  """Repeat each action, add up the rewards, stop early at the end.

  Args:
    env: Environment to wrap.
    amount: Number of steps with the same action, at least one.
  """

  def __init__(self, env: Any, amount: int):
    super().__init__(env)
    if amount < 1:
      raise ValueError(f'Cannot repeat actions {amount} times; use 1 or more.')
    self._amount = amount

  def step(self, action: Any) -> tuple:
    total_reward = 0
    for _ in range(self._amount):
      observ, reward, done, info = self._env.step(action)
      total_reward += reward
      if done:
        break
    return observ, total_reward, done, info


class NormalizeActions(Wrapper):
  """Map actions from [-1, 1] to the range of the environment.

  Dimensions that lack a finite bound are passed through unchanged.
  """

  def __init__(self, env: Any):
    super().__init__(env)
    space = env.action_space
    self._enabled = np.isfinite(space.low) & np.isfinite(space.high)
    self._low = np.where(self._enabled, space.low, -1)
    self._high = np.where(self._enabled, space.high, 1)

  @functools.cached_property
  def action_space(self) -> Any:
    space = self._env.action_space
    low = np.where(self._enabled, -np.ones_like(self._low), space.low)
    high = np.where(self._enabled, np.ones_like(self._low), space.high)
    return spaces.box(low, high)

  def step(self, action: Any) -> tuple:
    mapped = (action + 1) / 2 * (self._high - self._low) + self._low
    return self._env.step(np.where(self._enabled, mapped, action))


class ClipAction(Wrapper):
  """Accept any action and clip it to the space of the environment.

  Discrete actions stay as they are.
  """

  @functools.cached_property
  def _bounds(self):
    space = self._env.action_space
    return None if spaces.is_discrete(space) else (space.low, space.high)

  @functools.cached_property
  def action_space(self) -> Any:
    space = self._env.action_space
    if spaces.is_discrete(space):
      return space
    infinity = np.full(space.shape, np.inf, np.float32)
    return spaces.box(-infinity, infinity)

  def step(self, action: Any) -> tuple:
    if self._bounds:
      action = np.clip(action, *self._bounds)
    return self._env.step(action)


class OneHotAction(Wrapper):
  """Choose among discrete actions by the largest number of a vector.

  Agents of continuous actions can use such environments then; uniform random
  vectors choose uniformly.

  Args:
    env: Environment with a discrete space of actions.
  """

  def __init__(self, env: Any):
    super().__init__(env)
    ones = np.ones(int(env.action_space.n), np.float32)
    self.action_space = spaces.box(-ones, ones)
    self._start = spaces.first_action(env.action_space) or 0

  def step(self, action: Any, *args: Any, **kwargs: Any) -> tuple:
    return self._env.step(self._start + int(np.argmax(action)), *args, **kwargs)


class PadActions(Wrapper):
  """Give environments of different action sizes one common action space.

  Args:
    env: Environment to wrap.
    action_spaces: The one-dimensional action spaces of all environments. The
      common space has the length of the longest one, the smallest lower and
      the largest upper bound of each dimension.
  """

  def __init__(self, env: Any, action_spaces: Sequence[Any]):
    super().__init__(env)
    assert all(len(x.shape) == 1 for x in action_spaces), action_spaces
    self.action_space = self._combine(action_spaces)

  def step(self, action: Any, *args: Any, **kwargs: Any) -> tuple:
    size = self._env.action_space.shape[0]
    return self._env.step(action[:size], *args, **kwargs)

  def _combine(self, action_spaces):
    length = max(x.shape[0] for x in action_spaces)
    low, high = np.inf * np.ones(length), -np.inf * np.ones(length)
    for space in action_spaces:
      size = space.shape[0]
      low[:size] = np.minimum(space.low, low[:size])
      high[:size] = np.maximum(space.high, high[:size])
    return spaces.box(low, high)
