"""Declare and measure benchmarks."""

import dataclasses
import inspect
import resource
import time
from collections.abc import Callable, Mapping
from typing import Any

# Output of a child process: seconds, number of units and peak memory.
Result = dict[str, float]
BENCHMARKS: 'dict[str, Benchmark]' = {}


@dataclasses.dataclass(frozen=True)
class Benchmark:
  """Benchmark of a function.

  Attributes:
    run: Function from the variant, and flags with defaults, to the result of
      `Clock.report`, called in a separate process. Its docstring is the help.
    unit: Name of the counted units, such as `updates`.
    ours: Variant to measure: `ours`, or `rank` for several MPI processes.
    baseline: Variant to compare with, empty for none.
    environ: Environment variables of the processes.
  """

  run: Callable[..., Result]
  unit: str
  ours: str = 'ours'
  baseline: str = 'baseline'
  environ: Mapping[str, str] = dataclasses.field(default_factory=dict)

  @property
  def meaning(self) -> str:
    """First line of the docstring, for the help."""
    return str(self.run.__doc__).partition('\n')[0]

  @property
  def flags(self) -> dict[str, Any]:
    """Dict from names of flags to defaults."""
    _, *flags = inspect.signature(self.run).parameters.values()
    return {x.name: x.default for x in flags}


def benchmark(unit: str, **kwargs: Any) -> Callable[..., Callable[..., Result]]:
  """Register a function as a benchmark of its name, see `Benchmark`."""

  def add(run: Callable[..., Result]) -> Callable[..., Result]:
    name = run.__name__.replace('_', '-')
    BENCHMARKS[name] = Benchmark(run, unit, **kwargs)
    return run

  return add


class Clock:
  """Accumulate the seconds between `start` and `stop`."""

  def __init__(self) -> None:
    self._cpu = self._wall = 0.0

  def start(self) -> None:
    """Start to measure."""
    self._cpu -= time.process_time()
    self._wall -= time.perf_counter()

  def stop(self) -> None:
    """Add the time since `start`."""
    self._cpu += time.process_time()
    self._wall += time.perf_counter()

  def report(self, units: int) -> Result:
    """Return seconds, units and the peak memory of the process."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    times = {'cpu_s': self._cpu, 'wall_s': self._wall}
    return {'units': units, **times, 'peak_bytes': peak}


def measure(
  function: Callable[[], Any], calls: int, units_per_call: int = 1
) -> Result:
  """Call a function once to warm up, then measure more calls."""
  function()
  clock = Clock()
  clock.start()
  for _ in range(calls):
    function()
  clock.stop()
  return clock.report(calls * units_per_call)
