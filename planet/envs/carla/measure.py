"""Measurements of a step, for both backends."""

import math
import typing
from typing import Any

import numpy as np

from planet.envs.carla import backend, places, planner, rewards, roads
from planet.envs.carla import lanes as lanes_lib

if typing.TYPE_CHECKING:
  import carla

# Meters ahead and to the right of the center of the vehicle.
_SAMPLES = [
  (ahead, right)
  for ahead in (np.linspace(-1, 1, 5) * 2.25).tolist()
  for right in (np.linspace(-1, 1, 3) * 0.95).tolist()
]
_OPPOSITE = -0.1
_REARM = 5


class Surroundings:
  """Position of a vehicle relative to the roads of a map.

  Uses the height of locations to distinguish roads at bridges.

  Args:
    road_map: `carla.Map`.
    lanes: `Lanes` of the map.
  """

  def __init__(self, road_map: 'carla.Map', lanes: lanes_lib.Lanes):
    carla = roads.import_carla()
    self._location = carla.Location
    self._driving = carla.LaneType.Driving
    self._map, self._lanes = road_map, lanes

  def footprint(
    self, location: places.Location, yaw: float
  ) -> tuple[float, float]:
    """Return the fractions of the vehicle off the road and on wrong lanes.

    Args:
      location: Center of the vehicle.
      yaw: Heading in radians.

    Returns:
      Both as fractions of 15 samples. Lanes in junctions are never wrong.
    """
    x, y, z = location
    cos, sin = math.cos(yaw), math.sin(yaw)
    offroad = otherlane = 0
    find, place = self._map.get_waypoint, self._location
    for ahead, right in _SAMPLES:
      waypoint = find(
        place(x + cos * ahead - sin * right, y + sin * ahead + cos * right, z),
        project_to_road=False,
        lane_type=self._driving,
      )
      if waypoint is None:
        offroad += 1
        continue
      heading = math.radians(waypoint.transform.rotation.yaw)
      wrong = math.cos(heading - yaw) < _OPPOSITE
      if wrong and not waypoint.is_junction:
        otherlane += 1
    return offroad / len(_SAMPLES), otherlane / len(_SAMPLES)

  def nearest(self, location: places.Location) -> 'carla.Waypoint':
    """Return the `carla.Waypoint` of the nearest lane at any distance."""
    return self._map.get_waypoint(
      self._location(*location), project_to_road=True, lane_type=self._driving
    )

  def locate(self, location: places.Location) -> tuple[int | None, float]:
    """Return the nearest lane and the distance along it, see `Lanes.locate`."""
    return self._lanes.locate(self.nearest(location))

  def on_lane(
    self, location: places.Location, velocity: tuple[float, float], yaw: float
  ) -> tuple[float, float]:
    """Return the speed along the nearest lane and the offset from its center.

    Args:
      location: Center of the vehicle.
      velocity: Meters per second, x and y.
      yaw: Heading of the vehicle in radians.

    Returns:
      Meters per second along the lane, and meters to the right of its center.
    """
    waypoint = self.nearest(location)
    transform = waypoint.transform
    heading = math.radians(transform.rotation.yaw)
    if math.cos(heading - yaw) < 0 and waypoint.is_junction:
      # Lanes of several directions overlap in junctions.
      heading += math.pi
    cos, sin = math.cos(heading), math.sin(heading)
    center = transform.location
    gap = location[0] - center.x, location[1] - center.y
    return velocity[0] * cos + velocity[1] * sin, gap[1] * cos - gap[0] * sin

  def measure(
    self,
    frame: backend.Frame,
    last: dict[str, Any] | None,
    damage: 'Damage',
    route: planner.Route | None,
    place: tuple[int, float] | None,
  ) -> dict[str, Any]:
    """Return all measurements that depend on the location.

    Args:
      frame: `Frame` of this step.
      last: Measurements of the previous step, or None.
      damage: `Damage` including this step.
      route: `Route`, or None without planner.
      place: Lane of the car on the route and meters along it, see
        `planner.Route.track`; None if unknown.

    Returns:
      Dict of plain values.
    """
    (x, y, _), yaw = frame.location, math.radians(frame.yaw)
    cos, sin = math.cos(yaw), math.sin(yaw)
    offroad, otherlane = self.footprint(frame.location, yaw)
    heading = wrap_degrees(frame.yaw)
    turned = 0.0
    if last:
      turned = wrap_degrees(heading - last['current_heading_degree'])
    ahead = planner.point_ahead(x, y, yaw)
    return {
      'x': x,
      'y': y,
      'x_orient': cos,
      'y_orient': sin,
      'forward_speed': frame.velocity[0] * cos + frame.velocity[1] * sin,
      'collision_vehicles': damage.totals['vehicle'],
      'collision_pedestrians': damage.totals['walker'],
      'collision_other': damage.totals['other'],
      'collided': int(damage.collided),
      'intersection_offroad': offroad,
      'intersection_otherlane': otherlane,
      'is_near_intersection': planner.is_near_junction(self._lanes, ahead),
      'current_heading_degree': heading,
      'angular_speed_degree': turned,
      'control': tuple(float(v) for v in frame.control),
      **_navigate(frame.location, ahead, last, route, place),
    }


