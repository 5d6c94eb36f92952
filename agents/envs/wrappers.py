"""Wrappers of environments.

All of them accept and provide `reset() -> observation` and `step(action) ->
(observation, reward, done, info)`, and forward other attributes to the wrapped
environment. This module does not import TensorFlow, because wrapped
environments run in separate processes.
"""

import contextlib
import logging
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from agents.envs import guard, spaces
from agents.envs.hosts import Async as Async
from agents.envs.hosts import ExternalProcess as ExternalProcess
from agents.run import errors, references


class Wrapper:
  """Base class that forwards everything to the wrapped environment.

  Args:
    env: Environment with `reset`, `step`, and both spaces.
  """

  def __init__(self, env: Any):
    self._env = env

  def __getattr__(self, name: str) -> Any:
    # Copying and unpickling look for names before `_env` exists.
    if name == '_env' or name.startswith('__'):
      raise AttributeError(name)
    return getattr(self._env, name)

  def step(self, action: Any, *args: Any, **kwargs: Any) -> tuple:
    return self._env.step(action, *args, **kwargs)

  def reset(self, *args: Any, **kwargs: Any) -> Any:
    return self._env.reset(*args, **kwargs)


class ActionRepeat(Wrapper):
  """Repeat each action, sum the rewards, and stop early at the episode end.

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
    total_reward = 0
    for _ in range(self._amount):
      observ, reward, done, info = self._env.step(action)
      total_reward += reward
      if done:
        break
    return observ, total_reward, done, info


class NormalizeActions(Wrapper):
  """Map actions from [-1, 1] to the range of the environment.

  Dimensions without finite bounds, or with bounds too far apart for their
  dtype, are passed through unchanged.
  """

  def __init__(self, env: Any):
    super().__init__(env)
    self._enabled = spaces.find_scalable(env.action_space)
    low, high = spaces.float_bounds(env.action_space)
    self._low = np.where(self._enabled, low, -1)
    self._high = np.where(self._enabled, high, 1)
    # What is too wide to scale counts as infinite.
    wide = np.isfinite(low) & np.isfinite(high) & ~self._enabled
    self.action_space = spaces.box(
      np.where(self._enabled, -1, np.where(wide, -np.inf, low)),
      np.where(self._enabled, 1, np.where(wide, np.inf, high)),
    )

  def step(self, action: Any) -> tuple:
    mapped = (action + 1) / 2 * (self._high - self._low) + self._low
    return self._env.step(np.where(self._enabled, mapped, action))


class FitActions(Wrapper):
  """Turn actions into legal ones of the environment, see `spaces.fitting`.

  The last wrapper before environments that need no other adapter.
  """

  def __init__(self, env: Any):
    super().__init__(env)
    self._fit = spaces.fitting(env.action_space)

  def step(self, action: Any, *args: Any, **kwargs: Any) -> tuple:
    return self._env.step(self._fit(action), *args, **kwargs)


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


class OneHotAction(Wrapper):
  """Select a discrete action by the largest entry of a vector.

  This lets agents with continuous actions use such environments; uniform random
  vectors select actions uniformly.

  Args:
    env: Environment with a discrete action space.
  """

  def __init__(self, env: Any):
    super().__init__(env)
    ones = np.ones(int(env.action_space.n), np.float32)
    self.action_space = spaces.box(-ones, ones)
    self._start = spaces.first_action(env.action_space) or 0

  def step(self, action: Any, *args: Any, **kwargs: Any) -> tuple:
    return self._env.step(self._start + int(np.argmax(action)), *args, **kwargs)


class PadActions(Wrapper):
  """Give environments with different action sizes a common action space.

  Args:
    env: Environment to wrap.
    action_spaces: The one-dimensional action spaces of all environments. The
      common space has the length of the longest one, and the smallest lower
      and largest upper bound of each dimension.
  """

  def __init__(self, env: Any, action_spaces: Sequence[Any]):
    super().__init__(env)
    assert all(len(x.shape) == 1 for x in action_spaces), action_spaces
    self.action_space = self._combine(action_spaces)

  def step(self, action: Any, *args: Any, **kwargs: Any) -> tuple:
    size = self._env.action_space.shape[0]
    *others, info = self._env.step(action[:size], *args, **kwargs)
    if 'applied_action' in info:
      applied = np.concatenate([info['applied_action'], action[size:]])
      info = {**info, 'applied_action': applied}
    return *others, info

  def _combine(self, action_spaces):
    length = max(x.shape[0] for x in action_spaces)
    low, high = np.inf * np.ones(length), -np.inf * np.ones(length)
    for space in action_spaces:
      size = space.shape[0]
      low[:size] = np.minimum(space.low, low[:size])
      high[:size] = np.maximum(space.high, high[:size])
    return spaces.box(low, high)


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


class _Counted(Wrapper):
  """Count the steps of an episode; `_step` is None after it has ended.

  Args:
    env: Environment to wrap.
    duration: Number of steps that subclasses use as their limit.

  Raises:
    RuntimeError: If stepped after the episode has ended.
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


