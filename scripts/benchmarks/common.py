"""What a subject of the benchmark is, and how one variant is measured."""

import dataclasses
import resource
import time
from collections.abc import Callable
from typing import Any


@dataclasses.dataclass(frozen=True)
class Subject:
  """Something to measure, in our formulation and in a baseline.

  Attributes:
    name: Name on the command line.
    meaning: One line for the user.
    unit: What `run` counts, such as `updates`.
    run: Function from the variant, `ours` or `baseline`, and the parsed
      arguments to a `Measurement`. Called in a process of its own.
    add_arguments: Adds the sizes as flags to an argparse parser.
    environ: Function from the variant and the arguments to environment
      variables of the process, for what counts before TensorFlow is imported.
    bound: Function from the arguments and the measured rate of matrix
      products in FLOP per CPU second to the CPU seconds per unit that cannot
      be undercut, or None if unknown.
  """

  name: str
  meaning: str
  unit: str
  run: Callable
  add_arguments: Callable = lambda parser: None
  environ: Callable = lambda variant, args: {}
  bound: Callable | None = None


class Measurement:
  """Counts CPU and wall seconds between entering and leaving.

  Attributes:
    units: Number of units of work, set by the subject.
    cpu_s: CPU seconds of this process and its ended children.
    wall_s: Seconds that passed.
    extra: Dict of further numbers to print.
  """

  def __init__(self, units: int = 0):
    self.units = units
    self.cpu_s = 0.0
    self.wall_s = 0.0
    self.extra: dict[str, float] = {}

  def __enter__(self):
    self._cpu, self._wall = cpu_seconds(), time.time()
    return self

  def __exit__(self, *unused):
    self.cpu_s = cpu_seconds() - self._cpu
    self.wall_s = time.time() - self._wall

  def as_dict(self) -> dict[str, Any]:
    """Plain numbers, with the peak memory of the process."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
      'units': self.units,
      'cpu_s': self.cpu_s,
      'wall_s': self.wall_s,
      'peak_bytes': peak,
      'extra': self.extra,
    }


def cpu_seconds() -> float:
  """CPU seconds of this process and of its children that have ended."""
  usages = [
    resource.getrusage(x)
    for x in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
  ]
  return sum(x.ru_utime + x.ru_stime for x in usages)


def matrix_product_rate(size: int = 1536, seconds: float = 1.0) -> float:
  """FLOP per CPU second of float32 matrix products in NumPy.

  Args:
    size: Height and width of the matrices.
    seconds: Least time to measure.
  """
  import numpy as np

  a = np.random.RandomState(0).normal(size=(size, size)).astype(np.float32)
  b = a.T.copy()
  a @ b
  with Measurement() as measurement:
    began = time.time()
    while time.time() - began < seconds:
      a @ b
      measurement.units += 1
  return 2.0 * size**3 * measurement.units / measurement.cpu_s
