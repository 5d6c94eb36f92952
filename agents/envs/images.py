"""Images of environments: find them in observations, convert rendered ones.

Used by the wrappers of PlaNet and by the contract of environments, so that both
accept the same.
"""

import numbers
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete, MultiDiscrete, OneOf, utils

from agents.envs import guard, spaces
from agents.run import errors

# What is smaller holds symbols, such as the cells of MiniGrid, not a picture.
_SMALLEST = 16
# Of several images in a dictionary, the one that is called so.
_NAMES = ('image', 'rgb', 'pixels')
# Channels of pictures: gray, colors, and colors with opacity.
_CHANNELS = (1, 3, 4)

# Spaces that become a part of a vector.
FLAT = ('Box', 'Discrete', 'MultiBinary', 'MultiDiscrete')

Path = tuple[Any, ...]


class BadImage(errors.EnvError, NotImplementedError):
  """An environment rendered something that is not an image."""


def is_image(space: Any) -> bool:
  """Return whether a space holds pictures, as bytes or as bounded floats.

  Their shape is [height, width], [height, width, channels] or [channels,
  height, width], with 1, 3 or 4 channels, in the latter case 1 or 3.
  """
  if not hasattr(space, 'low') or len(space.shape) not in (2, 3):
    return False
  bounded = np.isfinite(space.low).all() and np.isfinite(space.high).all()
  dtype = np.dtype(space.dtype)
  if dtype != np.uint8 and not (dtype.kind == 'f' and bounded):
    return False
  if len(space.shape) == 2:
    # Matrices of floats are rarely pictures.
    return dtype == np.uint8 and min(space.shape) >= _SMALLEST
  first, last = space.shape[0], space.shape[-1]
  sides = space.shape[:2] if last in _CHANNELS else space.shape[1:]
  return min(sides) >= _SMALLEST and (last in _CHANNELS or first in (1, 3))


def find(space: Any) -> Path | None:
  """Return the keys that lead to the picture in observations.

  Args:
    space: Observation space.

  Returns:
    Tuple of keys, empty if the observation is the picture; None if there is no
    picture, or several of which none is called `image`, `rgb` or `pixels`.
  """
  paths = [path for path, part in parts(space) if is_image(part)]
  if len(paths) > 1:
    named = [x for name in _NAMES for x in paths if x[-1] == name]
    paths = named[:1]
  return paths[0] if paths else None


def pick(value: Any, path: Path) -> Any:
  """Return the part of an observation, or of its space, at a path."""
  for key in path:
    value = value[key]
  return value


def name_of(path: Path) -> str:
  """Return the name of the part at a path, empty for the whole."""
  return '/'.join(f'part {x}' if isinstance(x, int) else str(x) for x in path)