LimitDuration = MaximumDuration


class MinimumDuration(_Counted):
  """Ignore the end of episodes with fewer than `duration` steps.

  Keeps stepping the environment past its own end.
  """

  def step(self, action: Any) -> tuple:
    observ, reward, done, info = super().step(action)
    return observ, reward, done and self._step >= self._duration, info


class _ChangeObservation(Wrapper):
  """Base of wrappers that apply `_change` to each observation."""

  def step(self, action: Any, *args: Any, **kwargs: Any) -> tuple:
    observ, reward, done, info = self._env.step(action, *args, **kwargs)
    return self._change(observ), reward, done, info

  def reset(self, *args: Any, **kwargs: Any) -> Any:
    return self._change(self._env.reset(*args, **kwargs))

  def _change(self, observ):
    raise NotImplementedError


class ObservationDict(_ChangeObservation):
  """Put the observation into a dictionary.

  Args:
    env: Environment to wrap.
    key: Key of the observation.
  """

  def __init__(self, env: Any, key: str = 'observ'):
    super().__init__(env)
    self._key = key
    self.observation_space = spaces.dictionary({key: env.observation_space})

  def _change(self, observ):
    return {self._key: np.array(observ)}


class VectorObservations(_ChangeObservation):
  """Turn the entries of a dictionary, of any shape, into float32 vectors."""

  def __init__(self, env: Any):
    super().__init__(env)
    parts = env.observation_space.spaces.items()
    self.observation_space = spaces.dictionary(
      {k: spaces.box(x.low.ravel(), x.high.ravel()) for k, x in parts}
    )

  def _change(self, observ):
    with np.errstate(over='ignore'):  # `ConvertTo32Bit` raises
      return {k: np.float32(v).reshape(-1) for k, v in observ.items()}


class ConcatObservation(_ChangeObservation):
  """Concatenate entries of a dictionary along the first dimension.

  Args:
    env: Environment to wrap.
    keys: Entries to use, in this order.

  Raises:
    KeyError: If the entries differ in dtype.
  """

  def __init__(self, env: Any, keys: Sequence[str]):
    super().__init__(env)
    self._keys = keys
    parts = [env.observation_space.spaces[key] for key in keys]
    dtypes = {str(np.dtype(part.dtype)) for part in parts}
    if len(dtypes) > 1:
      raise KeyError(
        f'Cannot concatenate {list(keys)} of different dtypes '
        f'{sorted(dtypes)}; choose entries of the same dtype.'
      )
    self.observation_space = spaces.box(
      np.concatenate([part.low for part in parts], 0),
      np.concatenate([part.high for part in parts], 0),
      parts[0].dtype,
    )

  def _change(self, observ):
    return np.concatenate([observ[key] for key in self._keys], 0)


class SelectObservations(_ChangeObservation):
  """Keep some entries of dictionary observations.

  Args:
    env: Environment to wrap.
    keys: Entries to keep.
  """

  def __init__(self, env: Any, keys: Sequence[str]):
    super().__init__(env)
    self._keys = keys
    parts = env.observation_space.spaces
    self.observation_space = spaces.dictionary({x: parts[x] for x in keys})

  def _change(self, observ):
    return {key: observ[key] for key in self._keys}


class ProcessObservation(_ChangeObservation):
  """Apply a function to the observation, its bounds and its dtype.

  Args:
    env: Environment to wrap.
    process_fn: Function from array to array.
  """

  def __init__(self, env: Any, process_fn: Callable[[np.ndarray], np.ndarray]):
    super().__init__(env)
    self._process_fn = process_fn
    space = env.observation_space
    low, high = process_fn(space.low), process_fn(space.high)
    self.observation_space = spaces.box(low, high, low.dtype)

  def _change(self, observ):
    return self._process_fn(observ)


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


