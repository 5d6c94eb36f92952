"""Actions at which plans for driving begin, by command and heading."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Interval, Len

from agents.run import schema
from agents.run.schema import setting
from planet.envs.carla import measure

_Action = Annotated[
  list[Annotated[schema.Number, Interval(ge=-1, le=1)]], Len(2, 2)
]


class Biases(schema.Settings):
  """Throttle and steering by command of the route, those of the CARLA fork."""

  called: ClassVar[str] = 'Command {!r} of planner_command_bias'

  LANE_FOLLOW: _Action = setting([0.6, 0.0])
  GO_STRAIGHT: _Action = setting([0.6, 0.0])
  TURN_RIGHT: _Action = setting([0.3, 0.3])
  TURN_LEFT: _Action = setting([0.3, -0.3])


def complete(given: Mapping[str, Any]) -> dict[str, list[float]]:
  """Fill in the actions of the fork, and check those that were given.

  Raises:
    UsageError: If a command is unknown, or an action is not allowed.
  """
  return {**Biases.defaults(), **Biases.check(given)}


def choose(
  measurements: Mapping[str, Any],
  biases: Mapping[str, list[float]],
  heading: float = 0.0,
) -> np.ndarray:
  """Choose the action that a plan begins at.

  Args:
    measurements: Measurements of the last step. Without them, and at the goal,
      the lane is followed.
    biases: What `complete` returns.
    heading: Steering for each degree that the goal lies to the right of where
      the car points; nothing is added without a goal.

  Returns:
    float32 [2], throttle and steering.
  """
  command = measurements.get('next_command')
  throttle, steer = biases.get(str(command), biases['LANE_FOLLOW'])
  if measurements.get('distance_to_goal_euclidean', -1) >= 0:
    steer += heading * measure.wrap_degrees(
      measurements['goal_heading_degree']
      - measurements['current_heading_degree']
    )
  return np.array([throttle, min(max(steer, -1), 1)], np.float32)
