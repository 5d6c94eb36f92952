"""Depth, classes and stereo of the offline world, against geometry by hand."""

import math

import numpy as np
import pytest

from planet.envs.carla import sensors
from planet.envs.carla.env import CarlaEnv
from planet.envs.carla.offline import boxes as boxes_lib

carla = pytest.importorskip('carla')
SMALL = {'map': 'loop', 'x_res': 64, 'y_res': 64, 'seed': 0}
# Columns of a picture of 64 pixels by the tangent of their direction.
FOCAL = 32 / math.tan(math.radians(60))


def look(env, *boxes):
  """Image from the middle of a straight lane, with nothing but some boxes.

  Boxes are meters ahead of the camera, meters to the right, and classes; they
  are cubes of 2 m.
  """
  env.reset()
  world = env.backend
  world._car.x, world._car.y, world._car.yaw = -40.0, 31.75, 0.0
  count = len(boxes)
  world._scenery = boxes_lib.Boxes(
    np.array([[-37 + x, 31.75 + y, 0.0] for x, y, _ in boxes]).reshape(-1, 3),
    np.tile([1.0, 1.0, 2.0], (count, 1)),
    np.tile([255.0, 0.0, 255.0], (count, 1)),
    np.zeros(count, bool),
    np.array([sensors.LABELS[x] for _, _, x in boxes], np.uint8),
  )
  return world.render()


def make(sensor, **config):
  quiet = {'vehicles': 0, 'pedestrians': 0, 'use_sensor': sensor}
  return CarlaEnv(SMALL | quiet | config)


def test_scales_of_depth():
  """In steps of 3.9 m; or 3.3 m and 1000 m at the ends of the logarithm."""
  meters = np.array([0, 200, 400, 1000, 5000])
  assert sensors.encode_depth(meters, False).tolist() == [0, 51, 102, 255, 255]
  meters = np.array([0, 1000 / 300, 1000 / 300 ** (1 / 3), 1000, 5000])
  assert sensors.encode_depth(meters, True).tolist() == [0, 0, 170, 255, 255]


def test_classes_are_those_of_the_package():
  names = {x: int(y) for x, y in carla.CityObjectLabel.names.items()}
  del names['NONE'], names['Any']
  assert sensors.LABELS == names
  assert len(np.unique(sensors.PALETTE[:29], axis=0)) == 29


@pytest.mark.parametrize('direct', [True, False])
@pytest.mark.parametrize('name, logarithmic', [('depth', 0), ('logdepth', 1)])
def test_depth(name, logarithmic, direct):
  """Sky is far, ground as far as its row says, a box where it is."""
  env = make(f'use_{name}', offline_direct_render=direct)
  empty, image = look(env), look(env, (10, 0, 'Car'))
  assert image.shape == (64, 64, 1) and image.dtype == np.uint8
  assert (image[:20] == 255).all()
  # The camera is 1.4 m high; 175 rows are squeezed to 64.
  rows = np.arange(36, 64)
  depth = 200 / math.tan(math.radians(60)) * 1.4 / ((rows - 31.5) * 175 / 64)
  expected = sensors.encode_depth(depth, bool(logarithmic)).astype(int)
  assert np.abs(empty[rows, :, 0].astype(int) - expected[:, None]).max() <= 8
  assert np.abs(empty[rows[8:], :, 0] - expected[8:, None]).max() <= 2
  assert image[32, 32] == sensors.encode_depth(
    np.float64(10), bool(logarithmic)
  )
  assert (image[:, :24] == empty[:, :24]).all()


@pytest.mark.parametrize('direct', [True, False])
def test_classes(direct):
  """Exact colors only, and those of what the other camera shows there."""
  env = make('use_semantic', offline_direct_render=direct)
  image = look(env, (8, -5, 'Pedestrians'), (8, 5, 'Buildings'))
  names = {sensors.PALETTE[x].tobytes(): y for y, x in _numbers()}
  seen = {names[x.tobytes()] for x in image.reshape(-1, 3)}
  assert seen == {
    'Sky',
    'Terrain',
    'Roads',
    'Sidewalks',
    'RoadLines',
    'Pedestrians',
    'Buildings',
  }
  sides = {'Pedestrians': -4.0, 'Buildings': 4.0}
  for name, side in sides.items():
    columns = np.nonzero(
      (image == sensors.PALETTE[sensors.LABELS[name]]).all(-1)
    )[1]
    edge = columns.max() if side < 0 else columns.min()
    # The far edge of the side that faces the camera, 10 m away.
    assert edge == pytest.approx(32 + FOCAL * side / 10, abs=1)
  assert names[image[40, 32].tobytes()] == 'Roads'
  assert names[image[10, 32].tobytes()] == 'Sky'


def _numbers():
  return sensors.LABELS.items()


def test_weather_is_not_seen_by_depth_and_classes():
  for name in ('use_depth', 'use_semantic'):
    images = [look(make(name, weather=x), (9, 2, 'Car')) for x in (1, 6)]
    np.testing.assert_array_equal(*images)


def test_stereo():
  """The left half is from the left: what is near is further right in it."""
  env = make('use_2rgb', stereo_baseline=1.0)
  image = look(env, (6, 0, 'Car'))
  assert image.shape == (64, 64, 6)
  edges = []
  for half in (image[..., :3], image[..., 3:]):
    half = half.astype(int)
    purple = (half[..., 0] > half[..., 1] + 60) & (
      half[..., 2] > half[..., 1] + 60
    )
    edges.append(np.nonzero(purple)[1].max() + 1)
  assert edges[0] - edges[1] == pytest.approx(FOCAL * 1.0 / 6, abs=1)
  single = look(make('use_rgb', camera=(2.0, 0.5, 1.4)), (6, 0, 'Car'))
  np.testing.assert_array_equal(image[..., 3:], single)


def test_picked_pixels_are_those_in_the_middle():
  image = np.arange(6 * 9).reshape(6, 9, 1)
  picked = sensors.SENSORS['use_semantic'].shrink(image, 3, 2)
  assert picked[..., 0].tolist() == [
    [10, 13, 16],
    [37, 40, 43],
  ]
