"""Scripted drivers for comparisons and tests.

A policy is a function from the environment to an action, float32 [2].
"""

import math
from collections.abc import Callable

import numpy as np

from planet.envs.carla import env as env_lib
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


class PurePursuit:
  """Driver that steers to a point ahead on the lane at constant speed.

  At junctions, follows the branch closest to the current heading.
  Source: Coulter (1992), CMU-RI-TR-92-01.

  Args:
    speed: Target speed in m/s.
    ahead: Distance to the point in metres.
  """

  def __init__(self, speed: float = 8.0, ahead: float = 6.0):
    self._speed, self._ahead = speed, ahead

  def __call__(self, env: env_lib.CarlaEnv) -> np.ndarray:
    now = env.measurements
    yaw = math.radians(now['current_heading_degree'])
    waypoint = env.surroundings.nearest(env.location)
    choices = waypoint.next(self._ahead)
    points = [x.transform.location for x in choices or [waypoint]]
    angles = [
      math.remainder(math.atan2(p.y - now['y'], p.x - now['x']) - yaw, math.tau)
      for p in points
    ]
    angle = min(angles, key=abs)
    wheel = math.atan(2 * vehicle_lib.WHEELBASE * math.sin(angle) / self._ahead)
    drive = 0.5 * (self._speed - now['forward_speed']) + 0.008 * self._speed
    action = np.array([drive, wheel / vehicle_lib.MAX_STEER], np.float32)
    return np.clip(action, -1, 1)


def play(
  env: env_lib.CarlaEnv, policy: Policy, steps: int = 100
) -> dict[str, float]:
  """Play one episode of a fixed number of steps, ignoring `done`.

  Returns:
    Dict of `return`, `distance` in metres and number of `collisions`.
  """
  env.reset()
  total, distance, damages = 0.0, 0.0, 0
  for _ in range(steps):
    _, reward, _, info = env.step(policy(env))
    total += reward
    distance += info['forward_speed'] * env.dt
    damages += env.damage.new
  return {'return': total, 'distance': distance, 'collisions': damages}
