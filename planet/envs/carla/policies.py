"""Scripted drivers for comparisons and tests.

A policy is a function from the environment to an action, float32 [2].
"""

import math
from collections.abc import Callable

import numpy as np

from planet.envs.carla import env as env_lib
from planet.envs.carla import measure
from planet.envs.carla.offline import vehicle as vehicle_lib

Policy = Callable[[env_lib.CarlaEnv], np.ndarray]


def straight_on(throttle: float) -> Policy:
  """Return a driver that goes straight with constant throttle."""
  return lambda unused_env: np.array([throttle, 0], np.float32)


def uniform(
  seed: int, throttle: tuple[float, float] = (-1, 1), steer: float = 1
) -> Policy:
  """Return a driver with uniformly random actions.

  Args:
    seed: Seed of the driver.
    throttle: Range of the throttle.
    steer: Maximum absolute steering.
  """
  random = np.random.default_rng(seed)
  low, high = (throttle[0], -steer), (throttle[1], steer)
  return lambda unused_env: random.uniform(low, high).astype(np.float32)


# Meters to the point that a driver steers to; how far it looks at its way, and
# between these places.
_AHEAD, _SIGHT, _SPACING = 6.0, 30.0, 2.0
# Limits in m/s^2 for curves, and for slowing down in time.
_LATERAL, _BRAKING = 2.5, 2.0
# Meters beside the way that others need, and to keep from them; seconds to keep
# from them, and in which their movement is foreseen.
_BESIDE, _GAP, _HEADWAY, _FORESIGHT = 2.2, 7.0, 1.2, 1.0


class PurePursuit:
  """Driver that steers to a point ahead on its way.

  Follows the route, if the environment plans one; otherwise its lane, and at
  junctions the branch closest to the current heading. Slows down before curves
  and for other vehicles on its way, but not for pedestrians, and does not give
  way in junctions. Source: Coulter (1992), CMU-RI-TR-92-01.

  Args:
    speed: Target speed in m/s on straight roads.
  """

  def __init__(self, speed: float = 8.0):
    self._speed = speed
    self._others: np.ndarray | None = None

  def __call__(self, env: env_lib.CarlaEnv) -> np.ndarray:
    now = env.measurements
    distances = np.arange(0.0, _SIGHT + 0.1, _SPACING)
    way = env.find_points([_AHEAD, *distances])
    target, *way = way if way else self._look_for_way(env, distances)
    angle = _angle_to(now, target)
    wheel = math.atan(2 * vehicle_lib.WHEELBASE * math.sin(angle) / _AHEAD)
    speed = min(
      self._speed,
      _limit_for_curves(np.array(way)),
      self._limit_for_others(np.array(way), env),
    )
    drive = 0.5 * (speed - now['forward_speed']) + 0.008 * speed
    action = np.array([drive, wheel / vehicle_lib.MAX_STEER], np.float32)
    return np.clip(action, -1, 1)

  def _look_for_way(self, env, distances):
    """Return the point to steer to and the way there and beyond."""
    now = env.measurements
    waypoint = env.surroundings.nearest(env.location)
    choices = [_place(x) for x in waypoint.next(_AHEAD)]
    target = min(
      choices or [_place(waypoint)], key=lambda x: abs(_angle_to(now, x))
    )
    way = [_place(waypoint)]
    for _ in distances[1:]:
      choices = waypoint.next(_SPACING)
      if not choices:
        break
      if len(choices) > 1 and math.dist(way[0], target) >= len(way) * _SPACING:
        waypoint = min(choices, key=lambda x: math.dist(_place(x), target))
      else:
        old = waypoint.transform.rotation.yaw
        waypoint = min(
          choices,
          key=lambda x: abs(
            measure.wrap_degrees(x.transform.rotation.yaw - old)
          ),
        )
      way.append(_place(waypoint))
    return [target, *way]

  def _limit_for_others(self, way, env):
    """Return the speed that keeps a distance from vehicles on the way."""
    others = np.array(env.backend.others(), float).reshape(-1, 2)
    last, self._others = self._others, others
    if not len(others):
      return math.inf
    step = env.measurements['step']
    later = others
    if last is not None and last.shape == others.shape and step > 1:
      moved = others - last
      # Vehicles do not jump, except into the next episode.
      moved[np.hypot(*moved.T) > 5] = 0
      later = others + moved * (_FORESIGHT / env.dt)
    places = np.concatenate([others, later])
    gaps = np.hypot(*(way[:, None] - places).transpose(2, 0, 1))
    blocked = np.flatnonzero((gaps < _BESIDE).any(1))
    if not len(blocked):
      return math.inf
    return max(0.0, (blocked[0] * _SPACING - _GAP) / _HEADWAY)


def _limit_for_curves(way):
  """Return the speed from which the car slows down in time for its way."""
  steps = np.diff(way, axis=0)
  lengths = np.hypot(*steps.T)
  steps = steps[lengths > 0.1]
  if len(steps) < 2:
    return math.inf
  headings = np.unwrap(np.arctan2(steps[:, 1], steps[:, 0]))
  bend = np.abs(np.diff(headings)) / _SPACING
  speeds = np.sqrt(_LATERAL / np.maximum(bend, 1e-6))
  distances = _SPACING * np.arange(len(speeds))
  return float(np.sqrt(speeds**2 + 2 * _BRAKING * distances).min())


def _place(waypoint):
  location = waypoint.transform.location
  return location.x, location.y


def _angle_to(now, point):
  """Return the angle to a point in radians, positive to the right."""
  yaw = math.radians(now['current_heading_degree'])
  x, y = point[0] - now['x'], point[1] - now['y']
  return math.remainder(math.atan2(y, x) - yaw, math.tau)


def play(
  env: env_lib.CarlaEnv, policy: Policy, steps: int = 100
) -> dict[str, float]:
  """Play one episode of a fixed number of steps, ignoring `done`.

  Returns:
    Dict of `return`, `distance` in meters and number of `collisions`.
  """
  env.reset()
  total, distance, damages = 0.0, 0.0, 0
  for _ in range(steps):
    _, reward, _, info = env.step(policy(env))
    total += reward
    distance += info['forward_speed'] * env.dt
    damages += env.damage.new
  return {'return': total, 'distance': distance, 'collisions': damages}