def parts(space: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
  """Yield path and space of all parts of dictionaries and tuples.

  Texts in them are left out, as no network here reads them.
  """
  below = getattr(space, 'spaces', None)
  # OneOf has spaces to choose from, not parts.
  if below is None or isinstance(space, OneOf):
    if not path or not spaces.is_text(space):
      yield path, space
    return
  pairs = below.items() if isinstance(below, Mapping) else enumerate(below)
  for key, part in pairs:
    yield from parts(part, (*path, key))


def list_parts(space: Any) -> list[tuple[Path, Any]]:
  """Return paths and spaces of what a vector of an observation consists of.

  These are all parts of dictionaries and tuples that are not images, or the
  observation itself. The list is empty if one of them does not become a vector,
  or if there is no number in all of them.
  """
  found = [(x, y) for x, y in parts(space) if not x or not is_image(y)]
  kinds = {type(part).__name__ for _, part in found}
  return found if kinds <= set(FLAT) and has_numbers(found) else []


def has_numbers(listed: list[tuple[Path, Any]]) -> bool:
  """Return whether any of the spaces, given with paths, is not empty."""
  return any(0 not in (part.shape or ()) for _, part in listed)


def join_spaces(listed: list[tuple[Path, Any]]) -> Any:
  """Return the space of the result of `join`.

  Args:
    listed: Result of `list_parts`, not empty.
  """
  (path, first), *_ = listed
  if not path and hasattr(first, 'low'):
    return first
  flat: list[Any] = [utils.flatten_space(spaces.convert(x)) for _, x in listed]
  return spaces.box(
    np.concatenate([x.low for x in flat]),
    np.concatenate([x.high for x in flat]),
  )


def join(observation: Any, listed: list[tuple[Path, Any]]) -> np.ndarray:
  """Return the state in an observation.

  Args:
    observation: Observation.
    listed: Result of `list_parts`, not empty.

  Returns:
    A copy of the observation if it is a box; otherwise, float32 [size] of all
    parts, flattened as in gymnasium, numbers of `Discrete` as one-hot vectors.
  """
  (path, first), *_ = listed
  if not path and hasattr(first, 'low'):
    return np.array(observation)
  flat: list[Any] = []
  for path, part in listed:
    value, part = pick(observation, path), spaces.convert(part)
    if isinstance(part, Discrete | MultiDiscrete):
      # Whole numbers may come as floats.
      value = np.asarray(value).astype(part.dtype)
    flat.append(utils.flatten(part, value))
  with np.errstate(over='ignore'):  # `ConvertTo32Bit` raises
    return np.concatenate(flat).astype(np.float32)


def put_channels_last(image: np.ndarray) -> np.ndarray:
  """Return a picture, see `is_image`, as [height, width, channels]."""
  if image.ndim == 2:
    return image[..., None]
  is_last = image.shape[-1] in _CHANNELS
  return image if is_last else np.moveaxis(image, 0, -1)


def from_observation(value: Any, space: Any) -> np.ndarray:
  """Return the picture in an observation, uint8 [height, width, channels].

  Args:
    value: Part of an observation.
    space: Its space, for which `is_image` is true. Floats are scaled from its
      bounds.

  Raises:
    BadImage: See `to_bytes`.
  """
  return to_bytes(put_channels_last(np.asarray(value)), space)


def to_bytes(image: np.ndarray, space: Any) -> np.ndarray:
  """Return an observed image as uint8, see `from_observation`.

  Raises:
    BadImage: If it has other numbers than its space declares.
  """
  is_bytes = np.dtype(space.dtype) == np.uint8
  if is_bytes and image.dtype.kind != 'f':
    return with_known_dtype(image).astype(np.uint8)
  low, high = float(space.low.min()), float(space.high.max())
  if is_bytes:
    low, high = 0.0, 255.0
  # Rounding may lead this far out of the bounds.
  margin = (high - low) / 255
  fits = low - margin <= image.min() <= image.max() <= high + margin
  # Fractions of at most 1 would be black bytes.
  if is_bytes and image.max() <= 1 and np.any(image != np.rint(image)):
    fits = False
  if not fits:
    raise BadImage(
      f'An observed image of {image.dtype} has values from {image.min():g} to '
      f'{image.max():g}, but its space declares {low:g} to {high:g}; make them '
      'match.'
    )
  image = (image.astype(np.float64) - low) * (255 / max(high - low, 1e-12))
  return np.rint(np.clip(image, 0, 255)).astype(np.uint8)


def find_channels(env: Any) -> int:
  """Return the number of channels of the images that an environment renders."""
  channels = guard.find_declared(env, 'image_channels', numbers.Integral, 3)
  return int(channels) if channels > 0 else 3


def fit_channels(image: Any, channels: int, name: Any) -> np.ndarray:
  """Return a rendered image with the right number of channels.

  Gray becomes three equal channels; opacity is dropped.

  Args:
    image: Array [height, width] or [height, width, channels].
    channels: Number of channels.
    name: Name that the user gave to the environment.

  Raises:
    EnvError: If the image has another number of channels.
  """
  image = np.asarray(image)
  shape = image.shape
  if image.ndim == 2:
    image = image[..., None]
  if channels == 3 and image.shape[-1] in _CHANNELS:
    gray = image.shape[-1] == 1
    return image.repeat(3, -1) if gray else image[..., :3]
  if image.ndim != 3 or image.shape[-1] != channels:
    known = ', gray or with opacity' if channels == 3 else ''
    raise errors.EnvError(
      f'render of environment {name} returns shape {shape}; it must return '
      f'images of {channels} channels{known}.'
    )
  return image


def fit(
  image: np.ndarray, size: tuple[int, int], channels: int, dtype: Any, name: Any
) -> np.ndarray:
  """Return an image as an agent sees it, in training and afterwards.

  Images of another size are resized bilinearly with anti-aliasing.

  Args:
    image: Array [height, width] or [height, width, channels].
    size: Height and width of the result.
    channels: See `fit_channels`.
    dtype: See `convert`.
    name: Name that the user gave to the environment.

  Raises:
    EnvError: See `fit_channels` and `convert`.
  """
  image = fit_channels(image, channels, name)
  if image.shape[:2] != tuple(size):
    # Slow to import, and most environments render at the right size.
    from skimage import transform

    resized = transform.resize(
      image, size, mode='edge', order=1, preserve_range=True
    )
    image = resized.astype(image.dtype)
  return convert(image, dtype)


def for_people(image: Any, name: Any) -> np.ndarray:
  """Return a rendered image as videos and windows take it.

  Args:
    image: Array [height, width] or [height, width, channels].
    name: Name that the user gave to the environment.

  Returns:
    uint8 array [height, width, 3].

  Raises:
    EnvError: If there is no such image, see `fit_channels` and `convert`.
  """
  image = with_known_dtype(guard.check_image(image, name))
  return convert(fit_channels(image, 3, name), np.uint8)


def with_known_dtype(image: Any) -> np.ndarray:
  """Return an image, or several, with a dtype that `convert` accepts.

  Environments have to render such images; cameras and libraries of users may
  return bytes as other integers.

  Args:
    image: Array of numbers.

  Raises:
    BadImage: If integers are not bytes, or it has no numbers.
  """
  image = np.asarray(image)
  if image.dtype.kind == 'f':
    return image.astype(np.float32) if image.itemsize < 4 else image
  if image.dtype == np.uint8:
    return image
  if image.dtype.kind not in 'iu':
    return convert(image, np.uint8)
  if image.size and not 0 <= image.min() <= image.max() <= 255:
    raise BadImage(
      f'An image of integers has values from {image.min()} to {image.max()}; '
      'give values from 0 to 255.'
    )
  return image.astype(np.uint8)


def convert(image: np.ndarray, dtype: Any) -> np.ndarray:
  """Return an image as bytes, or as floats in [0, 1].

  Floats are multiplied by 255 and truncated to bytes, as in the original; bytes
  are divided by 255 to become floats.

  Args:
    image: Rendered image.
    dtype: `np.uint8`, `np.float32` or `np.float64`.

  Raises:
    BadImage: If the image has another dtype, or floats that are not within [0,
      1].
  """
  if image.dtype == dtype:
    return image
  if image.dtype in (np.float32, np.float64) and dtype == np.uint8:
    scaled = image * 255
    if not (scaled.min() > -1 and scaled.max() < 256):
      raise BadImage(
        f'An image of floats has values from {image.min():g} to '
        f'{image.max():g}; return values from 0 to 1, or uint8 images.'
      )
    return scaled.astype(dtype)
  if image.dtype == np.uint8 and dtype in (np.float32, np.float64):
    return image.astype(dtype) / 255
  raise BadImage(
    f'Cannot convert images from {image.dtype} to {np.dtype(dtype)}; return '
    'uint8 or float images.'
  )
