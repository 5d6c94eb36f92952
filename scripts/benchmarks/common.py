"""What a benchmark is, and how a variant is measured."""

import dataclasses
import resource
import time
from collections.abc import Callable, Sequence
from typing import Any


@dataclasses.dataclass(frozen=True)
class Benchmark:
  """Something to measure.

  Attributes:
    name: Name on the command line.
    meaning: One line for the user.
    unit: What is counted, such as `updates`.
    run: Function from the variant, `ours`, `baseline` or `rank`, and the parsed
      arguments to what `measure` returns. Called in a process of its own.
    flags: Name, default and meaning of further flags.
    environ: Function from the variant to environment variables of its process,
      for what counts before TensorFlow is imported.
    baseline: Whether there is a baseline.
    ranks: Whether ours is `rank`, in as many processes of MPI as a flag says.
  """

  name: str
  meaning: str
  unit: str
  run: Callable[[str, Any], dict[str, Any]]
  flags: Sequence[tuple[str, Any, str]]
  environ: Callable[[str], dict[str, str]] = lambda variant: {}
  baseline: bool = True
  ranks: bool = False


class Clock:
  """Adds up the CPU and wall seconds of `with` blocks.

  Attributes:
    cpu_s: CPU seconds of this process and of its ended children.
    wall_s: Seconds that passed.
  """

  def __init__(self) -> None:
    self.cpu_s = self.wall_s = 0.0

  def __enter__(self) -> 'Clock':
    self.cpu_s -= _cpu_seconds()
    self.wall_s -= time.time()
    return self

  def __exit__(self, *unused: Any) -> None:
    self.cpu_s += _cpu_seconds()
    self.wall_s += time.time()

  def report(self, units: int) -> dict[str, Any]:
    """Return plain numbers, with the peak memory of the process."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    times = {'cpu_s': self.cpu_s, 'wall_s': self.wall_s}
    return {'units': units, **times, 'peak_bytes': peak}


def measure(
  function: Callable[[], Any], calls: int, units_per_call: int = 1
) -> dict[str, Any]:
  """Call a function once to warm up, and measure further calls."""
  function()
  with Clock() as clock:
    for _ in range(calls):
      function()
  return clock.report(calls * units_per_call)


def _cpu_seconds():
  usages = map(
    resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
  )
  return sum(x.ru_utime + x.ru_stime for x in usages)
