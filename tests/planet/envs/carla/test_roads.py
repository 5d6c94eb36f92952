"""Shipped maps, lanes, footprints, routes, and maps that cannot be used."""

import gzip
import math
import sys

import numpy as np
import pytest

from agents.run import errors
from planet.envs.carla import lanes as lanes_lib
from planet.envs.carla import measure, planner, roads
from tests.planet.envs.carla.recorded_world import write_bridge

pytest.importorskip('carla')


@pytest.fixture(scope='module')
def loop():
  return roads.load('loop')


@pytest.fixture(scope='module')
def grid_lanes():
  return lanes_lib.Lanes(roads.load('grid'))


def test_ring_has_no_end(loop):
  """Both lanes lead around again; 100 m straights, arcs of 30 -+ 1.75 m."""
  lanes = lanes_lib.Lanes(loop)
  assert [len(x) for x in lanes.following] == [1] * 8
  for start in range(8):
    seen, lane = [], start
    while lane not in seen:
      seen.append(lane)
      (lane,) = lanes.following[lane]
    assert lane == start and len(seen) == 4
    length = sum(lanes.all[x].length for x in seen)
    radius = 31.75 if length > 388.5 else 28.25
    assert length == pytest.approx(200 + 2 * math.pi * radius, abs=0.3)
  (waypoint,) = loop.get_topology()[0][0].next(0.5)
  for _ in range(2000):
    (waypoint,) = waypoint.next(0.5)


def test_lanes_lead_where_cars_drive(loop):
  """Right-hand traffic: the lane leading to +x lies at greater y."""
  surroundings = measure.Surroundings(loop, lanes_lib.Lanes(loop))
  for y, yaw in ((31.75, 0), (28.25, 180), (-31.75, 180), (-28.25, 0)):
    rotation = surroundings.nearest((0, y, 0)).transform.rotation
    assert math.cos(math.radians(rotation.yaw - yaw)) > 0.999, y


# Pose on the lower straight of the loop, and both fractions by hand: samples
# lie 0.95 m to the left, in the middle, and 0.95 m to the right.
FOOTPRINTS = [
  ((0, 31.75, 0), (0, 0)),
  ((0, 30.3, 0), (0, 1 / 3)),
  ((0, 28.25, 0), (0, 1)),
  ((0, 28.25, 180), (0, 0)),
  ((0, 33.5 + 0.01, 0), (2 / 3, 0)),
  ((0, 50, 0), (1, 0)),
  # Across the road, the middle row is on the center line.
  ((0, 30.1, 90), (0, 0)),
]


@pytest.mark.parametrize('pose, expected', FOOTPRINTS)
def test_footprint(loop, pose, expected):
  x, y, yaw = pose
  surroundings = measure.Surroundings(loop, lanes_lib.Lanes(loop))
  found = surroundings.footprint((x, y, 0), math.radians(yaw))
  assert found == pytest.approx(expected)


def test_no_way_on_the_ring(loop):
  """From the other direction, on which one drives around for ever."""
  lanes = lanes_lib.Lanes(loop)
  here = {0}
  for _ in range(4):
    here |= {y for x in here for y in lanes.following[x]}
  goal = min(set(range(8)) - here)
  route = planner.Route(lanes, (goal, 5.0))
  assert route.lanes_from(0, 1.0) == [0]
  assert route.distance(0, 1.0) == math.inf
  assert len(route.way_from(0, 1.0))


def test_roads_above_each_other(tmp_path):
  """A bridge of 9 m leads along -y over the lower straight of the ring."""
  bridge = roads.load(write_bridge(tmp_path))
  surroundings = measure.Surroundings(bridge, lanes_lib.Lanes(bridge))
  for y in range(20, 40, 2):
    on_bridge = (1.75, y, 9.0), math.radians(-90)
    assert surroundings.footprint(*on_bridge) == (0, 0)
    assert surroundings.nearest((1.75, y, 9.0)).road_id == 9
    speed, offset = surroundings.on_lane(
      (1.75, y, 9.0), (0.0, -3.0), math.radians(-90)
    )
    assert (speed, offset) == pytest.approx((3, 0), abs=1e-3)
  below = (1.75, 31.75, 0.0), 0.0
  assert surroundings.footprint(*below) == (0, 0)
  assert surroundings.nearest(below[0]).road_id == 1


def test_grid(grid_lanes):
  """Every lane goes on, junctions have branches but no U-turns."""
  assert all(grid_lanes.following)
  crossing = [x for x in grid_lanes.all if x.junction is not None]
  assert len(crossing) > 30
  assert all(abs(x.turn) < 150 for x in crossing)
  assert len(grid_lanes.centers) == 8
  choices = [
    len(follow)
    for lane, follow in zip(grid_lanes.all, grid_lanes.following)
    if lane.junction is None
  ]
  assert max(choices) == 3