class PixelObservations(_ChangeObservation):
  """Add the rendered image to dictionary observations.

  Images of another size are resized bilinearly with anti-aliasing. Float
  images are multiplied by 255 and truncated to bytes; bytes are divided by 255
  to become floats.

  Args:
    env: Environment with a Dict space and `render('rgb_array')`.
    size: Height and width of the image in pixels.
    dtype: `np.uint8` for [0, 255] or `np.float32` for [0, 1].
    key: Key of the image in the observation.
    channels: Number of channels that the environment renders.

  Raises:
    AssertionError: If the space is not a Dict or already has the key.
    NotImplementedError: If the rendered dtype cannot be converted.
    EnvError: If float images to convert to bytes are not within [0, 1].
  """

  def __init__(
    self,
    env: Any,
    size: tuple[int, int] = (64, 64),
    dtype: Any = np.uint8,
    key: str = 'image',
    channels: int = 3,
  ):
    super().__init__(env)
    assert hasattr(env.observation_space, 'spaces'), env.observation_space
    parts = dict(env.observation_space.spaces)
    assert key not in parts, (key, 'already present')
    self._size = tuple(size)
    self._dtype = np.dtype(dtype)
    self._key = key
    shape = (*self._size, channels)
    high = {np.dtype(np.uint8): 255, np.dtype(np.float32): 1.0}[self._dtype]
    image = spaces.box(np.zeros(shape), np.full(shape, high), self._dtype)
    self.observation_space = spaces.dictionary({**parts, key: image})

  def _change(self, observ):
    # A copy, as environments may draw over it.
    image = np.array(self._env.render('rgb_array'))
    if image.shape[:2] != self._size:
      image = _resize(image, self._size)
    return {**observ, self._key: _convert(image, self._dtype)}


class ObservationToRender(_ChangeObservation):
  """Remove an entry from the observation and return it from `render`.

  Args:
    env: Environment with a Dict space.
    key: Key of the image in the observation.
  """

  def __init__(self, env: Any, key: str = 'image'):
    super().__init__(env)
    self._key = key
    self._image = None
    self.observation_space = spaces.dictionary({})

  def render(self, *unused_args: Any, **unused_kwargs: Any) -> Any:
    return self._image

  def _change(self, observ):
    self._image = observ[self._key]
    return {key: value for key, value in observ.items() if key != self._key}


class OverwriteRender(Wrapper):
  """Replace `render` with a function.

  Args:
    env: Environment to wrap; it is rendered once at construction.
    render_fn: Function of the environment and the arguments of `render`.
  """

  def __init__(self, env: Any, render_fn: Callable[..., Any]):
    super().__init__(env)
    self._render_fn = render_fn
    self.render()

  def render(self, *args: Any, **kwargs: Any) -> Any:
    return self._render_fn(self._env, *args, **kwargs)


def _resize(image, size):
  # Slow to import, and most environments render at the right size.
  from skimage import transform

  resized = transform.resize(
    image, size, mode='edge', order=1, preserve_range=True
  )
  return resized.astype(image.dtype)


def _convert(image, dtype):
  if image.dtype == dtype:
    return image
  if image.dtype in (np.float32, np.float64) and dtype == np.uint8:
    scaled = image * 255
    if not (scaled.min() > -1 and scaled.max() < 256):
      raise errors.EnvError(
        f'Rendered float images have values from {image.min():g} to '
        f'{image.max():g}; render values from 0 to 1, or uint8 images.'
      )
    return scaled.astype(dtype)
  if image.dtype == np.uint8 and dtype == np.float32:
    return image.astype(dtype) / 255
  raise NotImplementedError(
    f'Cannot convert rendered images from {image.dtype} to {dtype}; render '
    'uint8 or float images.'
  )


class RangeNormalize(_ChangeObservation):
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


class ConvertTo32Bit(_ChangeObservation):
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


class CacheSpaces(Wrapper):
  """Read both spaces once and then always return the same objects."""

  def __init__(self, env: Any):
    super().__init__(env)
    self.observation_space = env.observation_space
    self.action_space = env.action_space


# Modules of environments that draw from generators of their own only.
_OWN_GENERATORS = (
  'gymnasium.',
  'gymnasium_robotics.',
  'pybullet_envs.gym_',
)


