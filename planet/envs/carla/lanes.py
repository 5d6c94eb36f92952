"""Driving lanes of a map as arrays, and their connections."""

import dataclasses
import math
import typing

import numpy as np

if typing.TYPE_CHECKING:
  import carla

# Degrees of a turn that no driver takes.
_U_TURN = 150.0
# Meters between samples of a lane.
_SPACING = 1.0


@dataclasses.dataclass(frozen=True)
class Lane:
  """Driving lane on one road section.

  Attributes:
    points: Positions and headings in the direction of travel, float64
      [samples, 3] in meters, meters and radians.
    arc: Meters from the start, float64 [samples].
    width: Width in meters.
    junction: Id of the junction that the lane crosses, or None.
    turn: Change of heading in degrees, positive to the right.
    curb: Whether there is no driving lane to the right.
    marks: Lane markings to the left and right: `solid`, `broken`, or None if
      the map has none.
  """

  points: np.ndarray
  arc: np.ndarray
  width: float
  junction: int | None
  turn: float
  curb: bool
  marks: tuple[str | None, str | None]

  @property
  def length(self) -> float:
    return float(self.arc[-1])

  def at(
    self, distance: float, right: float = 0.0
  ) -> tuple[float, float, float]:
    """Return a pose on the lane: x, y, and heading in radians.

    Args:
      distance: Meters from the start.
      right: Meters to the right of the center.
    """
    x, y, yaw = (
      float(np.interp(distance, self.arc, column)) for column in self.points.T
    )
    return x - right * math.sin(yaw), y + right * math.cos(yaw), yaw


class Lanes:
  """All driving lanes of a map, except U-turns.

  Args:
    road_map: `carla.Map`.
  """

  def __init__(self, road_map: 'carla.Map'):
    self._numbers: dict[tuple[int, ...], int] = {}
    self.all: list[Lane] = []
    pairs = road_map.get_topology()
    for begin, end in pairs:
      for waypoint in (begin, end):
        self._add(waypoint)
    self.following: list[list[int]] = [[] for _ in self.all]
    for begin, end in pairs:
      first, second = self.number(begin), self.number(end)
      if first is not None and second is not None:
        if second not in self.following[first]:
          self.following[first].append(second)
    self.centers = self._find_centers()

  def number(self, waypoint: 'carla.Waypoint') -> int | None:
    """Return the index of the lane of a waypoint, None for U-turns."""
    return self._numbers.get(_key(waypoint))

  def locate(self, waypoint: 'carla.Waypoint') -> tuple[int | None, float]:
    """Return the lane of a waypoint and the distance along it.

    Returns:
      Index of the lane and meters; None and zero for U-turns.
    """
    number = self.number(waypoint)
    if number is None:
      return None, 0.0
    lane, location = self.all[number], waypoint.transform.location
    gaps = (lane.points[:, 0] - location.x) ** 2
    gaps += (lane.points[:, 1] - location.y) ** 2
    return number, float(lane.arc[np.argmin(gaps)])

  def spread(self, distance: float) -> list[tuple[float, float, float]]:
    """Return evenly spaced poses outside of junctions.

    Returns:
      List of (x, y, heading in radians), at least one per lane.
    """
    poses = []
    for lane in self.all:
      if lane.junction is None:
        count = max(1, int(lane.length / distance))
        step = lane.length / count
        poses += [lane.at((index + 0.5) * step) for index in range(count)]
    return poses

  @property
  def total_length(self) -> float:
    """Total length in meters of all lanes outside of junctions."""
    return sum(x.length for x in self.all if x.junction is None)

  def _add(self, waypoint):
    key = _key(waypoint)
    if key in self._numbers:
      return
    lane = _sample(waypoint)
    if lane.junction is not None and abs(lane.turn) > _U_TURN:
      return
    self._numbers[key] = len(self.all)
    self.all.append(lane)

  def _find_centers(self):
    """Return the centers of junctions, float64 [junctions, 2] in meters."""
    points: dict[int, list[np.ndarray]] = {}
    for lane in self.all:
      if lane.junction is not None:
        points.setdefault(lane.junction, []).extend(lane.points[[0, -1], :2])
    centers = [np.mean(x, 0) for _, x in sorted(points.items())]
    return np.array(centers).reshape(-1, 2)


def _sample(begin):
  waypoints = [begin] + list(begin.next_until_lane_end(_SPACING))
  poses = []
  for waypoint in waypoints:
    transform = waypoint.transform
    location = transform.location
    poses.append((location.x, location.y, transform.rotation.yaw))
  points = np.array(poses, np.float64)
  points[:, 2] = np.unwrap(np.deg2rad(points[:, 2]))
  gaps = np.hypot(*np.diff(points[:, :2], axis=0).T)
  keep = np.concatenate([[True], gaps > 1e-3])
  points = points[keep]
  if len(points) == 1:
    heading = [math.cos(points[0, 2]), math.sin(points[0, 2]), 0.0]
    points = np.stack([points[0], points[0] + 0.1 * np.array(heading)])
  gaps = np.hypot(*np.diff(points[:, :2], axis=0).T)
  right = begin.get_right_lane()
  return Lane(
    points=points,
    arc=np.concatenate([[0.0], np.cumsum(gaps)]),
    width=begin.lane_width,
    junction=begin.get_junction().id if begin.is_junction else None,
    turn=float(np.rad2deg(points[-1, 2] - points[0, 2])),
    curb=right is None or str(right.lane_type) != 'Driving',
    marks=(_kind(begin.left_lane_marking), _kind(begin.right_lane_marking)),
  )


def _kind(marking):
  name = 'NONE' if marking is None else str(marking.type)
  if name in ('NONE', 'Other'):
    return None
  return 'broken' if 'Broken' in name else 'solid'


def _key(waypoint):
  return waypoint.road_id, waypoint.section_id, waypoint.lane_id
