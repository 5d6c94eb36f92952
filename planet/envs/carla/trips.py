"""Trips: start and route of an episode."""

import logging
import math

import numpy as np

from agents.run import errors
from planet.envs.carla import backend as backend_lib
from planet.envs.carla import measure, places, planner, scenarios

# Number of starts to try, and of goals for each.
_STARTS, _GOALS = 20, 8
# Distance in meters from which the actual start differs from the wanted one.
_MOVED = 1.0
# Maximum distance in meters of a given pose from the nearest lane.
_FAR = 5.0


class Trips:
  """Sample starts and goals of episodes.

  Args:
    backend: Open `Backend`.
    surroundings: `Surroundings` of its map.
  """

  def __init__(
    self, backend: backend_lib.Backend, surroundings: measure.Surroundings
  ):
    self._lanes, self._map_name = backend.lanes, backend.map.name
    self._points = backend.spawn_points()
    if not self._points:
      raise errors.UsageError(
        f'The map {self._map_name} has no spawn points; give another map.'
      )
    self._surroundings = surroundings

  def locate(self, location: places.Location) -> tuple[int, float]:
    """Return the index of the nearest lane and the meters along it."""
    lane, arc = self._surroundings.locate(location)
    return (0, 0.0) if lane is None else (lane, arc)

  def check(self, scenario: scenarios.Scenario) -> None:
    """Check that the map has the start and goal of a scenario.

    Raises:
      UsageError: If one is missing or the goal is unreachable.
    """
    start, end = self._find_places(scenario)
    if start and end and not self._leads_from(self._route_to(end), start):
      raise _no_way(scenario)

  def draw(
    self, scenario: scenarios.Scenario, random: np.random.Generator
  ) -> tuple[places.Pose, planner.Route | None]:
    """Sample a start and a route of the kinds of a scenario.

    Args:
      scenario: Scenario of the episode.
      random: NumPy generator.

    Returns:
      Start pose, and route to the goal or None if no goal was found.

    Raises:
      UsageError: If the map lacks the start or goal of the scenario, or the
        goal is unreachable.
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
      'The map has no routes of kind %s; using any route.', ', '.join(kinds)
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
    """Return start and route, adapted if the start was blocked.

    Args:
      scenario: Scenario of the episode.
      start: Wanted start pose.
      route: Route from the wanted start.
      actual: Actual start pose.
      random: NumPy generator.

    Returns:
      Start pose and a route from it. Keeps a goal that the scenario names, if
      reachable.
    """
    if math.dist(start[:2], actual[:2]) < _MOVED:
      return start, route
    logging.getLogger(__name__).info(
      'The start at (%.1f, %.1f) is blocked; starting at (%.1f, %.1f).',
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
    """Return the start and end poses that a scenario names, or None."""
    found = []
    for end in ('start', 'end'):
      pose = getattr(scenario, f'{end}_pose')
      index = getattr(scenario, f'{end}_pos_id')
      if index is not None:
        if index >= len(self._points):
          raise errors.UsageError(
            f'Scenario {scenario.name} has {end}_pos_id {index}, but the map '
            f'has only {len(self._points)} spawn points, counted from 0.'
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
        f'{self._map_name}; give a pose on a lane or another map.'
      )

  def _route_to(self, pose):
    return planner.Route(self._lanes, self.locate(pose[:3]))

  def _leads_from(self, route, pose):
    return math.isfinite(route.distance(*self.locate(pose[:3])))


def _no_way(scenario):
  return errors.UsageError(
    f'Scenario {scenario.name} has no route from its start to its end; give '
    'poses on connected lanes.'
  )
