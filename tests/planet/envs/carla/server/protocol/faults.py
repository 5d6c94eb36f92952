"""What can go wrong with a server, as switches of tests."""

import dataclasses
import os
import signal
import time

# Answered by the thread of the connection, as with CARLA, however busy the
# simulation is.
FAST = ('version', 'get_available_maps')


@dataclasses.dataclass
class Faults:
  """Switches; at first, nothing is wrong.

  Attributes:
    version: What the server says it is.
    loading: Seconds from the start in which only `FAST` ones are answered.
    load_seconds: Seconds that another town takes; nothing is answered then.
    delay: Seconds that a call takes, by its name; all other calls wait.
    silent: Names of calls that are never carried out; `*` for all that are not
      fast.
    die_at: Number of calls by name, of which the last one kills the server.
    blocked: Number of vehicles and walkers whose places are taken.
    missing: Blueprints that are missing, as `name` or `name:attribute`.
    subscribe_delay: Seconds until a new listener of a stream gets anything.
    lost_images: Number of images that are not sent.
    image_delay: Seconds between a tick and its images.
    collision_delay: Seconds between a tick and its collision events.
    free: Whether the server runs by itself, whatever its settings say.
    foreign_ticks: Number of ticks of another client after each of ours.
    other_dt: Seconds per tick, whatever the settings say; 0 for those.
    no_ground: Whether vehicles fall.
    nan: Whether vehicles are nowhere.
    image_rows: Number of rows by which images are too short; the size of images
      says so as well if `honest_rows`.
    neutral: Number of ticks in which a new vehicle ignores the throttle, unless
      a gear was engaged by hand.
  """

  version: str = '0.9.16'
  loading: float = 0.0
  load_seconds: float = 0.1
  delay: dict[str, float] = dataclasses.field(default_factory=dict)
  silent: list[str] = dataclasses.field(default_factory=list)
  die_at: dict[str, int] = dataclasses.field(default_factory=dict)
  blocked: int = 0
  missing: list[str] = dataclasses.field(default_factory=list)
  subscribe_delay: float = 0.0
  lost_images: int = 0
  image_delay: float = 0.0
  collision_delay: float = 0.0
  free: bool = False
  foreign_ticks: int = 0
  other_dt: float = 0.0
  no_ground: bool = False
  nan: bool = False
  image_rows: int = 0
  honest_rows: bool = False
  neutral: int = 0

  def set(self, values):
    """Change switches.

    Args:
      values: Dict of some of the attributes.
    """
    for name, value in values.items():
      assert hasattr(self, name), name
      setattr(self, name, value)

  def meet(self, method):
    """Die or wait before a call; returns whether to carry it out."""
    if method in self.die_at:
      self.die_at[method] -= 1
      if self.die_at[method] <= 0:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(self.delay.get(method, 0))
    every = '*' in self.silent and method not in FAST
    return method not in self.silent and not every

  def take(self, name):
    """Whether one of a number of faults is due now; counts down."""
    left = getattr(self, name)
    setattr(self, name, max(left - 1, 0))
    return left > 0
