"""Driving rewards, with the names of the projects that define them.

Speeds are in m/s; some rewards of the fork convert them to km/h.
"""

import dataclasses
from collections.abc import Callable, Mapping


@dataclasses.dataclass(frozen=True)
class Terms:
  """Terms of rewards; `last` values belong to the previous step.

  Attributes:
    speed, last_speed: Speed along the heading, m/s.
    distance, last_distance: Distance to the goal in meters.
    damage, last_damage: Impulse of all collisions so far, N s.
    new_damage: Whether a contact began after five steps without any.
    collided: Whether a contact began in this step.
    offroad, last_offroad: Fraction of the footprint off the road.
    otherlane, last_otherlane: Fraction on lanes of the other direction.
    arrived: Whether the goal was reached.
    left_route: Whether the car left its route, which was planned anew.
    lane_speed: Speed along the lane, m/s.
    lane_offset: Distance from the center of the lane in meters.
    steer, brake: Applied control.
    dt: Seconds per step.
  """

  speed: float = 0.0
  last_speed: float = 0.0
  distance: float = 0.0
  last_distance: float = 0.0
  damage: float = 0.0
  last_damage: float = 0.0
  new_damage: bool = False
  collided: bool = False
  offroad: float = 0.0
  last_offroad: float = 0.0
  otherlane: float = 0.0
  last_otherlane: float = 0.0
  arrived: bool = False
  left_route: bool = False
  lane_speed: float = 0.0
  lane_offset: float = 0.0
  steer: float = 0.0
  brake: float = 0.0
  dt: float = 0.1


def corl2017(t: Terms) -> float:
  """Reward progress and acceleration; penalize new infractions (RLlib)."""
  reward = _clip(t.last_distance - t.distance, -10, 10)
  reward += 0.05 * (t.speed - t.last_speed)
  reward -= 2e-5 * (t.damage - t.last_damage)
  reward -= 2 * (t.offroad - t.last_offroad)
  return reward - 2 * (t.otherlane - t.last_otherlane)


def custom(t: Terms) -> float:
  """Reward progress, speed and reaching the goal (RLlib)."""
  reward = _clip(t.last_distance - t.distance, -10, 10)
  reward += lane_keep(t)
  return reward + 100 * t.arrived


def lane_keep(t: Terms) -> float:
  """Reward speed within the lane (RLlib)."""
  reward = _clip(t.speed, 0, 30) / 10 - 100 * t.new_damage
  return reward - t.offroad - t.otherlane


def custom1(t: Terms) -> float:
  """Reward speed up to 40 m/s; penalize leaving the road by speed (fork)."""
  reward = _clip(t.speed, 0, 30) / 10 - 100 * t.new_damage
  if t.speed > 40:
    reward -= (t.speed - 40) / 12
  if t.offroad > 1e-4:
    reward -= _clip(5 * t.speed, 0, 50)
  return reward - 4 * t.otherlane


def custom2(t: Terms) -> float:
  """Reward speed without limit (fork)."""
  reward = t.speed / 10 - 100 * t.new_damage
  return reward - 10 * t.offroad - 4 * t.otherlane


def custom3(t: Terms) -> float:
  """Reward speed, with a maximum at 30 km/h; the default of the fork."""
  k = 3.6 * t.speed
  reward = k / 10 if k < 30 else 12 - 0.3 * k
  return reward - 300 * t.new_damage - _leaving(t, 5, 2)


def custom4(t: Terms) -> float:
  """Reward speed, with a maximum at 40 km/h (fork)."""
  k = 3.6 * t.speed
  reward = k / 10 if k < 40 else 20 - 0.4 * k
  return reward - 300 * t.new_damage - _leaving(t, 6, 3)


def custom_depth(t: Terms) -> float:
  """Reward speed up to 30 km/h; do not penalize other lanes (fork)."""
  reward = _clip(3.6 * t.speed, 0, 30) / 10
  return reward - 300 * t.new_damage - _leaving(t, 5, 0)


def highway(t: Terms) -> float:
  """Reward progress along the lane (DBC)."""
  reward = t.lane_speed * t.dt / (1 + abs(t.lane_offset))
  return reward - float(t.collided) - 0.1 * t.brake - 0.1 * abs(t.steer)


def speed_tracking(t: Terms) -> float:
  """Reward speed along the lane up to 8 m/s (gym-carla)."""
  reward = t.lane_speed - 200 * t.collided - 10 * (t.lane_speed > 8)
  reward -= abs(t.lane_offset) > 2
  reward -= 5 * t.steer**2 + 0.2 * abs(t.steer) * t.lane_speed**2
  return reward - 0.1


