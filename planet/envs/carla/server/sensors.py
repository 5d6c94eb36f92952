"""Data of sensors, matched to the ticks that they belong to."""

import functools
import queue
import typing
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from planet.envs.carla import backend as backend_lib
from planet.envs.carla import sensors

if typing.TYPE_CHECKING:
  import carla


class Camera:
  """Images of one camera in the order of the ticks.

  Args:
    sensor: `carla.Sensor` that is not listening yet.
    timeout: Seconds to wait for an image.
    convert: Function from `carla.Image` to uint8 [height, width, channels];
      colours by default.
  """

  def __init__(
    self,
    sensor: 'carla.Sensor',
    timeout: float = 2.0,
    convert: Callable[['carla.Image'], np.ndarray] | None = None,
  ):
    self.actor = sensor
    self._timeout = timeout
    self._convert = convert or to_rgb
    self._queue: queue.Queue[Any] = queue.Queue()
    sensor.listen(_weak(self._queue.put))

  def read(self, frame: int) -> np.ndarray:
    """Read the image of a tick, uint8 [height, width, channels].

    Older images are dropped.

    Raises:
      BackendError: If it does not come in time, or a newer one does.
    """
    while True:
      try:
        data = self._queue.get(timeout=self._timeout)
      except queue.Empty:
        raise backend_lib.BackendError(
          f'The camera sent no image of frame {frame} within '
          f'{self._timeout:g} s.'
        ) from None
      if data.frame == frame:
        return self._convert(data)
      if data.frame > frame:
        raise backend_lib.BackendError(
          f'The camera sent frame {data.frame} instead of {frame}; does '
          'another client tick the server?'
        )


class Collisions:
  """Impulses of the ego vehicle, by the ticks that they happened in.

  Args:
    sensor: `carla.Sensor` that is not listening yet.
  """

  def __init__(self, sensor: 'carla.Sensor'):
    self.actor = sensor
    self._queue: queue.Queue[Any] = queue.Queue()
    self._waiting: list[Any] = []
    sensor.listen(_weak(self._queue.put))

  def clear(self) -> None:
    """Forget what has happened so far."""
    self.read(float('inf'))

  def read(self, frame: float) -> list[tuple[str, float]]:
    """Read kinds and impulses in N s, of all ticks up to one."""
    while True:
      try:
        self._waiting.append(self._queue.get_nowait())
      except queue.Empty:
        break
    ready = [x for x in self._waiting if x.frame <= frame]
    self._waiting = [x for x in self._waiting if x.frame > frame]
    return [to_collision(x) for x in ready]


def to_rgb(data: 'carla.Image') -> np.ndarray:
  """Convert an image, whose bytes are BGRA, to uint8 [height, width, 3]."""
  return _read_rgb(data).copy()


def to_depth(data: 'carla.Image', logarithmic: bool = False) -> np.ndarray:
  """Convert an image of depths to uint8 [height, width, 1].

  It holds shares of 1000 m as numbers of 24 bits, red the lowest byte, see
  https://carla.readthedocs.io/en/0.9.16/ref_sensors/#depth-camera.

  Args:
    data: What a depth camera sends.
    logarithmic: See `sensors.encode_depth`.
  """
  share = _read_rgb(data) @ np.array([1, 2**8, 2**16]) / (2**24 - 1)
  return sensors.encode_depth(sensors.FAR * share, logarithmic)[..., None]


def to_classes(data: 'carla.Image') -> np.ndarray:
  """Convert classes, which are in red, to colours uint8 [height, width, 3]."""
  return sensors.PALETTE[_read_rgb(data)[..., 0]]


def choose_conversion(
  sensor: sensors.Sensor,
) -> Callable[['carla.Image'], np.ndarray]:
  """Return the function that converts what a sensor sends."""
  if sensor.camera == 'depth':
    return functools.partial(to_depth, logarithmic=sensor.logarithmic)
  return {'rgb': to_rgb, 'semantic_segmentation': to_classes}[sensor.camera]


def to_collision(event: 'carla.CollisionEvent') -> tuple[str, float]:
  """Return the kind of the other actor, and the impulse in N s."""
  kinds = {'vehicle.': 'vehicle', 'walker.': 'walker'}
  name = event.other_actor.type_id
  kind = next((v for k, v in kinds.items() if name.startswith(k)), 'other')
  impulse = event.normal_impulse
  return kind, float(np.linalg.norm([impulse.x, impulse.y, impulse.z]))


def _read_rgb(data):
  pixels = np.frombuffer(data.raw_data, np.uint8)
  return pixels.reshape(data.height, data.width, 4)[..., 2::-1]


def _weak(method):
  """Callback that does not keep its queue alive.

  A sensor that is collected while it listens prints warnings or crashes.
  """
  reference = weakref.WeakMethod(method)

  def call(data):
    put = reference()
    if put:
      put(data)

  return call