def with_own_randomness(env: Any) -> Any:
  """Return an environment that depends on nothing else once it is seeded.

  Args:
    env: Environment without wrappers; it is wrapped if necessary.
  """
  kind = type(getattr(env, 'unwrapped', env))
  if kind.__module__.startswith(_OWN_GENERATORS):
    return env
  return OwnRandomness(env)


# Threads take turns: what they exchange belongs to the process.
_EXCHANGE = threading.RLock()


class OwnRandomness(Wrapper):
  """Give a seeded environment its own global random number generators.

  Some environments draw from `random` and `np.random` regardless of their seed,
  so they depend on everything else in the process. After `seed`, the state of
  these generators is swapped during each call; before that nothing changes. In
  several threads, such environments work one after the other.

  It costs about 20 microseconds per call, mostly for the state of `random`.
  NumPy's generator is swapped rather than its state, which is cheap, but drops
  the second of a pair of normal numbers that it may hold.

  Args:
    env: Environment to wrap; it does not need a method `seed`.
  """

  def __init__(self, env: Any):
    super().__init__(env)
    self._python: Any = None
    self._numpy: Any = None

  def seed(self, seed: int) -> None:
    """Seed the environment, if it supports that, and both generators."""
    if hasattr(self._env, 'seed'):
      self._env.seed(seed)
    self._python = random.Random(seed).getstate()
    self._numpy = np.random.MT19937(seed % 2**32)

  def step(self, action: Any, *args: Any, **kwargs: Any) -> tuple:
    with self.exchanged():
      return self._env.step(action, *args, **kwargs)

  def reset(self, *args: Any, **kwargs: Any) -> Any:
    with self.exchanged():
      return self._env.reset(*args, **kwargs)

  @contextlib.contextmanager
  def exchanged(self) -> Iterator[None]:
    """Use the generators of this environment as those of the process."""
    if self._python is None:
      yield
      return
    # Its stubs do not name these functions.
    legacy: Any = np.random
    with _EXCHANGE:
      others = random.getstate(), legacy.get_bit_generator()
      random.setstate(self._python)
      legacy.set_bit_generator(self._numpy)
      try:
        yield
      finally:
        self._python = random.getstate()
        random.setstate(others[0])
        legacy.set_bit_generator(others[1])


class Guard(Wrapper):
  """Raise `EnvError` for mistakes of an environment.

  Mistakes are exceptions, box observations whose shape differs from the space,
  and rendered values that are not images. Arrays of one number, which some
  environments return as rewards, become numbers.

  Args:
    env: Environment.
    name: Name that the user gave.
  """

  def __init__(self, env: Any, name: Any):
    super().__init__(env)
    self._name = name
    self._steps = 0
    self._shape = getattr(env.observation_space, 'shape', None)

  def reset(self, *args: Any, **kwargs: Any) -> Any:
    self._steps = 0
    with guard.explained(self._name, 'in reset'):
      observ = self._env.reset(*args, **kwargs)
    self._check_shape(observ, 'in reset')
    return observ

  def step(self, action: Any, *args: Any, **kwargs: Any) -> tuple:
    self._steps += 1
    # Faster than `explained`: steps are many.
    try:
      transition = self._env.step(action, *args, **kwargs)
    except Exception as error:  # Whatever the user's code may raise.
      when = f'in step {self._steps}'
      raise guard.translate(error, self._name, when) from None
    observ, reward, *rest = transition
    if getattr(observ, 'shape', None) != self._shape:
      self._check_shape(observ, f'in step {self._steps}')
    if isinstance(reward, (np.ndarray, list)):
      reward = np.squeeze(reward)[()]
    return observ, reward, *rest

  def render(self, mode: str = 'rgb_array') -> Any:
    """Return the rendered result, which must be an image."""
    with guard.explained(self._name, 'in render'):
      image = self._env.render(mode)
    if mode == 'rgb_array':
      guard.check_image(image, self._name)
    return image

  def _check_shape(self, observ, when):
    if self._shape is not None and np.shape(observ) != self._shape:
      raise errors.EnvError(
        f'Environment {self._name} returned an observation of shape '
        f'{np.shape(observ)} {when}, but its observation_space has shape '
        f'{self._shape}; make them match.'
      )


# Stored configurations may name these; they neither start processes nor write
# files.
for _kind in list(globals().values()):
  if isinstance(_kind, type) and issubclass(_kind, Wrapper):
    references.nameable(_kind)
