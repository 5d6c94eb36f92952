"""Wrappers that change ranges and types of numbers, but not their meaning."""

import functools
import logging
from typing import Any

import numpy as np

from agents.envs import finite, spaces
from agents.tools import nested
from agents.tools.wrappers.base import Wrapper


class RangeNormalize(Wrapper):
  """Scale observations and actions linearly to [-1, 1], without clipping.

  Integers such as those of images become floats. Discrete actions are counted
  from zero, and stay as they are otherwise.

  Args:
    env: Environment to wrap.
    observ: True to normalise observations, False to leave them alone. By
      default they are normalised if their range is finite.
    action: The same for actions.

  Raises:
    ValueError: If a range is infinite and should be normalised.
  """

  def __init__(
    self, env: Any, observ: bool | None = None, action: bool | None = None
  ):
    super().__init__(env)
    self._observ = self._bounds(env.observation_space, observ, 'observation')
    self._start = spaces.first_action(env.action_space)
    self._action = None
    if self._start is None:
      self._action = self._bounds(env.action_space, action, 'action')

  @functools.cached_property
  def observation_space(self) -> Any:
    space = self._env.observation_space
    return space if self._observ is None else _unit_box(space)

  @functools.cached_property
  def action_space(self) -> Any:
    space = self._env.action_space
    if self._start:
      return spaces.discrete(space.n)
    return space if self._action is None else _unit_box(space)

  def step(self, action: Any) -> tuple:
    if self._start:
      action = action + self._start
    if self._action is not None:
      low, high = self._action
      action = (action + 1) / 2 * (high - low) + low
    observ, reward, done, info = self._env.step(action)
    return self._normalize(observ), reward, done, info

  def reset(self) -> Any:
    return self._normalize(self._env.reset())

  def _normalize(self, observ):
    if self._observ is None:
      return observ
    low, high = self._observ
    return 2 * (observ - low) / (high - low) - 1

  def _bounds(self, space, enabled, name):
    """Lower and upper bounds, or None if there is nothing to normalise."""
    if enabled is False:
      return None
    low, high = getattr(space, 'low', np.inf), getattr(space, 'high', np.inf)
    if np.isfinite(low).all() and np.isfinite(high).all():
      return spaces.float_bounds(space)
    if enabled:
      raise ValueError(f'Cannot normalize infinite {name} range.')
    logging.getLogger(__name__).info('Not normalizing infinite %s range.', name)
    return None


class ConvertTo32Bit(Wrapper):
  """Convert observations and rewards to 32 bits and refuse infinities.

  Observations become float32 or int32, other dtypes stay; rewards become
  float32 arrays without dimensions.

  Raises:
    NotFinite: If an observation or a reward is infinite or NaN.
  """

  def step(self, action: Any) -> tuple:
    observ, reward, done, info = self._env.step(action)
    observ = nested.map(self._convert_observ, observ)
    finite.check(reward, 'reward', self._env)
    return observ, np.array(reward, np.float32), done, info

  def reset(self) -> Any:
    return nested.map(self._convert_observ, self._env.reset())

  def _convert_observ(self, observ):
    observ = np.asarray(observ)
    if observ.dtype.kind == 'f':
      finite.check(observ, 'observation', self._env)
    dtype = {'float64': np.float32, 'int64': np.int32}.get(observ.dtype.name)
    return observ.astype(dtype) if dtype else observ


class CacheSpaces(Wrapper):
  """Read both spaces once and return the same objects from then on."""

  def __init__(self, env: Any):
    super().__init__(env)
    self.observation_space = env.observation_space
    self.action_space = env.action_space


def _unit_box(space):
  ones = np.ones(space.shape, np.float32)
  return spaces.box(-ones, ones)
