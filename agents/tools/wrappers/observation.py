"""Wrappers that change which observations there are."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from agents.envs import spaces
from agents.tools.wrappers.base import Wrapper


class ObservationDict(Wrapper):
  """Put the observation into a dictionary.

  Args:
    env: Environment to wrap.
    key: Key of the observation.
  """

  def __init__(self, env: Any, key: str = 'observ'):
    super().__init__(env)
    self._key = key

  @functools.cached_property
  def observation_space(self) -> Any:
    return spaces.dictionary({self._key: self._env.observation_space})

  def step(self, action: Any) -> tuple:
    observ, reward, done, info = self._env.step(action)
    return {self._key: np.array(observ)}, reward, done, info

  def reset(self) -> Any:
    return {self._key: np.array(self._env.reset())}


class ConcatObservation(Wrapper):
  """Concatenate some entries of a dictionary along the first dimension.

  Args:
    env: Environment to wrap.
    keys: Entries to use, in this order.

  Raises:
    KeyError: From `observation_space`, if the entries differ in dtype.
  """

  def __init__(self, env: Any, keys: Sequence[str]):
    super().__init__(env)
    self._keys = keys

  @functools.cached_property
  def observation_space(self) -> Any:
    parts = [self._env.observation_space.spaces[key] for key in self._keys]
    dtypes = {str(np.dtype(part.dtype)) for part in parts}
    if len(dtypes) > 1:
      raise KeyError(
        f'Cannot concatenate {list(self._keys)} of different dtypes '
        f'{sorted(dtypes)}; choose entries of the same dtype.'
      )
    return spaces.box(
      np.concatenate([part.low for part in parts], 0),
      np.concatenate([part.high for part in parts], 0),
      parts[0].dtype,
    )

  def step(self, action: Any, *args: Any, **kwargs: Any) -> tuple:
    observ, reward, done, info = self._env.step(action, *args, **kwargs)
    return self._select(observ), reward, done, info

  def reset(self, *args: Any, **kwargs: Any) -> Any:
    return self._select(self._env.reset(*args, **kwargs))

  def _select(self, observ):
    return np.concatenate([observ[key] for key in self._keys], 0)


class SelectObservations(Wrapper):
  """Keep some entries of a dictionary of observations.

  Args:
    env: Environment to wrap.
    keys: Entries to keep.
  """

  def __init__(self, env: Any, keys: Sequence[str]):
    super().__init__(env)
    self._keys = keys

  @functools.cached_property
  def observation_space(self) -> Any:
    parts = self._env.observation_space.spaces
    return spaces.dictionary({key: parts[key] for key in self._keys})

  def step(self, action: Any, *args: Any, **kwargs: Any) -> tuple:
    observ, reward, done, info = self._env.step(action, *args, **kwargs)
    return self._select(observ), reward, done, info

  def reset(self, *args: Any, **kwargs: Any) -> Any:
    return self._select(self._env.reset(*args, **kwargs))

  def _select(self, observ):
    return {key: observ[key] for key in self._keys}


class ProcessObservation(Wrapper):
  """Apply a function to the observation, its bounds and its dtype.

  Args:
    env: Environment to wrap.
    process_fn: Function from array to array.
  """

  def __init__(self, env: Any, process_fn: Callable[[np.ndarray], np.ndarray]):
    super().__init__(env)
    self._process_fn = process_fn

  @functools.cached_property
  def observation_space(self) -> Any:
    space = self._env.observation_space
    low, high = self._process_fn(space.low), self._process_fn(space.high)
    return spaces.box(low, high, low.dtype)

  def step(self, action: Any) -> tuple:
    observ, reward, done, info = self._env.step(action)
    return self._process_fn(observ), reward, done, info

  def reset(self) -> Any:
    return self._process_fn(self._env.reset())


class FrameHistory(Wrapper):
  """Augment the observation with past observations.

  Args:
    env: Environment to wrap.
    past_indices: Ages of the frames to return, 0 for the current one.
    flatten: Concatenate the frames along their first dimension instead of
      stacking them along a new one.

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

  @functools.cached_property
  def observation_space(self) -> Any:
    space = self._env.observation_space
    repeats = len(self._past_indices)
    low, high = [
      np.repeat(x[None], repeats, 0) for x in (space.low, space.high)
    ]
    return spaces.box(self._merge(low), self._merge(high), space.dtype)

  def step(self, action: Any) -> tuple:
    observ, reward, done, info = self._env.step(action)
    self._step += 1
    self._buffer[self._step % self._capacity] = observ
    return self._select(), reward, done, info

  def reset(self) -> Any:
    observ = np.asarray(self._env.reset())
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


class FrameDelta(Wrapper):
  """Return the change since the last observation; resets are unchanged."""

  def __init__(self, env: Any):
    super().__init__(env)
    self._last: Any = None

  @functools.cached_property
  def observation_space(self) -> Any:
    space = self._env.observation_space
    low, high = space.low - space.high, space.high - space.low
    return spaces.box(low, high, space.dtype)

  def step(self, action: Any) -> tuple:
    observ, reward, done, info = self._env.step(action)
    delta, self._last = observ - self._last, observ
    return delta, reward, done, info

  def reset(self) -> Any:
    self._last = self._env.reset()
    return self._last
