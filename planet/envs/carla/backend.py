"""Interface of a world, be it simulated here or by a server."""

import dataclasses
import functools
from typing import Any, NamedTuple, Protocol

import numpy as np

from agents.run import errors
from planet.envs.carla import lanes as lanes_lib
from planet.envs.carla import places


class BackendError(errors.EnvError):
  """The world failed in the middle of an episode, such as a lost server."""


class Control(NamedTuple):
  """What the driver does.

  Attributes:
    throttle: Pedal from 0 to 1.
    steer: From -1, left, to 1, right.
    brake: Pedal from 0 to 1.
  """

  throttle: float = 0.0
  steer: float = 0.0
  brake: float = 0.0


class Episode(NamedTuple):
  """What the world is asked for when an episode begins.

  Attributes:
    start: Preferred pose of the ego vehicle.
    weather: Index into `scenarios.WEATHERS`.
    num_vehicles: Wanted number of other vehicles.
    num_pedestrians: Wanted number of pedestrians.
    seed: Of everything that is random in the episode.
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
    impulse: N s.
    obstacle: Number of what it touches.
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
    location: x, y and z of the ego vehicle in metres.
    yaw: Its heading in degrees, positive to the right.
    velocity: Metres per second, x, y and z.
    collisions: Those of this tick, see `measure.Damage`.
    control: What was applied.
  """

  number: int
  image: np.ndarray | None
  location: places.Location
  yaw: float
  velocity: tuple[float, float, float]
  collisions: list[Collision] = dataclasses.field(default_factory=list)
  control: Control = Control()


class Backend(Protocol):
  """World with one ego vehicle that moves when it is told to.

  Attributes:
    name: `server` or `offline`.
    map: `carla.Map`, once open.
    seconds_to_close: Time that `close` may take, beyond a few seconds.
  """

  name: str | None = None
  map: Any = None
  seconds_to_close: float = 0.0

  def open(self, config: dict[str, Any]) -> None:
    """Load the world.

    Args:
      config: Dict as of `env_config.complete`.

    Raises:
      UsageError: If the world cannot be had; says what to do.
    """

  def spawn_points(self) -> list[places.Pose]:
    """Return poses on lanes where an episode may begin."""

  def reset(self, episode: Episode) -> Frame:
    """Begin an episode; return its first frame.

    Raises:
      BackendError: If the world fails.
    """

  def tick(self, control: Control) -> Frame:
    """Apply a control and move time on by one step; return the frame then.

    Raises:
      BackendError: If the world fails.
    """

  def others(self) -> list[places.Point]:
    """Return the places of the other vehicles."""

  def close(self) -> None:
    """Leave nothing behind; safe to call twice."""
    return

  @functools.cached_property
  def lanes(self) -> lanes_lib.Lanes:
    """Lanes of the map."""
    return lanes_lib.Lanes(self.map)
