"""What an environment declares, and its observations as a model reads them.

Trained agents act on the observations and actions of the environment itself.
Does not import TensorFlow.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from agents.envs import batches, guard, images, spaces, wrappers
from agents.run import errors


class Interface(NamedTuple):
  """Spaces of an environment, without the wrappers of a task.

  Attributes:
    observation_space: Space of its observations; None if it is unknown.
    action_space: Space of its actions.
    picture: Keys that lead to the image in its observations; None if it is
      rendered, or there is none.
    scaled: Whether actions in [-1, 1] are scaled to the bounds of its actions.
  """

  observation_space: Any
  action_space: Any
  picture: images.Path | None = None
  scaled: bool = False

  def to_plain(self) -> dict[str, Any]:
    """Return plain data for `from_plain`."""
    try:
      observed = spaces.to_plain(self.observation_space)
    except NotImplementedError:
      # Spaces without plain data cannot be observed, only rendered images.
      observed = None
    return {
      'observation_space': observed,
      'action_space': spaces.to_plain(self.action_space),
      'picture': self.picture and list(self.picture),
      'scaled': self.scaled,
    }

  @classmethod
  def from_plain(cls, plain: Mapping[str, Any]) -> 'Interface':
    """Restore the result of `to_plain`."""
    observed, picture = plain['observation_space'], plain['picture']
    return cls(
      observed and spaces.from_plain(observed),
      spaces.from_plain(plain['action_space']),
      None if picture is None else tuple(picture),
      plain['scaled'],
    )

  @property
  def choice(self) -> spaces.Choice | None:
    """How vectors choose discrete actions; None if actions are vectors."""
    space = self.action_space
    return spaces.Choice(space) if spaces.is_discrete(space) else None

  @property
  def unit(self) -> spaces.UnitBox:
    """Scaling of vectors in [-1, 1], which has no effect unless `scaled`."""
    choice = self.choice
    return spaces.UnitBox(choice.space if choice else self.action_space)

  def to_actions(self) -> Callable[[np.ndarray], Any]:
    """Return the function from vectors in [-1, 1] to legal actions.

    It computes what the wrappers of the training compute, for one action or a
    batch of them. Vectors of several tasks may be longer than actions.
    """
    choice, unit, scaled = self.choice, self.unit, self.scaled
    (size,), fit = unit.space.shape, spaces.fitting(self.action_space)

    def convert(action):
      action = action[..., :size]
      action = unit.to_box(action) if scaled else action
      return fit(choice.choose(action) if choice else action)

    return convert

  def from_action(self, action: Any) -> np.ndarray:
    """Return a vector in [-1, 1] for which `to_actions` returns an action."""
    if self.choice:
      start, count = self.action_space.start, int(self.action_space.n)
      return 2 * np.eye(count, dtype=np.float32)[int(action - start)] - 1
    return self.unit.from_box(action) if self.scaled else action


class RescaleActions(wrappers.Wrapper):
  """Take the actions of another environment.

  Args:
    env: Environment that takes vectors in [-1, 1].
    interface: What the other environment declares.
  """

  def __init__(self, env: Any, interface: Interface):
    super().__init__(env)
    self._interface = interface
    self.action_space = interface.action_space

  def step(self, action: Any) -> tuple:
    return self._env.step(self._interface.from_action(action))


def find(env: Any) -> Interface:
  """Return the interface of an environment with the wrappers of a task."""
  own = getattr(env, 'interface', None)
  # Tasks of the control suite have none; their actions are not scaled.
  return own or Interface(env.observation_space, env.action_space)


class Reader:
  """Turns observations of an environment into inputs of a model.

  Images of any size are resized as in the training, see `images.fit`. Bytes may
  have any dtype of integers. Floats are within the bounds of the image in the
  observation space, otherwise from 0 to 1.

  Args:
    interface: What the environment declares.
    keys: Names of the recorded data that form the input, in this order.
    shapes: Dict from the names of recorded data to the shape of one step.
  """

  def __init__(
    self,
    interface: Interface,
    keys: Sequence[str],
    shapes: Mapping[str, Sequence[int]],
  ):
    self._space, self._picture = interface.observation_space, interface.picture
    self._keys, self._shapes = list(keys), shapes
    self._parts = []
    if self._space is not None and self._picture != ():
      self._parts = images.list_parts(self._space)
    self._image_space = None
    if self._picture is not None and self._space is not None:
      self._image_space = images.pick(self._space, self._picture)
    self._size = sum(math.prod(shapes[x]) for x in self._keys)

  def read(self, observation: Any) -> np.ndarray:
    """Return the input for an observation, or for a batch of them.

    Args:
      observation: What the environment returns; or a dictionary of what the
        model was trained on, such as `image` and `state`; for models that see
        only images, possibly the image alone; or the input itself.

    Raises:
      UsageError: If an image is not what it may be, or something is missing.
      ValueError: If a part has another shape, or no choice of its space.
    """
    if not isinstance(observation, (Mapping, tuple)):
      observation = guard.to_array(observation)
      if self._keys == ['image']:
        observation = {'image': observation}
      elif self._is_input(observation):
        return observation
    count = self._count(observation)
    if count is None:
      return self._join(observation)
    rows = [batches.take_row(observation, self._space, i) for i in range(count)]
    return np.stack([self._join(x) for x in rows])

  def _is_input(self, array):
    """Return whether an array is not an observation of the environment."""
    own = getattr(self._space, 'shape', None) if self._parts else None
    if own is None:
      return True
    # A one-hot vector has the shape of several integers.
    vectors = array.ndim in (1, 2) and array.shape[-1] == self._size
    is_vector = vectors and array.dtype.kind == 'f'
    return array.shape != own and (is_vector or array.shape[1:] != own)

  def _count(self, observation):
    """Return the number of observations, None for a single one."""
    if 'image' in self._keys:
      image, space = self._find_image(observation)
      shape = np.shape(image)
      is_gray = space is not None and len(space.shape) == 2
      several = len(shape) == 4 or is_gray and len(shape) == 3 and shape[-1] > 4
      return shape[0] if several else None
    if self._keys[0] == 'state' and self._parts:
      if self._find_state(observation) is not None:
        return None
      several = self._find_state(observation, several=True)
      if several is not None:
        return len(images.pick(several, self._parts[0][0]))
    value = self._get(observation, self._keys[0])
    known = tuple(self._shapes[self._keys[0]])
    return np.shape(value)[0] if np.ndim(value) == len(known) + 1 else None

  def _join(self, observation):
    """Return the input for a single observation."""
    if self._keys == ['image']:
      return self._read_image(*self._find_image(observation))
    parts = []
    for key in self._keys:
      own = self._find_state(observation) if key == 'state' else None
      if key == 'image':
        value = self._read_image(*self._find_image(observation))
      elif own is not None:
        for path, part in self._parts:
          called = images.name_of(path) or 'observation'
          batches.check_shape(images.pick(own, path), part, called)
        value = images.join(own, self._parts)
      else:
        value = self._get(observation, key)
      value = np.ravel(value).astype(np.float32)
      if value.size != math.prod(self._shapes[key]):
        raise errors.UsageError(
          f'The {key} of the observation has {value.size} numbers, but the '
          f'agent was trained with shape {tuple(self._shapes[key])}; give as '
          'many.'
        )
      parts.append(value)
    return np.concatenate(parts)

  def _find_state(self, observation, several=False):
    """Return what the environment declares as its state, None if it is not."""
    if not self._parts:
      return None
    path, part = self._parts[0]
    if not path and isinstance(observation, Mapping):
      observation = observation.get('state')
    if not all(_has(observation, x) for x, _ in self._parts):
      return None
    shape = np.shape(images.pick(observation, path))
    count = len(part.shape) + several
    fits = len(shape) == count and shape[several:] == part.shape
    return observation if fits else None

  def _find_image(self, observation):
    """Return the image in an observation, and its space if it is declared."""
    if self._picture and _has(observation, self._picture):
      return images.pick(observation, self._picture), self._image_space
    # With an empty path, the image is all that the environment observes.
    space = self._image_space if self._picture == () else None
    return self._get(observation, 'image'), space

  def _get(self, observation, key):
    if isinstance(observation, Mapping) and key in observation:
      return observation[key]
    raise errors.UsageError(
      f'The observation has no {key!r}; give a dictionary of '
      f'{", ".join(self._keys)}, or what the environment of the training '
      'returns.'
    )

  def _read_image(self, image, space):
    height, width, channels = self._shapes['image']
    wrong = errors.UsageError(
      f'The observation has shape {np.shape(image)}, but the agent was trained '
      f'with shape {(height, width, channels)}; give an image of any height '
      f'and width with {channels} channels.'
    )
    if np.ndim(image) not in (2, 3) or not np.size(image):
      raise wrong
    try:
      image = images.with_known_dtype(image)
      if space is not None:
        image = _read_declared(image, space)
      return images.fit(
        image, (height, width), channels, np.uint8, 'observation'
      )
    except images.BadImage as error:
      raise errors.UsageError(str(error)) from None
    except errors.EnvError:
      raise wrong from None


def _read_declared(image, space):
  """Return an image of an observation with channels last, bytes or in [0, 1].

  Args:
    image: Image with the layout of the space.
    space: Space of the environment's images.
  """
  if image.dtype.kind != 'f' or np.dtype(space.dtype).kind != 'f':
    return images.put_channels_last(image)
  return images.from_observation(image, space)


def _has(observation, path):
  """Return whether a path leads to something in an observation."""
  for key in path:
    if isinstance(observation, tuple):
      known = key in range(len(observation))
    else:
      known = isinstance(observation, Mapping) and key in observation
    if not known:
      return False
    observation = observation[key]
  return True
