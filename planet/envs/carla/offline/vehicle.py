"""Car dynamics: a kinematic bicycle model with pedal and steering lag."""

import math

# Distances in meters between the axles and from rear axle to center.
WHEELBASE, REAR = 2.85, 1.425
# Half length, half width, half height of the body.
EXTENT = (2.45, 1.0, 0.75)
MASS = 1500.0
# Maximum angle of the front wheels.
MAX_STEER = math.radians(35)
_SUBSTEP = 0.02
_STEER_LAG, _THROTTLE_LAG = 0.15, 0.2
_DRIVE, _TOP_SPEED, _BRAKE = 4.0, 30.0, 8.0
_ROLLING, _COASTING, _DRAG = 0.15, 0.3, 0.0006
_LATERAL = 8.0


class Bicycle:
  """Kinematic bicycle model of a car, without reverse gear.

  Args:
    x: x coordinate of the center in meters.
    y: y coordinate of the center in meters.
    yaw: Heading in radians, positive to the right.
  """

  def __init__(self, x: float, y: float, yaw: float):
    self.x, self.y, self.yaw = x, y, yaw
    self.speed = 0.0
    self._slip = 0.0
    self._steer = 0.0
    self._throttle = 0.0

  @property
  def velocity(self) -> tuple[float, float]:
    """Velocity in meters per second, x and y."""
    course = self.yaw + self._slip
    return self.speed * math.cos(course), self.speed * math.sin(course)

  def step(
    self, throttle: float, steer: float, brake: float, dt: float
  ) -> None:
    """Advance in time.

    Args:
      throttle: Pedal from 0 to 1.
      steer: From -1, left, to 1, right.
      brake: Pedal from 0 to 1.
      dt: Duration in seconds.
    """
    count = max(1, math.ceil(dt / _SUBSTEP - 1e-9))
    for _ in range(count):
      self._substep(throttle, steer, brake, dt / count)

  def _substep(self, throttle, steer, brake, dt):
    self._throttle += (throttle - self._throttle) * min(1, dt / _THROTTLE_LAG)
    self._steer += (steer - self._steer) * min(1, dt / _STEER_LAG)
    speed = self.speed
    drive = _DRIVE * self._throttle * max(0.0, 1 - speed / _TOP_SPEED)
    resistance = _BRAKE * brake + _ROLLING + _DRAG * speed**2
    if throttle <= 0:
      resistance += _COASTING
    speed = self.speed = max(0.0, speed + (drive - resistance) * dt)
    slip = math.atan(REAR / WHEELBASE * math.tan(self._steer * MAX_STEER))
    rate = speed / REAR * math.sin(slip)
    limit = _LATERAL / max(speed, 1e-3)
    if abs(rate) > limit:
      # Limit the lateral acceleration to the grip of the tyres.
      rate = math.copysign(limit, rate)
      slip = math.asin(rate * REAR / speed)
    self._slip = slip
    self.x += speed * math.cos(self.yaw + slip) * dt
    self.y += speed * math.sin(self.yaw + slip) * dt
    self.yaw += rate * dt
