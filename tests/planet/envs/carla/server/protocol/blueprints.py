"""Blueprints that the server offers: a few of each kind."""

from tests.planet.envs.carla.server.protocol.messages import (
  BOOL,
  FLOAT,
  INT,
  STRING,
)

# Half of length, width and height, and number of the class in images.
SIZES = {'vehicle': (2.45, 1.06, 0.75), 'walker': (0.19, 0.19, 0.93)}
TAGS = {'vehicle': b'\x0e', 'walker': b'\x0c'}


def _free(name, kind, *values):
  return [name, kind, values[0], list(values), True, False]


def _fixed(name, kind, value):
  return [name, kind, value, [], False, False]


def _car(name, wheels='4', kind='car'):
  return name, [
    _free('role_name', STRING, 'autopilot'),
    _free('sticky_control', BOOL, 'true'),
    _fixed('number_of_wheels', INT, wheels),
    _fixed('base_type', STRING, kind),
  ]


def _sensor(name, *attributes):
  return name, [_free('role_name', STRING, 'front'), *attributes]


def _camera(kind):
  return _sensor(
    f'sensor.camera.{kind}',
    _free('sensor_tick', FLOAT, '0.0'),
    _free('fov', FLOAT, '90.0'),
    _free('image_size_x', INT, '800'),
    _free('image_size_y', INT, '600'),
  )


_ALL = (
  _car('vehicle.lincoln.mkz_2020'),
  _car('vehicle.audi.tt'),
  _car('vehicle.bh.crossbike', '2', 'bicycle'),
  (
    'walker.pedestrian.0001',
    [
      _free('role_name', STRING, 'pedestrian'),
      _free('is_invincible', BOOL, 'true'),
      _free('speed', FLOAT, '0.0', '1.43', '2.9'),
    ],
  ),
  ('controller.ai.walker', [_free('role_name', STRING, 'default')]),
  _camera('rgb'),
  _camera('depth'),
  _camera('semantic_segmentation'),
  _sensor('sensor.other.collision'),
)


def list_definitions(missing):
  """Return what `get_actor_definitions` does.

  Args:
    missing: Names of blueprints, starts of them that end with a dot, or
      `blueprint:attribute`, that are left out.
  """
  return [
    [
      number,
      name,
      name.replace('.', ','),
      [x for x in attributes if f'{name}:{x[0]}' not in missing],
    ]
    for number, (name, attributes) in enumerate(_ALL, 1)
    if name not in missing
    and not any(x[-1] == '.' and name.startswith(x) for x in missing)
  ]
