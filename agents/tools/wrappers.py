"""Wrappers of environments of batch-ppo.

They do not import TensorFlow; see `agents.envs.wrappers` for what all wrappers
have in common. `ExternalProcess` keeps an environment in a process.
"""

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from agents.envs import guard, spaces
from agents.envs.external import Async as Async
from agents.envs.external import ExternalProcess as ExternalProcess
from agents.envs.wrappers import ChangeObservation, Wrapper
from agents.run import references, schema

# Entry of the info of an action that took fewer steps than it is repeated.
STEPS_OF_ACTION = 'steps_of_action'


@references.nameable
class ActionRepeat(Wrapper):
  """Repeat each action, sum the rewards, and stop early at the episode end.

  If so, the info has the number of steps as `STEPS_OF_ACTION`.

  Args:
    env: Environment to wrap.
    amount: Number of steps per action, at least one.
  """

  def __init__(self, env: Any, amount: int):
    super().__init__(env)
    if amount < 1:
      raise ValueError(f'Cannot repeat actions {amount} times; use 1 or more.')
    self._amount = amount

  def step(self, action: Any) -> tuple:
    total_reward, count, done = 0, 0, False
    while count < self._amount and not done:
      observ, reward, done, info = self._env.step(action)
      total_reward += reward
      count += 1
    if count < self._amount:
      info = {**info, STEPS_OF_ACTION: count}
    return observ, total_reward, done, info


@references.nameable
class ClipAction(Wrapper):
  """Clip actions to the space of the environment.

  Discrete actions are not changed.
  """

  def __init__(self, env: Any):
    super().__init__(env)
    self._clips = not spaces.is_discrete(env.action_space)
    self.action_space = unbounded(env.action_space)

  def step(self, action: Any) -> tuple:
    if self._clips:
      space = self._env.action_space
      action = np.clip(action, space.low, space.high)
    return self._env.step(action)


def unbounded(space: Any) -> Any:
  """Return the space of actions that `ClipAction` accepts for a space."""
  if spaces.is_discrete(space):
    return space
  infinity = np.full(space.shape, np.inf, np.float32)
  return spaces.box(-infinity, infinity)


@references.nameable
class AutoReset(Wrapper):
  """Reset instead of stepping when the episode has ended.

  Such a step returns the initial observation, reward 0, and done False.
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


@references.nameable
class RandomStart(Wrapper):
  """Start each episode with a random number of random actions.

  Draws the number from NumPy's global generator, as in the original.

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


@references.nameable
class Counted(Wrapper):
  """Count the steps of an episode; `_step` is None after it has ended.

  Args:
    env: Environment to wrap.
    duration: Number of steps that subclasses use as their limit.

  Raises:
    UsageError: If the duration is not a number of steps.
    RuntimeError: If stepped after the episode has ended.
  """

  _allowed: Any = schema.Positive

  def __init__(self, env: Any, duration: int):
    super().__init__(env)
    called = f'The duration of {type(self).__name__}'
    self._duration = schema.convert(self._allowed, duration, called)
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


@references.nameable
class LimitDuration(Counted):
  """End episodes after `duration` steps; they must then be reset.

  Only `reset` clears the counter; an earlier end by the environment does not.
  The step that reaches the limit sets `info['truncated']`.
  """

  def step(self, action: Any) -> tuple:
    observ, reward, done, info = super().step(action)
    if self._step >= self._duration:
      info = info if done else dict(info, truncated=True)
      done = True
      self._step = None
    return observ, reward, done, info


