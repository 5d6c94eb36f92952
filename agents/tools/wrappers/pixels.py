"""Wrappers that turn environments into what a camera sees."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from agents.envs import spaces
from agents.tools.wrappers.base import Wrapper


class PixelObservations(Wrapper):
  """Add the rendered image to a dictionary of observations.

  Images of another size are resized bilinearly with anti-aliasing. Float
  images become bytes times 255, truncated; bytes become floats over 255.

  Args:
    env: Environment with a Dict space and `render('rgb_array')`.
    size: Height and width of the image.
    dtype: `np.uint8` for [0, 255] or `np.float32` for [0, 1].
    key: Key of the image among the observations.
    channels: Number of channels that the environment renders.

  Raises:
    AssertionError: If the space is no Dict or has the key already.
    NotImplementedError: If the rendered dtype cannot be converted.
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
    assert key not in env.observation_space.spaces, (key, 'already present')
    self._size = tuple(size)
    self._dtype = np.dtype(dtype)
    self._key = key
    self._channels = channels

  @functools.cached_property
  def observation_space(self) -> Any:
    high = {np.dtype(np.uint8): 255, np.dtype(np.float32): 1.0}[self._dtype]
    shape = self._size + (self._channels,)
    image = spaces.box(np.zeros(shape), np.full(shape, high), self._dtype)
    parts = dict(self._env.observation_space.spaces)
    return spaces.dictionary({**parts, self._key: image})

  def step(self, action: Any) -> tuple:
    observ, reward, done, info = self._env.step(action)
    return {**observ, self._key: self._render_image()}, reward, done, info

  def reset(self) -> Any:
    return {**self._env.reset(), self._key: self._render_image()}

  def _render_image(self):
    image = self._env.render('rgb_array')
    if image.shape[:2] != self._size:
      image = _resize(image, self._size)
    return _convert(image, self._dtype)


class ObservationToRender(Wrapper):
  """Take one observation away and return it from `render`.

  Args:
    env: Environment with a Dict space.
    key: Key of the image among the observations.
  """

  def __init__(self, env: Any, key: str = 'image'):
    super().__init__(env)
    self._key = key
    self._image = None

  @functools.cached_property
  def observation_space(self) -> Any:
    return spaces.dictionary({})

  def step(self, action: Any) -> tuple:
    observ, reward, done, info = self._env.step(action)
    return self._remove(observ), reward, done, info

  def reset(self) -> Any:
    return self._remove(self._env.reset())

  def render(self, *unused_args: Any, **unused_kwargs: Any) -> Any:
    return self._image

  def _remove(self, observ):
    self._image = observ[self._key]
    return {key: value for key, value in observ.items() if key != self._key}


class OverwriteRender(Wrapper):
  """Render by a function instead.

  Args:
    env: Environment to wrap; it is rendered once at construction.
    render_fn: Takes the environment and the arguments of `render`.
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
    return (image * 255).astype(dtype)
  if image.dtype == np.uint8 and dtype == np.float32:
    return image.astype(dtype) / 255
  raise NotImplementedError(
    f'Cannot convert rendered images from {image.dtype} to {dtype}; render '
    'uint8 or float images.'
  )
