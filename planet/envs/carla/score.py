"""Metrics of an episode that the literature on driving quotes."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from planet.envs.carla import measure, planner

# Factors per collision of the CARLA leaderboard, version 1,
# https://leaderboard.carla.org/#evaluation-and-metrics.
_PENALTIES = {'walker': 0.5, 'vehicle': 0.6, 'other': 0.65}
# Kilometers from which rates have a meaning.
_LEAST = 0.01
# Fraction of the car outside of its lanes that does not count as progress.
_OUTSIDE = 0.5


class Score:
  """Count what happens in an episode.

  Args:
    length: Meters from the start to the first goal; None without one.
    dt: Seconds per step.
  """

  def __init__(self, length: float | None, dt: float):
    self._length, self._dt = length, dt
    self._rest = length
    self._distance = self._outside = 0.0
    self._departures, self._steps = 0, 0
    self._contacts: dict[int, int] = {}
    self._reached = False

  def add(self, now: dict[str, Any], rest: float | None) -> None:
    """Add a step.

    Args:
      now: Measurements of the step.
      rest: Meters to the goal; None if unknown.
    """
    self._steps += 1
    way = abs(now['forward_speed']) * self._dt
    outside = now['intersection_offroad'] + now['intersection_otherlane']
    self._distance += way
    self._outside += way * (outside >= _OUTSIDE)
    if outside:
      # A departure begins after five steps in the lane, like a contact.
      self._departures += measure.begins(self._contacts, 0, self._steps)
    if rest is not None and self._rest is not None and not self._reached:
      self._rest = min(self._rest, rest)

  def reach(self) -> None:
    """Count the first route as completed."""
    self._reached = True

  def summarize(
    self,
    damage: measure.Damage,
    route: planner.Route | None,
  ) -> dict[str, float | None]:
    """Return the metrics; None for those without a meaning in this episode.

    Args:
      damage: Collisions of the episode.
      route: Route to the goal, or None.
    """
    completion = score = None
    if self._length:
      assert self._rest is not None
      completion = 1.0 if self._reached else 1 - self._rest / self._length
      score = 100 * completion
      score *= 1 - self._outside / max(self._distance, 1e-9)
      score *= math.prod(_PENALTIES[x] ** n for x, n in damage.counts.items())
    found = {
      'route completion': completion,
      'driving score': score,
      'kilometres': self._distance / 1000,
      'collisions': sum(damage.counts.values()),
      'lane departures': self._departures,
      'junctions': route.junctions if route else 0,
      'junctions as commanded': route.obeyed if route else 0,
    }
    return {**found, **rates([found])}


def rates(
  metrics: Sequence[Mapping[str, float | None]],
) -> dict[str, float | None]:
  """Return events per kilometer, and the share of junctions, of all episodes.

  Args:
    metrics: Results of `Score.summarize`.
  """
  total = {
    x: sum(y[x] or 0.0 for y in metrics)
    for x in (
      'kilometres collisions junctions'.split()
      + ['lane departures', 'junctions as commanded']
    )
  }
  found: dict[str, float | None] = {}
  for name in ('collisions', 'lane departures'):
    is_far = total['kilometres'] > _LEAST
    rate = total[name] / total['kilometres'] if is_far else None
    found[f'{name} per km'] = rate
  share = total['junctions as commanded'] / max(total['junctions'], 1)
  found['share of junctions'] = share if total['junctions'] else None
  return found
