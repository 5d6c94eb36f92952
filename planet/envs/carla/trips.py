"""Trips: where an episode begins, and the route that it follows."""

import logging
import math

import numpy as np

from agents.run import errors
from planet.envs.carla import backend as backend_lib
from planet.envs.carla import measure, places, planner, scenarios

# Places where an episode may begin, and goals for each of them.
_STARTS, _GOALS = 20, 8
# Metres between the wanted and the actual start that count as another place.
_MOVED = 1.0
# Metres from the nearest lane that a given place may have.
_FAR = 5.0


class Trips:
  """Draw the starts and goals of episodes.

  Args:
    backend: Open `Backend`.
    surroundings: `Surroundings` on its map.
  """

  def __init__(
    self, backend: backend_lib.Backend, surroundings: measure.Surroundings
  ):
    self._lanes, self._map_name = backend.lanes, backend.map.name
    self._points = backend.spawn_points()
    self._surroundings = surroundings

  def locate(self, location: places.Location) -> tuple[int, float]:
    """Find the lane at a place, and the metres along it."""
    lane, arc = self._surroundings.locate(location)
    return (0, 0.0) if lane is None else (lane, arc)

  def check(self, scenario: scenarios.Scenario) -> None:
    """Refuse a scenario whose places the map does not have.

    Raises:
      UsageError: If there is no such place, or no way between them.
    """
    start, end = self._find_places(scenario)
    if start and end and not self._leads_from(self._route_to(end), start):
      raise _no_way(scenario)

  def draw(
    self, scenario: scenarios.Scenario, random: np.random.Generator
  ) -> tuple[places.Pose, planner.Route | None]:
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
    first, last = self._find_places(scenario)

    def draw_start():
      return first or self._points[random.integers(len(self._points))]

    lanes, kinds = self._lanes, scenario.kinds
    fixed = self._route_to(last) if last else None
    tries = _STARTS if fixed or planner.can_have(lanes, kinds) else 0
    for _ in range(tries):
      start = draw_start()
      place = self.locate(start[:3])
      route = fixed or planner.draw_goal(lanes, place, kinds, random, _GOALS)
      if route and math.isfinite(route.distance(*place)):
        return start, route
    if fixed:
      raise _no_way(scenario)
    logging.getLogger(__name__).info(
      'The map has no routes of kind %s; driving anywhere.', ', '.join(kinds)
    )
    start = draw_start()
    place = self.locate(start[:3])
    return start, planner.draw_goal(lanes, place, None, random)

  def follow(
    self,
    scenario: scenarios.Scenario,
    start: places.Pose,
    route: planner.Route | None,
    actual: places.Pose,
    random: np.random.Generator,
  ) -> tuple[places.Pose, planner.Route | None]:
    """Keep the start and its route, or replace them if the start was blocked.

    Args:
      scenario: Scenario of the episode.
      start: Pose that the vehicle was to begin at.
      route: Route from there.
      actual: Pose that it begins at.
      random: Generator to draw from.

    Returns:
      Pose and route that fit each other. A goal that the scenario names is
      kept if a way leads there.
    """
    if math.dist(start[:2], actual[:2]) < _MOVED:
      return start, route
    logging.getLogger(__name__).info(
      'The start at (%.1f, %.1f) is blocked; beginning at (%.1f, %.1f).',
      *start[:2],
      *actual[:2],
    )
    _, end = self._find_places(scenario)
    if not (end and self._leads_from(route, actual)):
      place = self.locate(actual[:3])
      route = planner.draw_goal(
        self._lanes, place, scenario.kinds, random
      ) or planner.draw_goal(self._lanes, place, None, random)
    return actual, route

  def _find_places(self, scenario):
    """Poses of the start and the end that a scenario names, or None."""
    found = []
    for end in ('start', 'end'):
      pose = getattr(scenario, f'{end}_pose')
      index = getattr(scenario, f'{end}_pos_id')
      if index is not None:
        if index >= len(self._points):
          raise errors.UsageError(
            f'Scenario {scenario.name} has {end}_pos_id {index}, but the map '
            f'has {len(self._points)} spawn points.'
          )
        pose = self._points[index]
      elif pose:
        self._check_distance(scenario, end, pose)
      found.append(pose)
    return found

  def _check_distance(self, scenario, end, pose):
    lane = self._surroundings.nearest(pose[:3]).transform.location
    distance = math.dist(pose[:2], (lane.x, lane.y))
    if distance > _FAR:
      raise errors.UsageError(
        f'Scenario {scenario.name} has {end}_pose {list(pose)}, which is '
        f'{distance:.0f} m from the nearest lane of the map '
        f'{self._map_name}; give a place on a lane, or another map.'
      )

  def _route_to(self, pose):
    return planner.Route(self._lanes, self.locate(pose[:3]))

  def _leads_from(self, route, pose):
    return math.isfinite(route.distance(*self.locate(pose[:3])))


def _no_way(scenario):
  return errors.UsageError(
    f'In scenario {scenario.name} no way leads from its start to its end; '
    'give places on lanes that are connected.'
  )
