"""Routes on the lanes of a map, and navigation commands."""

import heapq
import math
from collections.abc import Iterable

import numpy as np

from planet.envs.carla import lanes as lanes_lib
from planet.envs.carla import places

_NAMES = 'REACH_GOAL GO_STRAIGHT TURN_RIGHT TURN_LEFT LANE_FOLLOW'
COMMANDS = {name: number for number, name in enumerate(_NAMES.split())}
# Distance in meters at which a goal is reached.
ARRIVED = 3.0
_AHEAD = 5.0
_NEAR_JUNCTION = 18.0
# Distance in meters from a lane up to which a car still follows it.
_BESIDE = 3.0
# What an agent observes of a route: commands, positions at two distances ahead,
# and the units of positions and of the distance to the goal, all in meters.
_OBSERVED = 'LANE_FOLLOW', 'GO_STRAIGHT', 'TURN_LEFT', 'TURN_RIGHT'
_POSITIONS, _NEAR_UNIT, _FAR_UNIT = (10.0, 20.0), 10.0, 100.0
OBSERVATIONS = len(_OBSERVED) + 2 * len(_POSITIONS) + 1
_STRAIGHT = 30.0
_LENGTHS = (80.0, 600.0)


class Route:
  """Shortest paths to a goal from any lane, by Dijkstra's algorithm.

  Args:
    lanes: `Lanes` of the map.
    goal: Tuple of lane index and meters along the lane.

  Attributes:
    goal: Position of the goal in meters, x and y.
    goal_lane: Index of its lane.
    goal_arc: Meters along it.
    junctions: Number of junctions with a choice that the car has crossed.
    obeyed: Number of those that it left as the route does.
    departed: Whether the last `track` planned the route anew, because the car
      had left it.
  """

  def __init__(self, lanes: lanes_lib.Lanes, goal: tuple[int, float]):
    self._lanes = lanes
    self.goal_lane, self.goal_arc = goal
    self.goal = lanes.all[self.goal_lane].at(self.goal_arc)[:2]
    self._rest = self._search()
    self._path: list[int] = []
    self._crossing: int | None = None
    self._missed: int | None = None
    self.junctions = self.obeyed = 0
    self.departed = False

  def track(
    self, lane: int, arc: float, position: places.Point
  ) -> tuple[int, float]:
    """Follow a car; return its lane on the route and the meters along it.

    Lanes overlap in junctions, so a car keeps the lane of the route until it is
    3 m beside it. Then the route is planned anew.

    Args:
      lane: Index of the nearest lane.
      arc: Meters along that lane.
      position: Position of the car.
    """
    path, self.departed = self._path, False
    is_past = path[:1] == [self.goal_lane] == [lane] and arc > self.goal_arc
    if is_past or lane not in path[:4]:
      gaps = [] if is_past else [self._project(x, position) for x in path[:3]]
      gap, arc_beside = min(gaps, default=(math.inf, 0.0))
      if gap < _BESIDE:
        lane, arc = path[gaps.index((gap, arc_beside))], arc_beside
      else:
        self._leave_junction(False)
        self.departed = bool(path) and not is_past
        path[:] = self.lanes_from(lane, arc)
    del path[: path.index(lane)]
    junction = self._lanes.all[lane].junction
    if junction is None:
      self._leave_junction(True)
      self._missed = None
    elif junction != self._missed and self._has_choice(lane):
      self._crossing = junction
    return lane, arc

  def _leave_junction(self, obeyed):
    """Count a junction that the car has left, if it had a choice there."""
    if self._crossing is not None:
      self.junctions += 1
      self.obeyed += obeyed
    self._missed, self._crossing = self._crossing, None

  def _has_choice(self, lane):
    choices = [x for x in self._lanes.following if lane in x]
    return any(len(x) > 1 for x in choices)

  def _project(self, number, position):
    """Return the distance from a lane and the meters along it."""
    lane = self._lanes.all[number]
    gaps = np.hypot(*(lane.points[:, :2] - position).T)
    nearest = int(gaps.argmin())
    return float(gaps[nearest]), float(lane.arc[nearest])

  def points(
    self, arc: float, distances: Iterable[float]
  ) -> list[places.Point]:
    """Return positions ahead of a car on the route, at most up to the goal.

    Args:
      arc: Meters along the lane, as of `track`.
      distances: Meters ahead of the car.
    """
    found = []
    for distance in distances:
      rest, path = arc + distance, list(self._path)
      while len(path) > 1 and rest > self._lanes.all[path[0]].length:
        rest -= self._lanes.all[path.pop(0)].length
      if path == [self.goal_lane]:
        rest = min(rest, self.goal_arc)
      x, y, _ = self._lanes.all[path[0]].at(rest)
      found.append((x, y))
    return found

  def observe(
    self, lane: int, arc: float, position: places.Point, yaw: float
  ) -> list[float]:
    """Return what agents see of the route, `OBSERVATIONS` numbers.

    These are four flags for the commands follow, straight, left and right; the
    positions 10 and 20 m ahead on the route, each forward and to the right of
    the car in units of 10 m; and the distance to the goal in units of 100 m.

    Args:
      lane: Index of the lane, as of `track`.
      arc: Meters along the lane, as of `track`.
      position: Position of the car.
      yaw: Heading of the car in radians.
    """
    ahead = point_ahead(*position, yaw)
    command = self.command(lane, arc, position, ahead)
    command = command if command in _OBSERVED else 'LANE_FOLLOW'
    values = [float(x == command) for x in _OBSERVED]
    cos, sin = math.cos(yaw), math.sin(yaw)
    for x, y in self.points(arc, _POSITIONS):
      x, y = (x - position[0]) / _NEAR_UNIT, (y - position[1]) / _NEAR_UNIT
      values += [x * cos + y * sin, y * cos - x * sin]
    distance = self.distance(lane, arc)
    return [*values, distance / _FAR_UNIT if math.isfinite(distance) else 0.0]

  def distance(self, lane: int, arc: float) -> float:
    """Return the distance to the goal in meters; infinite if unreachable."""
    if lane == self.goal_lane and arc <= self.goal_arc:
      return self.goal_arc - arc
    follow = self._onward(lane)
    if follow is None:
      return math.inf
    return self._lanes.all[lane].length - arc + self._rest[follow]

  def lanes_from(self, lane: int, arc: float) -> list[int]:
    """Return the lanes on the path to the goal, including the current one."""
    path = [lane]
    if lane == self.goal_lane and arc <= self.goal_arc:
      return path
    while len(path) == 1 or path[-1] != self.goal_lane:
      follow = self._onward(path[-1])
      if follow is None:
        break
      path.append(follow)
    return path

  def way_from(self, lane: int, arc: float) -> np.ndarray:
    """Return positions on the path to the goal in meters, [positions, 2]."""
    path = self.lanes_from(lane, arc)
    end = self.goal_arc if path[-1] == self.goal_lane else math.inf
    return np.concatenate(_sample(self._lanes, path, arc, end))[:, :2]

  def command(
    self, lane: int, arc: float, position: places.Point, ahead: places.Point
  ) -> str:
    """Return the name of the navigation command.

    Args:
      lane: Index of the lane.
      arc: Meters along the lane.
      position: Position of the vehicle.
      ahead: Position a few meters ahead, see `point_ahead`.
    """
    if math.dist(position, self.goal) < ARRIVED:
      return 'REACH_GOAL'
    if not is_near_junction(self._lanes, ahead):
      return 'LANE_FOLLOW'
    for number in self.lanes_from(lane, arc):
      crossed = self._lanes.all[number]
      if crossed.junction is not None:
        if abs(crossed.turn) < _STRAIGHT:
          return 'GO_STRAIGHT'
        return 'TURN_RIGHT' if crossed.turn > 0 else 'TURN_LEFT'
    return 'LANE_FOLLOW'

  def _onward(self, lane):
    """Return the next lane towards the goal, None if it is unreachable."""
    following = self._lanes.following[lane]
    choices = [x for x in following if self._rest[x] < math.inf]
    return min(choices, key=self._rest.__getitem__, default=None)

  def _search(self):
    """Return the meters from the start of each lane to the goal."""
    before: list[list[int]] = [[] for _ in self._lanes.all]
    for lane, choices in enumerate(self._lanes.following):
      for follow in choices:
        before[follow].append(lane)
    rest = [math.inf] * len(before)
    rest[self.goal_lane] = self.goal_arc
    queue = [(self.goal_arc, self.goal_lane)]
    while queue:
      distance, lane = heapq.heappop(queue)
      if distance > rest[lane]:
        continue
      for previous in before[lane]:
        total = distance + self._lanes.all[previous].length
        if total < rest[previous]:
          rest[previous] = total
          heapq.heappush(queue, (total, previous))
    return rest


