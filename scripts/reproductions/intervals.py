"""Statistics over the seeds of a result.

Interquartile means and probabilities of improvement as in Agarwal et al.,
arXiv:2108.13264, with 95 % intervals from bootstrapping the seeds of each code
separately. Their package `rliable` would add nine dependencies.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

_DRAWS = 5000
# Results of fewer seeds have no interval.
FEW = 3


class Outcome(NamedTuple):
  """Outcome of a seed.

  Attributes:
    number: Measure of the bar; infinity if the level was not reached.
    end: Last environment step of the curve.
  """

  number: float
  end: float


def interquartile_mean(values: np.ndarray) -> np.ndarray:
  """Return the means of the middle half of the values in each row."""
  return stats.trim_mean(values, 0.25, axis=-1)


def interval(
  function: Callable[..., np.ndarray], *samples: Sequence[float]
) -> tuple[float, float]:
  """Return the bootstrap interval of a function of independent samples.

  Args:
    function: Function of an array per sample whose rows are draws, which
      returns a number per row.
    *samples: Values of each sample.
  """
  rng = np.random.default_rng(0)
  draws = [[rng.choice(x, len(x)) for x in samples] for _ in range(_DRAWS)]
  numbers = function(*(np.array(x) for x in zip(*draws)))
  low, high = np.quantile(numbers, (0.025, 0.975))
  return float(low), float(high)


def survival(outcomes: Sequence[Outcome]) -> tuple[np.ndarray, np.ndarray]:
  """Return steps and the fraction of seeds that have reached the level by then.

  Kaplan-Meier estimate: seeds that did not reach it are censored at their end.
  """
  reached = [math.isfinite(x.number) for x in outcomes]
  times = [x.number if y else x.end for x, y in zip(outcomes, reached)]
  data = stats.CensoredData.right_censored(times, np.logical_not(reached))
  cdf = stats.ecdf(data).cdf
  # A product of fractions, so a half may be 0.4999999999999999.
  return cdf.quantiles, cdf.probabilities.round(9)


def median_time(outcomes: Sequence[Outcome]) -> float:
  """Return the step by which half of the seeds reached the level."""
  steps, shares = survival(outcomes)
  return (
    float(steps[np.argmax(shares >= 0.5)]) if shares[-1] >= 0.5 else math.inf
  )


def improvement(
  ours: Sequence[Outcome], original: Sequence[Outcome], in_steps: bool
) -> tuple[float, tuple[float, float]]:
  """Return the probability that our code does better, and its interval.

  Args:
    ours: Outcomes of our seeds.
    original: Outcomes of the seeds of the original.
    in_steps: Whether numbers are steps, where fewer are better. Two seeds are
      compared until the end of the one that did not reach the level.
  """
  sign = -1 if in_steps else 1

  def compare(*pair):
    missed = [x.end for x in pair if in_steps and math.isinf(x.number)]
    horizon = min(missed, default=math.inf)
    a, b = (
      sign * (x.number if x.number <= horizon else math.inf) for x in pair
    )
    return (a > b) + 0.5 * (a == b)

  wins = np.array([[compare(x, y) for y in original] for x in ours])

  def mean(rows, columns):
    return wins[rows[:, :, None], columns[:, None]].mean((1, 2))

  seeds = [range(len(x)) for x in (ours, original)]
  return float(wins.mean()), interval(mean, *seeds)
