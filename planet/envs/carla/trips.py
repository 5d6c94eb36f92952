"""Trips: where an episode begins, and the route that it follows."""

import logging
import math

import numpy as np

from agents.tools import errors
from planet.envs.carla import backend as backend_lib
from planet.envs.carla import measure
from planet.envs.carla import planner
from planet.envs.carla import scenarios

# Places where an episode may begin, and goals for each of them.
_STARTS, _GOALS = 20, 8
_ANY_GOALS = 60
# Metres between the wanted and the actual start that count as another place.
_MOVED = 1.0

Location = tuple[float, float, float]
Pose = tuple[float, float, float, float]


class Trips:
  """Draw the starts and goals of episodes.

  Poses are x, y and z in metres, and the heading in degrees.

  Args:
    backend: Open `Backend`.
    surroundings: `Surroundings` on its map.
  """

  def __init__(
    self, backend: backend_lib.Backend, surroundings: measure.Surroundings
  ):
    self._backend, self._surroundings = backend, surroundings
    self._warned = False

  def locate(self, location: Location) -> tuple[int, float]:
    """Find the lane at a place, and the metres along it."""
    waypoint = self._surroundings.nearest(location)
    lane, arc = self._backend.lanes.locate(waypoint)
    return (0, 0.0) if lane is None else (lane, arc)

  def draw(
    self, scenario: scenarios.Scenario, random: np.random.Generator
  ) -> tuple[Pose, planner.Route | None]:
    """Draw a start, and a route of the kind that a scenario asks for.

    Args:
      scenario: Scenario of the episode.
      random: Generator to draw from.

    Returns:
      Pose to begin at, and the route to the goal, or None if there is no goal
      within reach.

    Raises:
      UsageError: If the scenario names places that the map does not have, or
        that no way leads to.
    """
    points = self._backend.spawn_points()
    first = _explicit(scenario, 'start_pos_id', points)
    last = _explicit(scenario, 'end_pos_id', points)

    def draw_start():
      return first or points[random.integers(len(points))]

    if last is not None:
      return self._draw_start_for(scenario, last, draw_start)
    lanes, kinds = self._backend.lanes, scenario.kinds
    for _ in range(_STARTS if planner.can_have(lanes, kinds) else 0):
      start = draw_start()
      route = self.draw_goal(start[:3], kinds, random, _GOALS)
      if route:
        return start, route
    self._warn(kinds)
    start = draw_start()
    return start, self.draw_goal(start[:3], None, random)

  def follow(
    self,
    scenario: scenarios.Scenario,
    start: Pose,
    route: planner.Route | None,
    actual: Pose,
    random: np.random.Generator,
  ) -> tuple[Pose, planner.Route | None]:
    """Keep the start and its route, or replace them if the start was blocked.

    Args:
      scenario: Scenario of the episode.
      start: Pose that the vehicle was to begin at.
      route: Route from there.
      actual: Pose that it begins at.
      random: Generator to draw from.

    Returns:
      Pose and route that fit each other. A goal that the scenario names is
      kept.
    """
    if math.dist(start[:2], actual[:2]) < _MOVED:
      return start, route
    logging.getLogger(__name__).info(
      'The start at (%.1f, %.1f) is blocked; beginning at (%.1f, %.1f).',
      *start[:2],
      *actual[:2],
    )
    if scenario.end_pos_id is None:
      for kinds in (scenario.kinds, None):
        route = self.draw_goal(actual[:3], kinds, random)
        if route:
          break
    return actual, route

  def draw_goal(
    self,
    location: Location,
    kinds: tuple[str, ...] | None,
    random: np.random.Generator,
    tries: int = _ANY_GOALS,
  ) -> planner.Route | None:
    """Draw a route from a place; see `planner.draw_goal`."""
    place = self.locate(location)
    return planner.draw_goal(self._backend.lanes, place, kinds, random, tries)

  def _draw_start_for(self, scenario, end, draw_start):
    """Start from which a way leads to the end that the scenario names."""
    route = planner.Route(self._backend.lanes, self.locate(end[:3]))
    for _ in range(_STARTS):
      start = draw_start()
      if math.isfinite(route.distance(*self.locate(start[:3]))):
        return start, route
    raise errors.UsageError(
      f'In scenario {scenario.name} no way leads from its start to its end; '
      'give places on lanes of the same direction.'
    )

  def _warn(self, kinds):
    if not self._warned:
      self._warned = True
      logging.getLogger(__name__).info(
        'The map has no routes of kind %s; driving anywhere.', ', '.join(kinds)
      )


def _explicit(scenario, key, points):
  """Spawn point that a scenario names by its index, or None."""
  index = getattr(scenario, key)
  if index is None:
    return None
  if not 0 <= index < len(points):
    raise errors.UsageError(
      f'Scenario {scenario.name} has {key} {index}, but the map has '
      f'{len(points)} spawn points.'
    )
  return points[index]