@pytest.mark.parametrize('kind', ['straight', 'one_curve', 'nav'])
def test_routes_of_each_kind(grid_lanes, kind):
  """Lengths and turns are as asked for; distances fall on the way."""
  random = np.random.default_rng(0)
  starts = [n for n, x in enumerate(grid_lanes.all) if x.junction is None]
  found = 0
  for start in starts:
    route = planner.draw_goal(grid_lanes, (start, 1.0), (kind,), random, 20)
    if not route:
      continue
    found += 1
    assert 80 <= route.distance(start, 1.0) <= 600
    path = route.lanes_from(start, 1.0)
    assert path[-1] == route.goal_lane
    for first, second in zip(path, path[1:]):
      assert second in grid_lanes.following[first]
    length = sum(grid_lanes.all[x].length for x in path[:-1])
    expected = length - 1.0 + route.goal_arc
    assert route.distance(start, 1.0) == pytest.approx(expected)
    sharp = sum(
      abs(grid_lanes.all[x].turn) > 60
      for x in path
      if grid_lanes.all[x].junction is not None
    )
    if kind != 'straight':
      assert sharp == 1 if kind == 'one_curve' else sharp > 1
  assert found >= 3


def test_shortest_ways_beat_all_others(grid_lanes):
  """Against the values of plain iteration over all lanes."""
  route = planner.Route(grid_lanes, (5, 3.0))
  rest = np.full(len(grid_lanes.all), np.inf)
  rest[5] = 3.0
  for _ in rest:
    for lane, follow in enumerate(grid_lanes.following):
      best = min(rest[x] for x in follow) + grid_lanes.all[lane].length
      rest[lane] = min(rest[lane], best)
  for lane in range(len(rest)):
    if lane != 5:
      assert route.distance(lane, 0.0) == pytest.approx(rest[lane])


def test_commands(grid_lanes):
  """Named by the turn of the next junction, close to it only."""
  seen = set()
  for start, lane in enumerate(grid_lanes.all):
    for branch in grid_lanes.following[start]:
      crossed = grid_lanes.all[branch]
      if lane.junction is not None or crossed.junction is None:
        continue
      (beyond,) = grid_lanes.following[branch]
      route = planner.Route(grid_lanes, (beyond, 20.0))
      arc = lane.length - 1.0
      x, y, yaw = lane.at(arc)
      ahead = planner.point_ahead(x, y, yaw)
      command = route.command(start, arc, (x, y), ahead)
      expected = 'TURN_RIGHT' if crossed.turn > 0 else 'TURN_LEFT'
      if abs(crossed.turn) < 30:
        expected = 'GO_STRAIGHT'
      assert command == expected
      seen.add(command)
      goal = grid_lanes.all[beyond].at(19.0)
      assert route.command(beyond, 19.0, goal[:2], goal[:2]) == 'REACH_GOAL'
      middle = lane.at(lane.length / 2)
      if lane.length > 60:
        far = planner.point_ahead(*middle)
        assert (
          route.command(start, lane.length / 2, middle[:2], far)
          == 'LANE_FOLLOW'
        )
  assert seen == {'GO_STRAIGHT', 'TURN_RIGHT', 'TURN_LEFT'}


def test_maps_that_cannot_be_used(tmp_path, capfd):
  (tmp_path / 'broken.xodr').write_text('<OpenDRIVE><road')
  (tmp_path / 'empty.xodr').write_text('<OpenDRIVE></OpenDRIVE>')
  with gzip.open(tmp_path / 'cut.xodr.gz', 'wb') as file_:
    file_.write(b'x' * 10000)
  content = (tmp_path / 'cut.xodr.gz').read_bytes()
  (tmp_path / 'cut.xodr.gz').write_bytes(content[:20])
  # No block of Deflate begins so.
  header = gzip.compress(b'')[:10]
  (tmp_path / 'changed.xodr.gz').write_bytes(header + b'\xff' * 10)
  for name, message in (
    ('broken.xodr', 'broken.xodr is not a valid OpenDRIVE file'),
    ('empty.xodr', 'empty.xodr has no driving lane'),
    ('cut.xodr.gz', 'Cannot read the map'),
    ('changed.xodr.gz', 'Cannot read the map'),
    ('missing.xodr', 'missing.xodr: No such file or directory. Give the'),
    ('lop', "'.*lop' does not exist offline"),
  ):
    with pytest.raises(errors.UsageError, match=message):
      roads.load(str(tmp_path / name))
  with pytest.raises(errors.UsageError, match='Did you mean loop'):
    roads.load('lopp')


def test_missing_package(monkeypatch):
  monkeypatch.setitem(sys.modules, 'carla', None)
  with pytest.raises(errors.UsageError, match='needs the package carla 0.9.16'):
    roads.load('loop')
