"""Conditions that end an episode."""

import math
from typing import Any

from planet.envs.carla import places

_FIRST_STUCK, _LOOK_FROM, _EVERY = 50, 70, 30
_MOVED = 0.2
_WORST = -100.0


class Stuck:
  """Detect that the vehicle has not moved for 30 steps.

  As in the fork, measures the displacement every 30 steps, first at step 90.
  """

  def __init__(self, position: places.Point):
    self._steps = 0
    self._reference = position
    self.displacement = 1000.0

  def update(self, position: places.Point) -> bool:
    """Add the position after a step; return whether the vehicle is stuck."""
    self._steps += 1
    if self._steps % _EVERY == 0:
      if self._steps > _LOOK_FROM:
        self.displacement = math.dist(position, self._reference)
      self._reference = position
    return self._steps > _FIRST_STUCK and self.displacement < _MOVED


def should_end(
  config: dict[str, Any], measurements: dict[str, Any], stuck: bool
) -> bool:
  """Return whether an episode should end.

  Args:
    config: Complete settings, see `env_config.complete`.
    measurements: Measurements of the step, with `total_reward`.
    stuck: Result of `Stuck.update`.
  """
  if config['termination'] != 'rllib':
    return stuck and config['termination'] == 'fork'
  collided = bool(measurements['collided'])
  return (
    measurements['step'] > measurements['max_steps']
    or measurements['next_command'] == 'REACH_GOAL'
    or (collided and config['early_terminate_on_collision'])
    or measurements['total_reward'] < _WORST
  )