@references.nameable
class FrameHistory(Wrapper):
  """Add past observations to the observation.

  Args:
    env: Environment to wrap.
    past_indices: Ages of the frames to return in steps, 0 for the current one.
    flatten: Whether to concatenate the frames along their first dimension
      instead of stacking them along a new one.

  Raises:
    KeyError: If the current frame is not among the indices.
  """

  def __init__(self, env: Any, past_indices: Sequence[int], flatten: bool):
    super().__init__(env)
    if 0 not in past_indices:
      raise KeyError('Past indices should include 0 for the current frame.')
    self._past_indices = np.asarray(past_indices)
    self._flatten = flatten
    self._capacity = max(past_indices) + 1
    self._buffer: Any = None
    self._step = 0
    space, repeats = env.observation_space, len(past_indices)
    low, high = [
      self._merge(np.repeat(x[None], repeats, 0))
      for x in (space.low, space.high)
    ]
    self.observation_space = spaces.box(low, high, space.dtype)

  def step(self, action: Any) -> tuple:
    observ, reward, done, info = self._env.step(action)
    self._step += 1
    self._buffer[self._step % self._capacity] = observ
    return self._select(), reward, done, info

  def reset(self) -> Any:
    observ = np.asarray(self._env.reset())
    # The observation may consist of integers, unlike its space.
    observ = observ.astype(np.result_type(observ, self.observation_space.dtype))
    self._buffer = np.repeat(observ[None], self._capacity, 0)
    self._step = 0
    return self._select()

  def _select(self):
    indices = (self._step - self._past_indices) % self._capacity
    return self._merge(self._buffer[indices])

  def _merge(self, frames):
    if not self._flatten:
      return frames
    return frames.reshape((-1,) + frames.shape[2:])


@references.nameable
class FrameDelta(Wrapper):
  """Return the change since the last observation; resets are unchanged."""

  def __init__(self, env: Any):
    super().__init__(env)
    self._last: Any = None
    space = env.observation_space
    low, high = space.low - space.high, space.high - space.low
    self.observation_space = spaces.box(low, high, space.dtype)

  def step(self, action: Any) -> tuple:
    observ, reward, done, info = self._env.step(action)
    delta, self._last = observ - self._last, observ
    return delta, reward, done, info

  def reset(self) -> Any:
    self._last = self._env.reset()
    return self._last


@references.nameable
class RangeNormalize(ChangeObservation):
  """Scale observations and actions linearly to [-1, 1], without clipping.

  Integers, such as those of images, become floats. Discrete actions are only
  shifted to start at zero.

  Args:
    env: Environment to wrap.
    observ: Whether to normalize observations; by default, if their range is
      finite.
    action: The same for actions.

  Raises:
    ValueError: If a range to normalize is infinite.
  """

  def __init__(
    self, env: Any, observ: bool | None = None, action: bool | None = None
  ):
    super().__init__(env)
    self._ranges = spaces.Ranges(
      env.observation_space, env.action_space, observ, action
    )
    self.observation_space = self._ranges.observation_space
    self.action_space = self._ranges.action_space
    self._change = self._ranges.observ  # type: ignore[method-assign]

  def step(self, action: Any, *args: Any, **kwargs: Any) -> tuple:
    return super().step(self._ranges.action(action), *args, **kwargs)


@references.nameable
class ConvertTo32Bit(ChangeObservation):
  """Convert observations and rewards to 32 bits; refuse infinity and NaN.

  Observations become float32 or int32, other dtypes are kept; rewards become
  float32 scalars.

  Raises:
    BadNumber: If an observation or a reward is infinite or NaN.
  """

  def step(self, action: Any) -> tuple:
    observ, reward, done, info = super().step(action)
    with np.errstate(over='ignore'):
      reward = np.array(reward, np.float32)
    guard.check_finite(reward, 'reward', self._env)
    return observ, reward, done, info

  def _change(self, observ):
    if isinstance(observ, dict):
      return {key: self._change(value) for key, value in observ.items()}
    observ = np.asarray(observ)
    if observ.dtype.kind == 'f':
      guard.check_finite(observ, 'observation', self._env)
    return to_32_bit(observ)


def to_32_bit(array: np.ndarray) -> np.ndarray:
  """Convert an array from 64 to 32 bits; other dtypes are kept."""
  dtype = {'float64': np.float32, 'int64': np.int32}.get(array.dtype.name)
  return array.astype(dtype or array.dtype, copy=False)


@references.nameable
class CacheSpaces(Wrapper):
  """Read both spaces once and then always return the same objects."""

  def __init__(self, env: Any):
    super().__init__(env)
    self.observation_space = env.observation_space
    self.action_space = env.action_space
