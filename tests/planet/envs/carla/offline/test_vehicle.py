"""Motion of the car, collisions and traffic of the offline world."""

import math

import numpy as np
import pytest

from planet.envs.carla import env_config, roads
from planet.envs.carla import lanes as lanes_lib
from planet.envs.carla.backend import Control, Episode
from planet.envs.carla.offline import boxes as boxes_lib
from planet.envs.carla.offline import traffic as traffic_lib
from planet.envs.carla.offline import vehicle
from planet.envs.carla.offline import world as offline

pytest.importorskip('carla')


def drive(car, seconds, throttle=0.0, steer=0.0, brake=0.0):
  for _ in range(round(seconds * 10)):
    car.step(throttle, steer, brake, 0.1)


def time_to(car, speed, throttle=0.0, brake=0.0):
  """Seconds and meters until a speed in km/h is passed."""
  start, began = (car.x, car.y), car.speed
  for step in range(1, 10000):
    car.step(throttle, 0.0, brake, 0.01)
    if (car.speed * 3.6 >= speed) == (began * 3.6 < speed):
      return step * 0.01, math.dist(start, (car.x, car.y))
  raise AssertionError(car.speed)


def test_straight_line():
  car = vehicle.Bicycle(1.0, 2.0, math.radians(30))
  drive(car, 5, throttle=1.0)
  assert car.yaw == math.radians(30)
  assert (car.y - 2.0) / (car.x - 1.0) == pytest.approx(math.tan(car.yaw))
  assert car.velocity == pytest.approx(
    (car.speed * math.cos(car.yaw), car.speed * math.sin(car.yaw))
  )


def test_speeds_of_the_specification():
  """0-30 in 2.8 s, 0-50 in 5.2 s, from 50 to a stop in 11.2 m and 1.7 s."""
  assert time_to(vehicle.Bicycle(0, 0, 0), 30, 1.0)[0] == pytest.approx(
    2.8, abs=0.15
  )
  assert time_to(vehicle.Bicycle(0, 0, 0), 50, 1.0)[0] == pytest.approx(
    5.2, abs=0.2
  )
  car = vehicle.Bicycle(0, 0, 0)
  drive(car, 120, throttle=1.0)
  assert car.speed * 3.6 == pytest.approx(93, abs=2)
  car = vehicle.Bicycle(0, 0, 0)
  car.speed = 50 / 3.6
  seconds, meters = time_to(car, 0.1, brake=1.0)
  assert meters == pytest.approx(11.2, abs=0.2)
  assert seconds == pytest.approx(1.7, abs=0.1)
  drive(car, 1, brake=1.0)
  assert car.speed == 0.0


def test_full_lock_circle():
  """8.6 m in diameter, measured over the points of a slow turn."""
  car = vehicle.Bicycle(0, 0, 0)
  drive(car, 2, throttle=0.2, steer=1.0)
  points = []
  for _ in range(300):
    car.step(0.06, 1.0, 0.0, 0.1)
    points.append((car.x, car.y))
  points = np.array(points)
  assert car.speed > 0.5
  center = (points.max(0) + points.min(0)) / 2
  diameters = 2 * np.hypot(*(points - center).T)
  assert diameters.mean() == pytest.approx(8.6, abs=0.1)
  # To the right, seen from above with y to the right of x.
  assert car.yaw > 0 and center[1] > 0


def test_no_spinning_at_speed():
  car = vehicle.Bicycle(0, 0, 0)
  car.speed = 20.0
  drive(car, 0.5, throttle=0.5, steer=1.0)
  before = car.yaw
  car.step(0.5, 1.0, 0.0, 0.02)
  assert abs(car.yaw - before) / 0.02 * car.speed <= 8.0 + 1e-9


# Pose of a box of 4 x 2 m, and the way out for a square of 2 m at the origin.
OVERLAPS = [
  ((2.5, 0, 0), (-0.5, 0)),
  ((3.1, 0, 0), None),
  ((0.2, -1.7, 0), (0, 0.3)),
  ((0, 2.5, math.pi / 2), (0, -0.5)),
  ((0, 3.1, math.pi / 2), None),
  # Only the diagonal separates these.
  ((2.4, 2.4, -math.pi / 4), None),
]


