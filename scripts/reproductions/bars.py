"""What a curve has to reach, as one number per seed and a verdict.

A curve is `agents.run.plot.Points`: environment steps and mean values of the
evaluations.
"""

import dataclasses
import math

import numpy as np

from agents.run import plot


@dataclasses.dataclass(frozen=True)
class Bar:
  """Measure of a curve, and the value that it should have.

  Attributes:
    kind: `reach`, the step at which evaluations in a row have been at least the
      level; `stay`, the step from which on all are; `last_mean`, the mean of
      the last evaluations, of all while there are fewer; `gain`, that less the
      mean of the first ones; `played`, the mean over the episodes of the
      trained agent, given as the only evaluation; or `same`, the last
      evaluation, where all have to be those of the reference.
    level: Value to reach; None for no bar.
    count: Number of evaluations.
    steps: Environment steps by which to reach the level; None for no bar.
    factor: Multiple of the steps of the reference by which to reach it, instead
      of `steps` where there is a reference.
  """

  kind: str
  level: float | None = None
  count: int = 1
  steps: float | None = None
  factor: float | None = None

  @property
  def in_steps(self) -> bool:
    """Whether the number is one of environment steps."""
    return self.kind in ('reach', 'stay')

  def measure(self, points: plot.Points) -> float:
    """Return the number of a seed; infinity or NaN if there is none."""
    steps, values = points
    if self.in_steps:
      first = self._find(values >= self.level)
      return float(steps[first]) if first < len(steps) else math.inf
    if not len(values) or self.kind == 'gain' and len(values) < 2 * self.count:
      return math.nan
    mean = float(np.mean(values[-self.count :]))
    if self.kind == 'gain':
      mean -= float(np.mean(values[: self.count]))
    return mean

  def judge(
    self, points: plot.Points, reference: plot.Points | None
  ) -> bool | None:
    """Return whether the bar is reached; None if there is none or no number.

    Args:
      points: Our curve.
      reference: Curve to compare with, of the same seed, or None.
    """
    if self.kind == 'same':
      return reference and all(
        np.array_equal(ours, theirs[: len(ours)])
        for ours, theirs in zip(points, reference)
      )
    number = self.measure(points)
    if self.in_steps:
      limit = self.steps
      if self.factor and reference is not None:
        limit = self.factor * self.measure(reference)
      return None if limit is None else number <= limit
    if self.level is None or math.isnan(number):
      return None
    return number > self.level if self.kind == 'gain' else number >= self.level

  @property
  def words(self) -> str:
    """What is measured and has to be reached, for the table."""
    several = self.count > 1
    by = f' by step {self.steps:,.0f}' if self.steps else ''
    if self.factor:
      by = f' within {self.factor:g} times the steps of the curve beside it'
      if self.factor == 1:
        by = ' no later than in the curve to compare with'
    level = '' if self.level is None else f' >= {self.level:g}'
    last = f'mean of the last {self.count} evaluations'
    return {
      'reach': f'{self.count} evaluations in a row{level}{by}'
      if several
      else f'first evaluation{level}{by}',
      'stay': f'all evaluations{level} from step {self.steps or 0:,.0f} on',
      'last_mean': (last if several else 'last evaluation')
      + (level or ', of all while there are fewer'),
      'gain': f'gain from the first to the last {self.count} evaluations > 0',
      'played': f'mean of the episodes of the trained agent{level}',
      'same': 'same evaluations as the stand-alone run, to the bit',
    }[self.kind]

  def _find(self, good):
    """Index of the evaluation that counts; their number if there is none."""
    if self.kind == 'stay':
      return len(good) - np.logical_and.accumulate(good[::-1]).sum()
    streak = 0
    for index, value in enumerate(good):
      streak = streak + 1 if value else 0
      if streak == self.count:
        return index
    return len(good)
