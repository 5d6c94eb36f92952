"""Sensor data, matched to ticks."""

import contextlib
import math
import queue
import typing
from typing import Any

import numpy as np

from planet.envs.carla import backend as backend_lib
from planet.envs.carla import sensors

if typing.TYPE_CHECKING:
  import carla


class Camera:
  """Images of one camera in the order of the ticks.

  Args:
    actor: `carla.Sensor` that is not listening yet.
    sensor: Declaration of the sensor.
    timeout: Seconds to wait for an image.
  """

  def __init__(
    self, actor: 'carla.Sensor', sensor: sensors.Sensor, timeout: float
  ):
    self._sensor, self._timeout = sensor, timeout
    self._size = tuple(
      int(actor.attributes[f'image_size_{x}']) for x in ('x', 'y')
    )
    self._queue: queue.Queue[Any] = queue.Queue()
    actor.listen(self._queue.put)

  def has_sent(self) -> bool:
    """Return whether an unread image is available."""
    return not self._queue.empty()

  def read(self, frame: int) -> np.ndarray:
    """Return the image of a tick, uint8 [height, width, channels].

    Skips older images.

    Raises:
      BackendError: If the image is late or has another size, or a newer one
        arrives first.
    """
    while True:
      try:
        data = self._queue.get(timeout=self._timeout)
      except queue.Empty:
        raise backend_lib.BackendError(
          f'The camera sent no image of frame {frame} within '
          f'{self._timeout:g} s; raise image_timeout.'
        ) from None
      if data.frame == frame:
        width, height = self._size
        size, count = (data.width, data.height), len(data.raw_data) // 4
        if size != self._size or count != width * height:
          raise backend_lib.BackendError(
            f'The camera sent an image of {data.width} x {data.height} with '
            f'{count} pixels instead of {width} x {height}; restart the server.'
          )
        return convert(data, self._sensor)
      if data.frame > frame:
        raise backend_lib.BackendError(
          f'The camera sent frame {data.frame} instead of {frame}; does '
          'another client tick the server?'
        )


class Collisions:
  """Collisions of the ego vehicle in the order of ticks.

  Args:
    actor: `carla.Sensor` that is not listening yet.
  """

  def __init__(self, actor: 'carla.Sensor'):
    self._queue: queue.Queue[Any] = queue.Queue()
    actor.listen(self._queue.put)

  def read(self, frame: int, timeout: float) -> list[backend_lib.Collision]:
    """Return the collisions up to a tick that have not been read.

    Args:
      frame: Number of the tick.
      timeout: Seconds to wait for an event of this tick.
    """
    found: list[Any] = []
    with contextlib.suppress(queue.Empty):
      while True:
        late = not found or found[-1].frame < frame
        found.append(self._queue.get(timeout=timeout if late else 0))
    return [_to_collision(x) for x in found]


def convert(data: 'carla.Image', sensor: sensors.Sensor) -> np.ndarray:
  """Convert a BGRA image to uint8 [height, width, channels].

  Depths are 24-bit fractions of 1000 m with red as the lowest byte, see
  https://carla.readthedocs.io/en/0.9.16/ref_sensors/#depth-camera. Classes are
  in the red channel.
  """
  pixels = np.frombuffer(data.raw_data, np.uint8)
  rgb = pixels.reshape(data.height, data.width, 4)[..., 2::-1]
  if sensor.camera == 'depth':
    share = rgb @ np.array([1, 2**8, 2**16]) / (2**24 - 1)
    meters = sensors.FAR * share[..., None]
    return sensors.encode_depth(meters, sensor.logarithmic)
  if sensor.camera == 'semantic_segmentation':
    return sensors.PALETTE[rgb[..., 0]]
  return rgb.copy()


def _to_collision(event):
  kind = event.other_actor.type_id.partition('.')[0]
  impulse = event.normal_impulse
  strength = math.hypot(impulse.x, impulse.y, impulse.z)
  if not math.isfinite(strength):
    raise backend_lib.BackendError(
      f'The collision sensor sent an impulse of {strength} N s; restart the '
      'server.'
    )
  return backend_lib.Collision(
    kind if kind in ('vehicle', 'walker') else 'other',
    strength,
    event.other_actor.id,
  )
