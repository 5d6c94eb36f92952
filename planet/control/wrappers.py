"""Wrappers of environments of PlaNet.

They do not import TensorFlow; see `agents.envs.wrappers` for what all wrappers
have in common.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from agents.envs import guard, images, spaces
from agents.envs.adapters import DeepMindWrapper as DeepMindWrapper
from agents.envs.external import Async as Async
from agents.envs.external import ExternalProcess as ExternalProcess
from agents.envs.wrappers import ChangeObservation, Wrapper
from agents.run import references, schema
from agents.tools.wrappers import STEPS_OF_ACTION, Counted, LimitDuration
from agents.tools.wrappers import ActionRepeat as ActionRepeat
from agents.tools.wrappers import ConvertTo32Bit as ConvertTo32Bit
from planet.envs.collect_dataset import CollectGymDataset as CollectGymDataset

MaximumDuration = LimitDuration


@references.nameable
class NormalizeActions(Wrapper):
  """Map actions from [-1, 1] to the range of the environment.

  See `agents.envs.spaces.UnitBox`, which loaded agents use, too.
  """

  def __init__(self, env: Any):
    super().__init__(env)
    self._unit = spaces.UnitBox(env.action_space)
    self.action_space = self._unit.space

  def step(self, action: Any) -> tuple:
    return self._env.step(self._unit.to_box(action))


@references.nameable
class PadActions(Wrapper):
  """Give environments with different action sizes a common action space.

  Args:
    env: Environment to wrap.
    spaces: The one-dimensional action spaces of all environments. The
      common space has the length of the longest one, and the smallest lower
      and largest upper bound of each dimension.
  """

  def __init__(self, env: Any, spaces: Sequence[Any]):
    super().__init__(env)
    assert all(len(x.shape) == 1 for x in spaces), spaces
    self.action_space = self._combine(spaces)

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


@references.nameable
class MinimumDuration(Counted):
  """Ignore the end of episodes with fewer than `duration` steps.

  Keeps stepping the environment past its own end; see `HoldEnd`.
  """

  _allowed = schema.Count

  def step(self, action: Any) -> tuple:
    observ, reward, done, info = super().step(action)
    return observ, reward, done and self._step >= self._duration, info


@references.nameable
class HoldEnd(Wrapper):
  """Repeat the last observation, with reward 0, after the end of an episode.

  The environment, which may not support that, is not stepped, as the info says.
  A failed step stays in the info.
  """

  def __init__(self, env: Any):
    super().__init__(env)
    self._last: Any = None

  def step(self, action: Any) -> tuple:
    if self._last is not None:
      return self._last
    observ, reward, done, info = self._env.step(action)
    if done:
      kept = {x: y for x, y in info.items() if x in ('step_error', 'truncated')}
      kept[STEPS_OF_ACTION] = 0
      self._last = observ, np.float32(0), done, kept
    return observ, reward, done, info

  def reset(self) -> Any:
    self._last = None
    return self._env.reset()


@references.nameable
class ObservationDict(ChangeObservation):
  """Put the observation into a dictionary; not used by this project.

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


@references.nameable
class SplitObservations(ChangeObservation):
  """Observe the `state`, and render the image in observations, if there is one.

  The state is a box as it is, or a float32 vector of all parts without images,
  see `images.list_parts`; there is none if the observation is the image.

  Args:
    env: Environment to wrap.
    picture: Keys that lead to the image, see `agents.envs.images.find`; None to
      render the environment.
  """

  def __init__(self, env: Any, picture: images.Path | None):
    super().__init__(env)
    space, self._picture = env.observation_space, picture
    self._parts = [] if picture == () else images.list_parts(space)
    found = {'state': images.join_spaces(self._parts)} if self._parts else {}
    self._image_space = None if picture is None else images.pick(space, picture)
    self._image: Any = None
    self.observation_space = spaces.dictionary(found)

  def render(self, mode: str = 'rgb_array') -> Any:
    """Return the image, uint8 [height, width, channels] if it was observed."""
    return self._env.render(mode) if self._picture is None else self._image

  def _change(self, observ):
    if self._picture is not None:
      image = images.pick(observ, self._picture)
      self._image = images.from_observation(image, self._image_space)
    return {'state': images.join(observ, self._parts)} if self._parts else {}


@references.nameable
class ConcatObservation(ChangeObservation):
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


@references.nameable
class SelectObservations(ChangeObservation):
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


@references.nameable
class ProcessObservation(ChangeObservation):
  """Process observation, bounds and dtype; not used by this project.

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


@references.nameable
class PixelObservations(ChangeObservation):
  """Add the rendered image to dictionary observations.

  Images of another size are resized bilinearly with anti-aliasing. Gray ones
  get three equal channels, and opacity is dropped. Float images are multiplied
  by 255 and truncated to bytes; bytes are divided by 255 to become floats.

  Args:
    env: Environment with a Dict space and `render('rgb_array')`.
    size: Height and width of the image in pixels.
    dtype: `np.uint8` for [0, 255], `np.float32` or `np.float64` for [0, 1].
    key: Key of the image in the observation.
    channels: Number of channels that the environment renders.

  Raises:
    AssertionError: If the space is not a Dict or already has the key.
    NotImplementedError: If the rendered dtype cannot be converted.
    EnvError: If float images to convert to bytes are not within [0, 1], or
      images have another number of channels.
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
    self._size = size
    self._dtype = np.dtype(dtype)
    self._key, self._channels = key, channels
    shape = (*size, channels)
    high = {'uint8': 255, 'float32': 1.0, 'float64': 1.0}[self._dtype.name]
    image = spaces.box(np.zeros(shape), np.full(shape, high), self._dtype)
    self.observation_space = spaces.dictionary({**parts, key: image})

  def _change(self, observ):
    # A copy, as environments may draw over it.
    image = np.array(self._env.render('rgb_array'))
    name = guard.find_name(self._env)
    image = images.fit(image, self._size, self._channels, self._dtype, name)
    return {**observ, self._key: image}


@references.nameable
class ObservationToRender(ChangeObservation):
  """Remove an entry from the observation and return it from `render`.

  PlaNet uses `SplitObservations`, which keeps the space of the others.

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


@references.nameable
class OverwriteRender(Wrapper):
  """Replace `render` with a function; not used by this project.

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
