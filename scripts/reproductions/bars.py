"""Bars: measures and thresholds of learning curves.

A curve is `agents.run.plot.Points`: environment steps and mean values of at
least one evaluation.
"""

import math
from collections.abc import Iterable, Sequence

import numpy as np
from pydantic.dataclasses import dataclass

from agents.run import plot
from scripts.reproductions import intervals


@dataclass(frozen=True)
class Bar:
  """Measure of a curve and its threshold.

  Attributes:
    kind: `reach`, first step after `count` evaluations in a row of at least
      `level`; `stay`, first step after which all evaluations are; `last_mean`,
      mean of the last evaluations, or of all if there are fewer; `gain`, the
      difference to the mean of the first ones, without threshold; `played`,
      mean over episodes of the trained agent, given as the only evaluation; or
      `same`, last evaluation of a curve that must equal the reference.
    level: Value to reach; None for no threshold.
    count: Number of evaluations; for `played`, of episodes, if no agent is
      shipped.
    steps: Environment steps by which to reach the level; None for no threshold.
    factor: Limit as a multiple of the steps of the reference, which replaces
      `steps` if there is a reference.
  """

  kind: str
  level: float | None = None
  count: int = 1
  steps: float | None = None
  factor: float | None = None

  @property
  def in_steps(self) -> bool:
    """Whether the measure is a number of environment steps."""
    return self.kind in ('reach', 'stay')


def measure(bar: Bar, points: plot.Points) -> float:
  """Return the measure of a seed; infinity or NaN if undefined."""
  steps, values = points
  if bar.in_steps:
    good = values >= bar.level
    if bar.kind == 'stay':
      good = np.logical_and.accumulate(good[::-1])[::-1]
    else:
      good = np.convolve(good, np.ones(bar.count))[: len(good)] == bar.count
    return float(steps[np.argmax(good)]) if good.any() else math.inf
  mean = float(values[-bar.count :].mean())
  if bar.kind != 'gain':
    return mean
  if len(values) < 2 * bar.count:
    return math.nan
  return mean - float(values[: bar.count].mean())


def judge(
  bar: Bar, points: plot.Points, reference: plot.Points | None
) -> bool | None:
  """Return whether a bar is met; None without threshold or number.

  Args:
    bar: Bar.
    points: Our curve.
    reference: Reference curve of the same seed, or None.
  """
  if bar.kind == 'same':
    return reference and all(
      np.array_equal(ours, theirs[: len(ours)])
      for ours, theirs in zip(points, reference)
    )
  number = measure(bar, points)
  if bar.in_steps:
    limit = bar.steps
    if bar.factor and reference:
      limit = bar.factor * measure(bar, reference)
    # A reference that never reaches the level sets no limit.
    return None if limit in (None, math.inf) else number <= limit
  if bar.level is None or math.isnan(number):
    return None
  return number >= bar.level


def read_outcomes(
  bar: Bar, curves: Iterable[plot.Points]
) -> list[intervals.Outcome]:
  """Return measures and ends of curves."""
  return [intervals.Outcome(measure(bar, x), x[0][-1]) for x in curves]


def improve(
  bar: Bar,
  ours: Sequence[intervals.Outcome],
  original: Sequence[intervals.Outcome],
) -> str:
  """Describe how probably ours does better; empty for few seeds."""
  if min(len(ours), len(original)) < intervals.FEW:
    return ''
  share, (low, high) = intervals.improvement(ours, original, bar.in_steps)
  word = 'earlier' if bar.in_steps else 'better'
  return f'P({word}) = {share:.2f} [{low:.2f}, {high:.2f}]'


def describe(bar: Bar) -> str:
  """Describe measure and threshold for the table."""
  count = bar.count
  level = '' if bar.level is None else f' >= {bar.level:g}'
  by = f' by step {bar.steps:,.0f}' if bar.steps else ''
  if bar.factor:
    by = f' within {bar.factor:g} times the steps of the original, seed by seed'
  if bar.factor == 1:
    by = ' no later than in the curve to compare with'
  first, last = 'first evaluation', 'last evaluation'
  if count > 1:
    first = f'{count} evaluations in a row'
    last = f'mean of the last {count} evaluations'
  return {
    'reach': first + level + by,
    'stay': f'all evaluations{level} from step {bar.steps or 0:,.0f} on',
    'last_mean': last + (level or ', of all while there are fewer'),
    'gain': f'gain from the first to the last {count} evaluations',
    'played': f'mean of the episodes of the trained agent{level}',
    'same': 'same evaluations as the stand-alone run, to the bit',
  }[bar.kind]
