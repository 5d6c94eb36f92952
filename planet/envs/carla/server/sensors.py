"""Data of sensors, matched to the ticks that they belong to."""

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
    sensor: What its images show.
    timeout: Seconds to wait for an image.
  """

  def __init__(
    self, actor: 'carla.Sensor', sensor: sensors.Sensor, timeout: float
  ):
    self._sensor, self._timeout = sensor, timeout
    self._queue: queue.Queue[Any] = queue.Queue()
    actor.listen(self._queue.put)

  def has_sent(self) -> bool:
    """Tell whether there is an image that has not been read."""
    return not self._queue.empty()

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
          f'{self._timeout:g} s; give carla_image_timeout.'
        ) from None
      if data.frame == frame:
        return convert(data, self._sensor)
      if data.frame > frame:
        raise backend_lib.BackendError(
          f'The camera sent frame {data.frame} instead of {frame}; does '
          'another client tick the server?'
        )


class Collisions:
  """Impulses of the ego vehicle, by the ticks that they happened in.

  Args:
    actor: `carla.Sensor` that is not listening yet.
  """

  def __init__(self, actor: 'carla.Sensor'):
    self._queue: queue.Queue[Any] = queue.Queue()
    actor.listen(self._queue.put)

  def read(self, frame: int, timeout: float) -> list[backend_lib.Collision]:
    """Read what has arrived, of this tick and of those before.

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
  """Convert an image, whose bytes are BGRA, to uint8 [height, width, channels].

  Depths are shares of 1000 m as numbers of 24 bits, red the lowest byte, see
  https://carla.readthedocs.io/en/0.9.16/ref_sensors/#depth-camera. Classes are
  in red.
  """
  pixels = np.frombuffer(data.raw_data, np.uint8)
  rgb = pixels.reshape(data.height, data.width, 4)[..., 2::-1]
  if sensor.camera == 'depth':
    share = rgb @ np.array([1, 2**8, 2**16]) / (2**24 - 1)
    metres = sensors.FAR * share[..., None]
    return sensors.encode_depth(metres, sensor.logarithmic)
  if sensor.camera == 'semantic_segmentation':
    return sensors.PALETTE[rgb[..., 0]]
  return rgb.copy()


def _to_collision(event):
  kind = event.other_actor.type_id.partition('.')[0]
  impulse = event.normal_impulse
  return backend_lib.Collision(
    kind if kind in ('vehicle', 'walker') else 'other',
    math.hypot(impulse.x, impulse.y, impulse.z),
    event.other_actor.id,
  )
