"""Measurements of a step, the same for both backends."""

import math

import numpy as np

from planet.envs.carla import planner as planner_lib
from planet.envs.carla import rewards

# Half length and half width of the grid of samples.
FOOTPRINT = (2.25, 0.95)
_GRID = np.stack(
  np.meshgrid(
    np.linspace(-1, 1, 5) * FOOTPRINT[0],
    np.linspace(-1, 1, 3) * FOOTPRINT[1],
    indexing='ij',
  ),
  -1,
).reshape(-1, 2)
_OPPOSITE = -0.1
_REARM = 5


class Surroundings:
  """Where a vehicle is on a map.

  Args:
    road_map: `carla.Map`.
  """

  def __init__(self, road_map):
    from planet.envs.carla import roads

    carla = roads.import_carla()
    self._location = carla.Location
    self._driving = carla.LaneType.Driving
    self._map = road_map

  def footprint(self, x, y, yaw):
    """Shares of the vehicle's area off the road and on the wrong lane.

    Args:
      x, y: Centre in metres.
      yaw: Heading in radians.

    Returns:
      Tuple of both fractions of 15 samples. Lanes within junctions are never
      wrong ones.
    """
    cos, sin = math.cos(yaw), math.sin(yaw)
    offroad = otherlane = 0
    find, place = self._map.get_waypoint, self._location
    for ahead, right in _GRID.tolist():
      waypoint = find(
        place(x + cos * ahead - sin * right, y + sin * ahead + cos * right, 0),
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
    return offroad / len(_GRID), otherlane / len(_GRID)

  def nearest(self, x, y):
    """`carla.Waypoint` of the nearest driving lane, however far it is."""
    return self._map.get_waypoint(
      self._location(x, y, 0), project_to_road=True, lane_type=self._driving
    )

  def on_lane(self, x, y, velocity, yaw):
    """Speed along the nearest lane and metres to the right of its centre.

    Args:
      x, y: Position in metres.
      velocity: Metres per second, x and y.
      yaw: Heading of the vehicle in radians.
    """
    transform = self.nearest(x, y).transform
    heading = math.radians(transform.rotation.yaw)
    if math.cos(heading - yaw) < 0 and self.nearest(x, y).is_junction:
      # Lanes of several directions lie on each other here.
      heading += math.pi
    cos, sin = math.cos(heading), math.sin(heading)
    gap = x - transform.location.x, y - transform.location.y
    return velocity[0] * cos + velocity[1] * sin, gap[1] * cos - gap[0] * sin


class Damage:
  """Collisions of an episode, each contact counted once.

  A contact raises the total at every tick on a server; the next one counts
  after five steps without collision.
  """

  def __init__(self):
    self.totals = {'vehicle': 0.0, 'walker': 0.0, 'other': 0.0}
    self.collided = False
    self.new = False
    self._quiet = _REARM

  def update(self, collisions):
    """Take in the collisions of a step, tuples of kind and impulse."""
    before = self.total
    for kind, impulse in collisions:
      self.totals[kind] += impulse
    grown = self.total > before
    self.collided = bool(collisions)
    self.new = grown and self._quiet >= _REARM
    self._quiet = 0 if self.collided else self._quiet + 1

  @property
  def total(self):
    return sum(self.totals.values())


def wrap_degrees(angle):
  """Angle between -180 and 180 degrees."""
  return (angle + 180.0) % 360.0 - 180.0


def measure(surroundings, lanes, frame, last, damage, route):
  """Measurements that depend on the place.

  Args:
    surroundings: `Surroundings`.
    lanes: `Lanes`.
    frame: `Frame` of this step.
    last: Measurements of the previous step, or None.
    damage: `Damage`, up to date.
    route: `Route`, or None without planner.

  Returns:
    Dict of plain values.
  """
  (x, y, _), yaw = frame.location, math.radians(frame.yaw)
  cos, sin = math.cos(yaw), math.sin(yaw)
  offroad, otherlane = surroundings.footprint(x, y, yaw)
  heading = wrap_degrees(frame.yaw)
  turned = 0.0
  if last:
    turned = wrap_degrees(heading - last['current_heading_degree'])
  ahead = planner_lib.point_ahead(x, y, yaw)
  result = {
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
    'is_near_intersection': bool(planner_lib.is_near_junction(lanes, ahead)),
    'current_heading_degree': heading,
    'angular_speed_degree': turned,
    'control': tuple(float(v) for v in frame.control),
  }
  result.update(_navigate(surroundings, lanes, (x, y), ahead, last, route))
  return result


def _navigate(surroundings, lanes, position, ahead, last, route):
  command, distance, direct, heading = 'LANE_FOLLOW', -1.0, -1.0, 0.0
  if route:
    lane, arc = lanes.locate(surroundings.nearest(*position))
    distance = math.inf if lane is None else route.distance(lane, arc)
    if not math.isfinite(distance):
      # Off the lanes that lead there: as far as at the step before.
      distance = last['distance_to_goal'] if last else -1.0
    if lane is not None:
      command = route.command(lane, arc, position, ahead)
    direct = math.dist(position, route.goal)
    heading = math.degrees(
      math.atan2(route.goal[1] - position[1], route.goal[0] - position[0])
    )
  return {
    'distance_to_goal': distance,
    'distance_to_goal_euclidean': direct,
    'goal_heading_degree': heading,
    'next_command': command,
    'next_command_id': planner_lib.COMMANDS[command],
  }


def reward_terms(now, last, damage, lane, dt):
  """What rewards are computed from.

  Args:
    now, last: Measurements of this step and the one before.
    damage: `Damage`, up to date.
    lane: Speed along the lane and offset from it, or None if not needed.
    dt: Seconds per step.
  """
  _, steer, brake = now['control']
  kinds = ('collision_vehicles', 'collision_pedestrians', 'collision_other')
  lane_speed, lane_offset = lane or (0.0, 0.0)
  return rewards.Terms(
    speed=now['forward_speed'],
    last_speed=last['forward_speed'],
    distance=now['distance_to_goal'],
    last_distance=last['distance_to_goal'],
    damage=damage.total,
    last_damage=sum(last[x] for x in kinds),
    new_damage=damage.new,
    collided=damage.collided,
    offroad=now['intersection_offroad'],
    last_offroad=last['intersection_offroad'],
    otherlane=now['intersection_otherlane'],
    last_otherlane=last['intersection_otherlane'],
    arrived=now['next_command'] == 'REACH_GOAL',
    lane_speed=lane_speed,
    lane_offset=lane_offset,
    steer=steer,
    brake=brake,
    dt=dt,
  )
