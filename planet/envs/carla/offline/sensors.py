"""Software cameras for depth and classes, and all cameras of a sensor."""

import functools
from typing import Any

import numpy as np

from planet.envs.carla import sensors
from planet.envs.carla.offline import camera as camera_lib
from planet.envs.carla.offline import texture
from planet.envs.carla.offline import weather as weather_lib

_GROUND = (
  (slice(*texture.GRASS), 'Terrain'),
  (slice(*texture.ASPHALT), 'Roads'),
  (slice(*texture.SHOULDER), 'Sidewalks'),
  (texture.WHITE, 'RoadLines'),
  (texture.YELLOW, 'RoadLines'),
)


class DepthCamera(camera_lib.Camera):
  """Camera for distances along its axis; see `sensors.encode_depth`.

  Args:
    logarithmic: Whether the scale is logarithmic.
    *args: Arguments of `Camera`.
    **kwargs: Keyword arguments of `Camera`.
  """

  channels = 1

  def __init__(self, logarithmic: bool, *args: Any, **kwargs: Any):
    super().__init__(*args, **kwargs)
    self._logarithmic = logarithmic
    self._ground_depth = self._pack(self._depths)[:, None]

  def _pack(self, meters):
    gray = sensors.encode_depth(meters, self._logarithmic)
    return weather_lib.pack(np.repeat(gray[..., None], 3, -1))

  def _sky(self, unused_look):
    return self._pack(np.full(self._horizon, sensors.FAR))

  def _ground(self, *unused_args):
    return self._ground_depth

  def _color(self, unused_look, boxes, seen, far, enter, unused_face):
    return self._pack(enter), None

  def _rain(self, *unused_args):
    """Do nothing; drops are too small for depth images."""


class SemanticCamera(camera_lib.Camera):
  """Camera for classes, in the colors of `sensors.PALETTE`; see `CLASSES`."""

  def _color(self, unused_look, boxes, seen, far, enter, unused_face):
    colors = weather_lib.pack(sensors.PALETTE[boxes.label[seen]])
    return np.broadcast_to(colors[:, None], enter.shape), None


class Cameras:
  """Cameras of the configured sensor, with concatenated images.

  Args:
    config: Complete settings, see `env_config.complete`.
  """

  def __init__(self, config: dict[str, Any]):
    sensor = self._sensor = sensors.SENSORS[config['use_sensor']]
    self._size = config['x_res'], config['y_res']
    source = config['render_x_res'], config['render_y_res']
    is_direct = config['offline_direct_render']
    # Averaging two classes would give another class.
    averaged = is_direct and sensor.camera != 'semantic_segmentation'
    rendered = self._size if is_direct else source
    kinds: dict[str, Any] = {
      'rgb': camera_lib.Camera,
      'depth': functools.partial(DepthCamera, sensor.logarithmic),
      'semantic_segmentation': SemanticCamera,
    }
    self._cameras = [
      kinds[sensor.camera](
        *rendered,
        source=source,
        fov=config['fov'],
        position=position,
        supersample=2 if averaged else 1,
      )
      for position in sensor.positions(config)
    ]
    self._shrinks = not is_direct

  def render(
    self, pose: Any, ground: Any, look: weather_lib.Look, *others: Any
  ) -> np.ndarray | None:
    """Render a frame; see `Camera.render` for the arguments.

    Returns:
      uint8 [height, width, channels of all cameras]; None without cameras.
    """
    if self._sensor.camera == 'semantic_segmentation':
      look = CLASSES
    images = [x.render(pose, ground, look, *others) for x in self._cameras]
    if self._shrinks:
      images = [self._sensor.shrink(x, *self._size) for x in images]
    if len(images) < 2:
      return images[0] if images else None
    return np.concatenate(images, -1)


def _define_look():
  """Return a look with the colors of classes, without light and fog."""
  colors = {key: sensors.PALETTE[x] for key, x in sensors.LABELS.items()}
  ground = np.zeros((256, 3))
  for entries, name in _GROUND:
    ground[entries] = colors[name]
  palette = np.tile(weather_lib.pack(ground), (weather_lib.LEVELS, 1))
  sky = colors['Sky'].astype(float)
  return weather_lib.Look(np.ones(3), sky, sky, 0.0, 0.0, palette)


CLASSES = _define_look()
