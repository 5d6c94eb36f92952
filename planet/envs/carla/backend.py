"""What an environment needs of a world, be it simulated here or by a server."""

import dataclasses
import functools

import numpy as np

from planet.envs.carla import lanes as lanes_lib


class BackendTrouble(RuntimeError):
  """The world failed in the middle of an episode, such as a lost server."""


@dataclasses.dataclass
class Frame:
  """State of the world after a tick, as plain values.

  Attributes:
    frame: Number of the tick.
    time: Seconds of simulated time.
    image: uint8 [height, width, 3], or None.
    location: x, y and z of the ego vehicle in metres.
    yaw: Its heading in degrees, positive to the right.
    velocity: Metres per second, x, y and z.
    yaw_rate: Degrees per second.
    collisions: Tuples of `vehicle`, `walker` or `other`, and impulse in N s.
    control: Throttle, steer and brake that were applied.
  """

  frame: int
  time: float
  image: np.ndarray | None
  location: tuple
  yaw: float
  velocity: tuple
  yaw_rate: float
  collisions: list = dataclasses.field(default_factory=list)
  control: tuple = (0.0, 0.0, 0.0)


class Backend:
  """World with one ego vehicle that moves when it is told to.

  Attributes:
    name: `server` or `offline`.
    map: `carla.Map`, once open.
    extent: Half length, half width and half height of the ego vehicle.
  """

  name = None
  map = None
  extent = (2.25, 0.95, 0.75)

  def open(self, config):
    """Load the world.

    Args:
      config: Dict as of `env_config.complete`.

    Raises:
      UsageError: If the world cannot be had; says what to do.
    """
    raise NotImplementedError

  def spawn_points(self):
    """List of poses (x, y, z, yaw in degrees) on lanes."""
    raise NotImplementedError

  def reset(self, start, weather, num_vehicles, num_pedestrians, seed):
    """Begin an episode.

    Args:
      start: Preferred pose of the ego vehicle, (x, y, z, yaw).
      weather: Index into `scenarios.WEATHERS`.
      num_vehicles, num_pedestrians: Wanted traffic.
      seed: Of everything that is random in the episode.

    Returns:
      First frame.

    Raises:
      BackendTrouble: If the world fails.
    """
    raise NotImplementedError

  def tick(self, control):
    """Apply a control and move time on by one step.

    Args:
      control: Object with `throttle`, `steer` and `brake`, such as
        `carla.VehicleControl`.

    Returns:
      Frame after the step.

    Raises:
      BackendTrouble: If the world fails.
    """
    raise NotImplementedError

  def others(self):
    """List of the places (x, y) of other vehicles."""
    raise NotImplementedError

  def close(self):
    """Leave nothing behind; safe to call twice."""

  @functools.cached_property
  def lanes(self):
    """`Lanes` of the map."""
    return lanes_lib.Lanes(self.map)
