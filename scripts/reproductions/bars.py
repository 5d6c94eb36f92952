"""What a curve has to reach, as one number per seed and a verdict.

A curve is `agents.run.plot.Points`: environment steps and mean values of the
evaluations.
"""

import dataclasses
import math
from typing import Protocol

import numpy as np

from agents.run import plot


class Bar(Protocol):
  """Measure of a curve, and the value that it should have.

  Attributes:
    words: What is measured, for the table.
    in_steps: Whether the number is one of environment steps.
  """

  @property
  def words(self) -> str: ...

  @property
  def in_steps(self) -> bool: ...

  def measure(self, points: plot.Points) -> float:
    """Return the number of a seed; infinity or NaN if there is none."""

  def judge(
    self, points: plot.Points, reference: plot.Points | None
  ) -> bool | None:
    """Return whether the bar is reached; None if there is none or no number.

    Args:
      points: Our curve.
      reference: Curve to compare with, of the same seed, or None.
    """


@dataclasses.dataclass(frozen=True)
class FirstReach:
  """Step of the first evaluation of at least a level.

  Attributes:
    level: Value to reach.
    steps: Environment steps by which to reach it; None for no bar.
    factor: Times the steps of the original's curve of the same seed, where
      there is one.
  """

  level: float
  steps: float | None = None
  factor: float | None = None

  in_steps = True

  @property
  def words(self) -> str:
    by = f' by step {self.steps:,.0f}' if self.steps else ''
    if self.factor == 1:
      by = ' no later than in the curve to compare with'
    elif self.factor:
      by = f' within {self.factor:g} times the steps of the curve beside it'
    return f'first evaluation >= {self.level:g}{by}'

  def measure(self, points: plot.Points) -> float:
    steps, values = points
    reached = np.flatnonzero(values >= self.level)
    return float(steps[reached[0]]) if len(reached) else math.inf

  def judge(
    self, points: plot.Points, reference: plot.Points | None
  ) -> bool | None:
    limit = self.steps
    if self.factor and reference is not None:
      limit = self.factor * self.measure(reference)
    return None if limit is None else self.measure(points) <= limit


@dataclasses.dataclass(frozen=True)
class Holds:
  """Step at which some evaluations in a row have been at least a level.

  Attributes:
    level: Value to reach.
    count: Number of evaluations in a row.
    steps: Environment steps by which to reach it.
  """

  level: float
  count: int
  steps: float

  in_steps = True

  @property
  def words(self) -> str:
    return (
      f'{self.count} evaluations in a row >= {self.level:g} '
      f'by step {self.steps:,.0f}'
    )

  def measure(self, points: plot.Points) -> float:
    steps, values = points
    streak = 0
    for step, value in zip(steps, values):
      streak = streak + 1 if value >= self.level else 0
      if streak == self.count:
        return float(step)
    return math.inf

  def judge(self, points: plot.Points, reference: plot.Points | None) -> bool:
    return self.measure(points) <= self.steps


@dataclasses.dataclass(frozen=True)
class StaysFrom:
  """Step from which on all evaluations are at least a level.

  Attributes:
    level: Value to keep.
    steps: Environment steps by which to keep it.
  """

  level: float
  steps: float

  in_steps = True

  @property
  def words(self) -> str:
    return f'all evaluations >= {self.level:g} from step {self.steps:,.0f} on'

  def measure(self, points: plot.Points) -> float:
    steps, values = points
    below = np.flatnonzero(~(values >= self.level))
    first = below[-1] + 1 if len(below) else 0
    return float(steps[first]) if first < len(steps) else math.inf

  def judge(self, points: plot.Points, reference: plot.Points | None) -> bool:
    return self.measure(points) <= self.steps


@dataclasses.dataclass(frozen=True)
class LastMean:
  """Mean of the last evaluations.

  Attributes:
    count: Number of evaluations; the mean is that of all while there are fewer.
    level: Value to reach; None for no bar.
  """

  count: int
  level: float | None = None

  in_steps = False

  @property
  def words(self) -> str:
    what = f'mean of the last {self.count} evaluations'
    what = what if self.count > 1 else 'last evaluation'
    if self.level is None:
      return f'{what}, of all while there are fewer'
    return f'{what} >= {self.level:g}'

  def measure(self, points: plot.Points) -> float:
    values = points[1][-self.count :]
    return float(np.mean(values)) if len(values) else math.nan

  def judge(
    self, points: plot.Points, reference: plot.Points | None
  ) -> bool | None:
    return None if self.level is None else self.measure(points) >= self.level


@dataclasses.dataclass(frozen=True)
class Played:
  """Mean over the episodes that the trained agent plays after its training.

  Its curve is that single evaluation.

  Attributes:
    level: Value to reach.
  """

  level: float

  in_steps = False

  @property
  def words(self) -> str:
    return f'mean of the episodes of the trained agent >= {self.level:g}'

  def measure(self, points: plot.Points) -> float:
    return float(points[1][-1]) if len(points[1]) else math.nan

  def judge(
    self, points: plot.Points, reference: plot.Points | None
  ) -> bool | None:
    return self.measure(points) >= self.level if len(points[1]) else None


@dataclasses.dataclass(frozen=True)
class Gain:
  """Mean of the last evaluations less that of the first ones.

  Attributes:
    count: Number of evaluations on either side.
  """

  count: int = 5

  in_steps = False

  @property
  def words(self) -> str:
    return f'gain from the first to the last {self.count} evaluations > 0'

  def measure(self, points: plot.Points) -> float:
    values = points[1]
    if len(values) < 2 * self.count:
      return math.nan
    return float(np.mean(values[-self.count :]) - np.mean(values[: self.count]))

  def judge(
    self, points: plot.Points, reference: plot.Points | None
  ) -> bool | None:
    gain = self.measure(points)
    return None if math.isnan(gain) else gain > 0


@dataclasses.dataclass(frozen=True)
class Same:
  """Last evaluation; all have to be those of the curve to compare with."""

  in_steps = False
  words = 'same evaluations as the stand-alone run, to the bit'

  def measure(self, points: plot.Points) -> float:
    return float(points[1][-1]) if len(points[1]) else math.nan

  def judge(
    self, points: plot.Points, reference: plot.Points | None
  ) -> bool | None:
    if reference is None:
      return None
    length = len(points[0])
    return length > 0 and all(
      np.array_equal(ours, theirs[:length])
      for ours, theirs in zip(points, reference)
    )
