"""Observations in the form in which PPO's networks get them.

Boxes stay as they are, except for images that convolutions see: those become
bytes. Other observations become a vector, or, if they have images, a row of
bytes that holds the images and a vector.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from agents.envs import guard, images, spaces
from agents.envs.wrappers import ChangeObservation
from agents.run import errors, references


class Packing(NamedTuple):
  """What a row of bytes consists of.

  Attributes:
    images: Shapes of the images, of a byte per number, which come first.
    size: Length of the vector of float32 behind them.
  """

  images: tuple[tuple[int, ...], ...]
  size: int


def find_images(space: Any) -> list[tuple[images.Path, Any]]:
  """Return paths and spaces of the images that convolutions can see."""
  return [x for x in images.parts(space) if spaces.suits_convolutions(x[1])]


def explain(space: Any) -> str | None:
  """Return which part of observations no network can get; None if all can."""
  found = list(images.parts(space))
  for path, part in found:
    if type(part).__name__ not in images.FLAT:
      name = images.name_of(path)
      return f'{name} is {part}' if name else str(part)
  if not found:
    return 'it has no parts'
  return None if images.has_numbers(found) else f'{space} is empty'


class Layout:
  """How the observations of a space become the input of a network.

  Args:
    space: Observation space for which `explain` finds nothing.
    convolutions: Whether the network has convolutions, which see the images.
      Otherwise, images are parts of the vector.

  Attributes:
    observation_space: Box of the converted observations.
    packing: `Packing` if they are rows of bytes, otherwise None.
    unchanged: Whether they are the observations themselves.

  Raises:
    UsageError: If there are no images for convolutions.
  """

  def __init__(self, space: Any, convolutions: bool):
    self._space = space
    self._images = find_images(space) if convolutions else []
    paths = [path for path, _ in self._images]
    self._vector = [x for x in images.parts(space) if x[0] not in paths]
    self.packing: Packing | None = None
    self.unchanged = False
    if not convolutions:
      self.observation_space = images.join_spaces(self._vector)
      self.unchanged = self.observation_space is space
      return
    if not self._images:
      raise errors.UsageError(
        f'The observations are {space}, without an image of at least 36 x 36 '
        'pixels for convolutions; omit the parameter network.'
      )
    shapes = tuple(_shape(part) for _, part in self._images)
    shape: tuple[int, ...] = shapes[0]
    if self._vector or shapes[1:]:
      size = 0
      if self._vector:
        size = math.prod(images.join_spaces(self._vector).shape)
      self.packing = Packing(shapes, size)
      shape = (sum(map(math.prod, shapes)) + 4 * size,)
    else:
      ((path, part),) = self._images
      is_bytes = np.dtype(part.dtype) == np.uint8
      self.unchanged = not path and shape == part.shape and is_bytes
    self.observation_space = spaces.box(
      np.zeros(shape), np.full(shape, 255), np.uint8
    )
    if self.unchanged:
      self.observation_space = space
    # Batches of environments pass it on to the policy.
    self.observation_space.packing = self.packing

  def convert(self, observation: Any, name: Any = 'environment') -> Any:
    """Return the input for an observation.

    Args:
      observation: Observation of the space.
      name: Name of the environment for messages.

    Raises:
      EnvError: If the observation is not one of the space.
      BadNumber: If a number is infinite or NaN.
    """
    if self.unchanged:
      return observation
    try:
      return self._convert(observation, name)
    except (TypeError, KeyError, IndexError) as error:
      raise errors.EnvError(
        f'Environment {name} returned an observation that is not in its space '
        f'{self._space}: {error!r}.'
      ) from None

  def _convert(self, observation, name):
    seen = [
      _to_bytes(images.pick(observation, path), part, name)
      for path, part in self._images
    ]
    if seen and not self.packing:
      return seen[0]
    vector = np.zeros(0, np.float32)
    if self._vector:
      vector = images.join(observation, self._vector)
    if not seen:
      return vector
    guard.check_finite(vector, 'observation', name)
    return np.concatenate([*(x.ravel() for x in seen), vector.view(np.uint8)])


def find_packing(env: Any) -> Packing | None:
  """Return the packing of the observations of a batch of environments."""
  space = getattr(env, 'observation_space', None)
  return getattr(space, 'packing', None)


@references.nameable
class NetworkInput(ChangeObservation):
  """Convert observations with a `Layout`.

  Args:
    env: Environment.
    convolutions: See `Layout`.
  """

  def __init__(self, env: Any, convolutions: bool):
    super().__init__(env)
    self._layout = Layout(env.observation_space, convolutions)
    self._name = guard.find_name(env)
    self.observation_space = self._layout.observation_space

  def _change(self, observ):
    return self._layout.convert(observ, self._name)


def _shape(space):
  """Shape of an image; gray ones without channels get one."""
  return (*space.shape, 1) if len(space.shape) == 2 else space.shape


def _to_bytes(value, space, name):
  """Image in bytes; other numbers are scaled from the bounds of the space."""
  image = np.asarray(value).reshape(_shape(space))
  if image.dtype.kind == 'f':
    guard.check_finite(image, 'observation', name)
  return images.to_bytes(image, space)
