"""Blueprints, maps and pixels of a pretended world; see `fake_carla`."""

import types

import carla

from planet.envs.carla import roads


class Blueprint:
  def __init__(self, name):
    self.id, self.attributes = name, {}

  def set_attribute(self, key, value):
    assert isinstance(value, str), (key, value)
    self.attributes[key] = value

  def has_attribute(self, name):
    return name == 'is_invincible' and self.id.startswith('walker.')


class Library:
  """Blueprints by their names."""

  names = (
    'vehicle.lincoln.mkz_2020',
    'vehicle.audi.tt',
    'walker.pedestrian.0001',
  )

  def find(self, name):
    return Blueprint(name)

  def filter(self, pattern):
    start = pattern.rstrip('*')
    return [Blueprint(x) for x in self.names if x.startswith(start)]


class Map:
  """Real roads, with the spawn points that only real towns have."""

  def __init__(self, town):
    self._map = carla.Map(f'Carla/Maps/{town}', roads.read('loop')[1])
    self.name = self._map.name

  def __getattr__(self, name):
    return getattr(self._map, name)

  def get_spawn_points(self):
    poses = [(x, 31.75, 0.0) for x in range(-40, 50, 10)]
    poses += [(x, -31.75, 180.0) for x in range(-40, 50, 10)]
    return [
      carla.Transform(carla.Location(x, y, 0.5), carla.Rotation(yaw=yaw))
      for x, y, yaw in poses
    ]


def expose(camera, simulator):
  """Send what a camera sees, unless the simulator is late."""
  if simulator.late:
    return
  width = int(camera.attributes['image_size_x'])
  height = int(camera.attributes['image_size_y'])
  number = simulator.frame
  if simulator.newer:
    number += 1
  # Mostly an old image comes first, as after the start of the sensor.
  old = [] if simulator.newer else [(number - 1, False)]
  for frame, is_new in old + [(number, True)]:
    camera.callback(
      types.SimpleNamespace(
        frame=frame,
        width=width,
        height=height,
        raw_data=_pixel(camera, number, is_new) * (width * height),
      )
    )


def _pixel(camera, number, is_new):
  """Bytes of all pixels, BGRA, that tell cameras and images apart.

  Depths are 25 m, in 24 bits of shares of 1000 m with the lowest in red;
  classes are lines, in red. Old images are different ones.
  """
  if camera.type_id == 'sensor.camera.depth':
    share = round(25 / 1000 * (2**24 - 1)) if is_new else 0
    return share.to_bytes(3, 'big') + b'\xff'
  if camera.type_id == 'sensor.camera.semantic_segmentation':
    return bytes([0, 0, 24 if is_new else 11, 255])
  side = camera.transform.location.y if camera.transform else 0
  blue = 40 if is_new else 9
  return bytes([blue, 20 + round(40 * side), number % 200, 255])