def _navigate(location, ahead, last, route, place):
  command, distance, direct, heading = 'LANE_FOLLOW', -1.0, -1.0, 0.0
  if route:
    distance = route.distance(*place) if place else math.inf
    if not math.isfinite(distance):
      # No lane leads there; keep the last distance.
      distance = last['distance_to_goal'] if last else -1.0
    if place:
      command = route.command(*place, location[:2], ahead)
    direct = math.dist(location[:2], route.goal)
    east, south = (a - b for a, b in zip(route.goal, location))
    heading = math.degrees(math.atan2(south, east))
  return {
    'distance_to_goal': distance,
    'distance_to_goal_euclidean': direct,
    'goal_heading_degree': heading,
    'next_command': command,
    'next_command_id': planner.COMMANDS[command],
  }


def begins(contacts: dict[int, int], obstacle: int, step: int) -> bool:
  """Return whether a contact is new, that is, not in the last five steps.

  Args:
    contacts: Dict from obstacle to its last contact, updated in place.
    obstacle: Id of the obstacle.
    step: Number of this step.
  """
  last = contacts.get(obstacle, -_REARM - 1)
  contacts[obstacle] = step
  return step - last > _REARM


class Damage:
  """Collisions of an episode, with each contact counted once.

  Attributes:
    totals: Impulses in N s by kind of obstacle.
    counts: Numbers of contacts by kind of obstacle.
    before: Impulse of all collisions before this step.
    collided: Whether a contact began in this step, see `begins`.
    new: Whether one began now and none in the last five steps.
  """

  def __init__(self):
    self.totals = {'vehicle': 0.0, 'walker': 0.0, 'other': 0.0}
    self.counts = dict.fromkeys(self.totals, 0)
    self.before = 0.0
    self.collided = False
    self.new = False
    self._contacts: dict[int, int] = {}
    self._step = 0
    self._quiet = _REARM

  def update(self, collisions: list[backend.Collision]) -> None:
    """Add the collisions of a step."""
    self.before = self.total
    self._step += 1
    self.collided = False
    for kind, impulse, obstacle in collisions:
      self.totals[kind] += impulse
      began = begins(self._contacts, obstacle, self._step)
      self.counts[kind] += began
      self.collided |= began
    self.new = self.collided and self._quiet >= _REARM
    self._quiet = 0 if self.collided else self._quiet + 1

  @property
  def total(self) -> float:
    """Impulse of all collisions in N s."""
    return sum(self.totals.values())


def wrap_degrees(angle: float) -> float:
  """Wrap an angle to the range from -180 to 180 degrees."""
  return (angle + 180.0) % 360.0 - 180.0


def reward_terms(
  now: dict[str, Any],
  last: dict[str, Any],
  damage: Damage,
  left_route: bool,
  lane: tuple[float, float],
  dt: float,
) -> rewards.Terms:
  """Collect the terms of rewards.

  Args:
    now: Measurements of this step.
    last: Measurements of the previous step.
    damage: `Damage` including this step.
    left_route: Whether the car left its route in this step.
    lane: Speed along the lane and offset from it; zeros if not needed.
    dt: Seconds per step.
  """
  _, steer, brake = now['control']
  return rewards.Terms(
    speed=now['forward_speed'],
    last_speed=last['forward_speed'],
    distance=now['distance_to_goal'],
    last_distance=last['distance_to_goal'],
    damage=damage.total,
    last_damage=damage.before,
    new_damage=damage.new,
    collided=damage.collided,
    offroad=now['intersection_offroad'],
    last_offroad=last['intersection_offroad'],
    otherlane=now['intersection_otherlane'],
    last_otherlane=last['intersection_otherlane'],
    left_route=left_route,
    # Only once, as an episode may go on at its goal.
    arrived=last['next_command'] != 'REACH_GOAL' == now['next_command'],
    lane_speed=lane[0],
    lane_offset=lane[1],
    steer=steer,
    brake=brake,
    dt=dt,
  )
