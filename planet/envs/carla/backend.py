"""Interface of driving worlds, simulated offline or by a server."""

import dataclasses
import functools
from typing import Any, NamedTuple, Protocol

import numpy as np

from agents.run import errors
from planet.envs.carla import lanes as lanes_lib
from planet.envs.carla import places


class BackendError(errors.EnvError):
  """The world failed during an episode; for example, a server was lost."""


class Unusable(errors.UsageError):
  """The world lacks something, so that another attempt would not help."""


class Control(NamedTuple):
  """Controls of the driver.

  Attributes:
    throttle: Pedal from 0 to 1.
    steer: From -1, left, to 1, right.
    brake: Pedal from 0 to 1.
  """

  throttle: float = 0.0
  steer: float = 0.0
  brake: float = 0.0


class Episode(NamedTuple):
  """Request for a new episode.

  Attributes:
    start: Preferred pose of the ego vehicle.
    weather: Index into `scenarios.WEATHERS`.
    num_vehicles: Requested number of other vehicles.
    num_pedestrians: Requested number of pedestrians.
    seed: Seed of the episode.
  """

  start: places.Pose
  weather: int
  num_vehicles: int
  num_pedestrians: int
  seed: int


class Collision(NamedTuple):
  """Impulse of a tick on the ego vehicle.

  Attributes:
    kind: `vehicle`, `walker` or `other`.
    impulse: Magnitude in N s.
    obstacle: Id of the obstacle.
  """

  kind: str
  impulse: float
  obstacle: int = 0


@dataclasses.dataclass
class Frame:
  """State of the world after a tick, as plain values.

  Attributes:
    number: Number of the tick.
    image: uint8 [height, width, channels], see `sensors.SENSORS`; or None.
    location: x, y and z of the ego vehicle in meters.
    yaw: Heading of the ego vehicle in degrees, positive to the right.
    velocity: Meters per second, x, y and z.
    collisions: Collisions during this tick, see `measure.Damage`.
    control: Applied control.
  """

  number: int
  image: np.ndarray | None
  location: places.Location
  yaw: float
  velocity: tuple[float, float, float]
  collisions: list[Collision] = dataclasses.field(default_factory=list)
  control: Control = Control()


class Backend(Protocol):
  """World with one ego vehicle that advances one step per tick.

  Attributes:
    name: `server` or `offline`.
    map: `carla.Map`, after `open`.
    seconds_to_close: Additional time that `close` may take.
  """

  name: str | None = None
  map: Any = None
  seconds_to_close: float = 0.0

  def open(self, config: dict[str, Any]) -> None:
    """Load the world.

    Args:
      config: Complete settings, see `env_config.complete`.

    Raises:
      UsageError: If the world is not available.
    """

  def spawn_points(self) -> list[places.Pose]:
    """Return poses on lanes where an episode may start."""

  def reset(self, episode: Episode) -> Frame:
    """Start an episode and return its first frame.

    Raises:
      BackendError: If the world fails.
    """

  def tick(self, control: Control) -> Frame:
    """Apply a control, advance by one step and return the frame.

    Raises:
      BackendError: If the world fails.
    """

  def others(self) -> list[places.Point]:
    """Return the positions of the other vehicles."""

  def close(self) -> None:
    """Release all resources; safe to call twice."""
    return

  @functools.cached_property
  def lanes(self) -> lanes_lib.Lanes:
    """Lanes of the map."""
    return lanes_lib.Lanes(self.map)