@pytest.mark.parametrize('pose, way', OVERLAPS)
def test_overlap(pose, way):
  hits, ways = boxes_lib.overlap(
    (0, 0, 0), (1, 1), np.array([pose]), np.array([[2.0, 1.0, 1.0]])
  )
  assert len(hits) == (way is not None)
  if way:
    np.testing.assert_allclose(ways, [way], atol=1e-9)


def make_world(**config):
  world = offline.OfflineBackend()
  world.open(
    env_config.complete({'map': 'loop', 'x_res': 32, 'y_res': 32} | config)
  )
  return world


def test_running_into_a_house():
  """One contact however long it lasts, and nobody gets through."""
  world = make_world()
  world.reset(Episode((0, 31.75, 0, 0), 0, 0, 0, 0))
  world._scenery = boxes_lib.Boxes(
    np.array([[20.0, 31.75, 0.0]]),
    np.array([[2.0, 2.0, 4.0]]),
    np.zeros((1, 3)),
    np.zeros(1, bool),
    np.zeros(1, np.uint8),
  )
  frames = [world.tick(Control(1.0)) for _ in range(100)]
  contacts = [x.collisions for x in frames if x.collisions]
  (((kind, impulse, _),),) = contacts
  assert kind == 'other'
  first = next(x for x in frames if x.collisions)
  before = frames[frames.index(first) - 1]
  assert impulse == pytest.approx(1500 * before.velocity[0], rel=0.1)
  assert max(x.location[0] for x in frames) <= 20 - 2 - 2.45 + 1e-6
  # Once it has left for half a second, it counts again.
  world._car.x -= 10
  world._car.speed = 0
  for _ in range(6):
    world.tick(Control(brake=1.0))
  frames = [world.tick(Control(1.0)) for _ in range(60)]
  assert len([x for x in frames if x.collisions]) == 1


def test_traffic_keeps_its_distance_and_its_lane():
  """No two vehicles of the loop touch in 100 s, all are on lanes."""
  lanes = lanes_lib.Lanes(roads.load('loop'))
  table = traffic_lib.Roads(lanes)
  world = traffic_lib.Traffic(table, (0, 0), 20, 0, np.random.default_rng(0))
  assert len(world.cars) == 20
  points = np.concatenate([x.points[:, :2] for x in lanes.all])
  distance = np.zeros(20)
  for _ in range(1000):
    before = world.cars.pose[:, :2].copy()
    world.step((0, 0, 0), 0.0, 0.1)
    distance += np.hypot(*(world.cars.pose[:, :2] - before).T)
  for pose, size in zip(world.cars.pose, world.cars.size):
    hits, _ = boxes_lib.overlap(pose, size, world.cars.pose, world.cars.size)
    assert len(hits) == 1
    assert np.hypot(*(points - pose[:2]).T).min() < 0.6
  assert distance.min() > 100


def test_traffic_stops_behind_the_ego():
  """Nobody rams a standing ego vehicle in 60 s."""
  for seed in range(3):
    world = make_world()
    world.reset(Episode((0, 31.75, 0, 0), 0, 15, 0, seed))
    frames = [world.tick(Control(brake=1.0)) for _ in range(600)]
    assert not any(x.collisions for x in frames)
    gaps = np.hypot(*(world._traffic.cars.pose[:, :2] - (0, 31.75)).T)
    assert 4.7 < gaps.min() < 12


def test_pedestrians_walk_beside_the_lanes_and_cross_rarely():
  table = traffic_lib.Roads(lanes_lib.Lanes(roads.load('loop')))
  world = traffic_lib.Traffic(table, (0, 0), 0, 30, np.random.default_rng(0))
  sides, start = [], world.walkers.pose.copy()
  for _ in range(600):
    world.step((0, 0, 0), 0.0, 0.1)
    sides.append(world._side.copy())
  sides = np.array(sides)
  beside = np.abs(np.abs(sides + 1.75) - 4.25) < 0.01
  assert beside.mean() > 0.9
  crossed = (~beside).any(0).sum()
  assert 3 < crossed < 30
  assert np.hypot(*(world.walkers.pose - start)[:, :2].T).mean() > 2


def test_number_of_vehicles_is_limited(caplog):
  """777 m of lane have room for 38; the log says so."""
  world = make_world()
  with caplog.at_level('INFO', 'planet'):
    world.reset(Episode((0, 31.75, 0, 0), 0, 500, 0, 0))
  assert len(world._traffic.cars) <= 38
  messages = [x.getMessage() for x in caplog.records]
  assert messages == ['The map has room for 38 of 500 vehicles.']
