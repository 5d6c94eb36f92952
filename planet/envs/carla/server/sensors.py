"""Data of sensors, matched to the ticks that they belong to."""

import queue
import typing
import weakref
from typing import Any

import numpy as np

from planet.envs.carla import backend as backend_lib

if typing.TYPE_CHECKING:
  import carla


class Camera:
  """Images of one camera in the order of the ticks.

  Args:
    sensor: `carla.Sensor` that is not listening yet.
    timeout: Seconds to wait for an image.
  """

  def __init__(self, sensor: 'carla.Sensor', timeout: float = 2.0):
    self.actor = sensor
    self._timeout = timeout
    self._queue: queue.Queue[Any] = queue.Queue()
    sensor.listen(_weak(self._queue.put))

  def read(self, frame: int) -> np.ndarray:
    """Read the image of a tick, uint8 [height, width, 3].

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
        return to_rgb(data)
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
  pixels = np.frombuffer(data.raw_data, np.uint8)
  return pixels.reshape(data.height, data.width, 4)[..., 2::-1].copy()


def to_collision(event: 'carla.CollisionEvent') -> tuple[str, float]:
  """Return the kind of the other actor, and the impulse in N s."""
  kinds = {'vehicle.': 'vehicle', 'walker.': 'walker'}
  name = event.other_actor.type_id
  kind = next((v for k, v in kinds.items() if name.startswith(k)), 'other')
  impulse = event.normal_impulse
  return kind, float(np.linalg.norm([impulse.x, impulse.y, impulse.z]))


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