def is_near_junction(lanes: lanes_lib.Lanes, point: places.Point) -> bool:
  """Return whether the center of a junction is within 18 m of a point."""
  gaps = np.hypot(*(lanes.centers - point).T)
  return bool((gaps <= _NEAR_JUNCTION).any())


def point_ahead(x: float, y: float, yaw: float) -> places.Point:
  """Return the point 5 m ahead of a pose, with the heading in radians."""
  return x + _AHEAD * math.cos(yaw), y + _AHEAD * math.sin(yaw)


def classify(
  lanes: lanes_lib.Lanes, path: list[int], start_arc: float, goal_arc: float
) -> str | None:
  """Classify a route as `straight`, `one_curve`, `nav`, or None.

  A `straight` route changes its heading by less than 15 degrees in total. A
  `one_curve` route has one turn at a junction, by 60 to 120 degrees. A `nav`
  route has at least two turns of at least 60 degrees.

  Args:
    lanes: `Lanes` of the map.
    path: Lanes of the route.
    start_arc: Meters along the first lane.
    goal_arc: Meters along the last lane.
  """
  turns = [
    abs(lanes.all[x].turn) for x in path if lanes.all[x].junction is not None
  ]
  curves = [x for x in turns if x >= 60]
  if len(curves) >= 2:
    return 'nav'
  if len(curves) == 1:
    return 'one_curve' if curves[0] <= 120 else None
  parts = _sample(lanes, path, start_arc, goal_arc)
  bend = sum(np.abs(np.diff(x[:, 2])).sum() for x in parts)
  return 'straight' if np.rad2deg(bend) < 15 else None


