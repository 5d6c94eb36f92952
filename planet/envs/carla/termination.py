"""When the environment wants an episode to end."""

import math
from typing import Any

from planet.envs.carla import places

_FIRST_STUCK, _LOOK_FROM, _EVERY = 50, 70, 30
_MOVED = 0.2
_WORST = -100.0


class Stuck:
  """Notice that the vehicle has not moved for thirty steps.

  The way since the last look is measured every 30 steps from step 90 on, as
  in the fork.
  """

  def __init__(self, position: places.Point):
    self._steps = 0
    self._reference = position
    self.displacement = 1000.0

  def update(self, position: places.Point) -> bool:
    """Take in the position after a step; return whether it is stuck."""
    self._steps += 1
    if self._steps % _EVERY == 0:
      if self._steps > _LOOK_FROM:
        self.displacement = math.dist(position, self._reference)
      self._reference = position
    return self._steps > _FIRST_STUCK and self.displacement < _MOVED


def should_end(
  config: dict[str, Any], measurements: dict[str, Any], stuck: bool
) -> bool:
  """Decide whether an episode should end.

  Args:
    config: Dict as of `env_config.complete`.
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
