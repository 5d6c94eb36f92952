"""Statistics over the seeds of a result.

Interquartile means and probabilities of improvement as Agarwal et al.,
arXiv:2108.13264, with 95 % intervals from the bootstrap of the seeds, for each
code on its own. Their package `rliable` needs nine others for the same.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

_DRAWS = 5000


class Outcome(NamedTuple):
  """What a seed has come to.

  Attributes:
    number: What the bar measures; infinity for steps that were not reached.
    end: Last environment step of the curve.
  """

  number: float
  end: float


def interquartile_mean(values: np.ndarray) -> float:
  """Return the mean of the middle half of values."""
  return float(stats.trim_mean(values, 0.25))


def interval(
  function: Callable[..., float], *samples: Sequence[float]
) -> tuple[float, float]:
  """Return the interval of a function of samples, each resampled on its own."""
  rng = np.random.default_rng(0)
  draws = [
    function(*(rng.choice(x, len(x)) for x in samples)) for _ in range(_DRAWS)
  ]
  low, high = np.quantile(draws, (0.025, 0.975))
  return float(low), float(high)


def survival(outcomes: Sequence[Outcome]) -> tuple[np.ndarray, np.ndarray]:
  """Return steps, and the share of seeds that have reached the level by them.

  By Kaplan and Meier: a seed that has not is left out after its end.
  """
  reached = [math.isfinite(x.number) for x in outcomes]
  times = [x.number if y else x.end for x, y in zip(outcomes, reached)]
  data = stats.CensoredData.right_censored(times, np.logical_not(reached))
  cdf = stats.ecdf(data).cdf
  return cdf.quantiles, cdf.probabilities


def median_time(outcomes: Sequence[Outcome]) -> float:
  """Return the step by which half of the seeds have reached the level."""
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
    original: Outcomes of the original's.
    in_steps: Whether numbers are steps, of which fewer are better; those after
      the end of any seed that has not reached the level do not count.
  """
  missed = [x.end for x in (*ours, *original) if math.isinf(x.number)]
  horizon = min(missed, default=math.inf) if in_steps else math.inf
  sign = -1 if in_steps else 1
  samples = [
    [sign * (x.number if x.number <= horizon else math.inf) for x in side]
    for side in (ours, original)
  ]

  def compare(ours, original):
    a, b = np.array(ours)[:, None], np.array(original)
    return float(((a > b) + 0.5 * (a == b)).mean())

  return compare(*samples), interval(compare, *samples)