def _sample(lanes, path, start_arc, goal_arc):
  """Return the points of a route, one array per lane."""
  parts = []
  for index, number in enumerate(path):
    lane = lanes.all[number]
    first = start_arc if index == 0 else 0.0
    last = goal_arc if index == len(path) - 1 else math.inf
    parts.append(lane.points[(lane.arc >= first) & (lane.arc <= last)])
  return parts


def can_have(lanes: lanes_lib.Lanes, kinds: tuple[str, ...]) -> bool:
  """Return whether routes of these kinds may exist; turns need a junction."""
  turns = any(abs(x.turn) >= 60 for x in lanes.all if x.junction is not None)
  return 'straight' in kinds or turns


def draw_goal(
  lanes: lanes_lib.Lanes,
  start: tuple[int, float],
  kinds: tuple[str, ...] | None,
  random: np.random.Generator,
  tries: int = 60,
) -> Route | None:
  """Sample a route of 80 to 600 m of given kinds.

  Args:
    lanes: `Lanes` of the map.
    start: Tuple of lane index and meters along the lane.
    kinds: Accepted kinds, see `classify`; None accepts any.
    random: NumPy generator.
    tries: Number of goals to try.

  Returns:
    Route, or None if none was found.
  """
  streets = [n for n, x in enumerate(lanes.all) if x.junction is None]
  for _ in range(tries):
    lane = streets[random.integers(len(streets))]
    arc = float(random.uniform(0, lanes.all[lane].length))
    if kinds == ('straight',):
      lane, arc = _walk_straight(lanes, start, random)
    route = Route(lanes, (lane, arc))
    distance = route.distance(*start)
    if not _LENGTHS[0] <= distance <= _LENGTHS[1]:
      continue
    path = route.lanes_from(*start)
    if kinds is None or classify(lanes, path, start[1], arc) in kinds:
      return route
  return None


def _walk_straight(lanes, start, random):
  """Sample a position that is reached without turning."""
  ways = [start[0]]
  while len(ways) < 20:
    ahead = min(
      lanes.following[ways[-1]],
      key=lambda x: abs(lanes.all[x].turn),
      default=None,
    )
    if ahead is None or ahead in ways or abs(lanes.all[ahead].turn) > 15:
      break
    ways.append(ahead)
  ways = [x for x in ways if lanes.all[x].junction is None] or [start[0]]
  lane = ways[random.integers(len(ways))]
  return lane, float(random.uniform(0, lanes.all[lane].length))