_RLLIB = corl2017, custom, lane_keep
_FORK = custom1, custom2, custom3, custom4, custom_depth
REWARDS = {x.__name__: x for x in (*_RLLIB, *_FORK, highway, speed_tracking)}
# What weights apply to. Speeds `v` are in m/s, `k` in km/h.
TERMS: dict[str, Callable[[Terms], float]] = {
  'speed': lambda t: t.speed,
  'speed_to_30': lambda t: _clip(t.speed, 0, 30),
  'speed_above_40': lambda t: max(t.speed - 40, 0),
  'kmh_to_30': lambda t: _clip(3.6 * t.speed, 0, 30),
  'kmh_peak_30': lambda t: min(3.6 * t.speed, 120 - 3 * 3.6 * t.speed),
  'kmh_peak_40': lambda t: min(3.6 * t.speed, 200 - 4 * 3.6 * t.speed),
  'acceleration': lambda t: t.speed - t.last_speed,
  'progress': lambda t: _clip(t.last_distance - t.distance, -10, 10),
  'arrived': lambda t: t.arrived,
  'left_route': lambda t: t.left_route,
  'damage': lambda t: t.damage - t.last_damage,
  'new_damage': lambda t: t.new_damage,
  'collided': lambda t: t.collided,
  'offroad': lambda t: t.offroad,
  'offroad_change': lambda t: t.offroad - t.last_offroad,
  'offroad_by_speed': lambda t: (t.speed + 1) * t.offroad,
  'speed_offroad': lambda t: _clip(5 * t.speed, 0, 50) * (t.offroad > 1e-4),
  'otherlane': lambda t: t.otherlane,
  'otherlane_change': lambda t: t.otherlane - t.last_otherlane,
  'otherlane_by_speed': lambda t: (t.speed + 1) * t.otherlane,
  'lane_speed': lambda t: t.lane_speed,
  'lane_speed_above_8': lambda t: t.lane_speed > 8,
  'lane_progress': lambda t: t.lane_speed * t.dt / (1 + abs(t.lane_offset)),
  'lane_far': lambda t: abs(t.lane_offset) > 2,
  'steer': lambda t: abs(t.steer),
  'steer_squared': lambda t: t.steer**2,
  'steer_by_speed': lambda t: abs(t.steer) * t.lane_speed**2,
  'brake': lambda t: t.brake,
  'step': lambda unused_t: 1.0,
}
_LANE_KEEP = dict(speed_to_30=0.1, new_damage=-100, offroad=-1, otherlane=-1)
# The rewards as weighted sums, equal up to rounding.
WEIGHTS: dict[str, dict[str, float]] = {
  'corl2017': dict(
    progress=1,
    acceleration=0.05,
    damage=-2e-5,
    offroad_change=-2,
    otherlane_change=-2,
  ),
  'custom': dict(**_LANE_KEEP, progress=1, arrived=100),
  'lane_keep': _LANE_KEEP,
  'custom1': dict(
    speed_to_30=0.1,
    speed_above_40=-1 / 12,
    new_damage=-100,
    speed_offroad=-1,
    otherlane=-4,
  ),
  'custom2': dict(speed=0.1, new_damage=-100, offroad=-10, otherlane=-4),
  'custom3': dict(
    kmh_peak_30=0.1,
    new_damage=-300,
    offroad_by_speed=-5,
    otherlane_by_speed=-2,
  ),
  'custom4': dict(
    kmh_peak_40=0.1,
    new_damage=-300,
    offroad_by_speed=-6,
    otherlane_by_speed=-3,
  ),
  'custom_depth': dict(kmh_to_30=0.1, new_damage=-300, offroad_by_speed=-5),
  'highway': dict(lane_progress=1, collided=-1, brake=-0.1, steer=-0.1),
  'speed_tracking': dict(
    lane_speed=1,
    collided=-200,
    lane_speed_above_8=-10,
    lane_far=-1,
    steer_squared=-5,
    steer_by_speed=-0.2,
    step=-0.1,
  ),
}
# Terms that need a planned route.
_PLANNED = {'progress', 'arrived', 'left_route'}


def define(
  name: str, changes: Mapping[str, float] | None
) -> Callable[[Terms], float]:
  """Return a reward function.

  Args:
    name: Name of a reward.
    changes: Weights by terms in place of those of this reward; None for none.
  """
  if not changes:
    return REWARDS[name]
  weights = {**WEIGHTS[name], **changes}
  parts = [(TERMS[x], y) for x, y in weights.items() if y]
  return lambda t: sum(weight * term(t) for term, weight in parts)


def _used(name, changes):
  weights = {**WEIGHTS[name], **(changes or {})}
  return {x for x, y in weights.items() if y}


def is_planned(name: str, changes: Mapping[str, float] | None) -> bool:
  """Return whether a reward needs a planned route, see `define`."""
  return bool(_used(name, changes) & _PLANNED)


def is_lane_based(name: str, changes: Mapping[str, float] | None) -> bool:
  """Return whether a reward needs the position on the lane."""
  used = _used(name, changes)
  return 'steer_by_speed' in used or any(x[:5] == 'lane_' for x in used)


def _leaving(t, offroad, otherlane):
  return (t.speed + 1) * (offroad * t.offroad + otherlane * t.otherlane)


def _clip(value, low, high):
  return max(low, min(high, value))
