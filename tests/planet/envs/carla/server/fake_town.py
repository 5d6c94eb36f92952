"""Blueprints and maps of a world with the interface of CARLA's client."""

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
