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
  rule: str, measurements: dict[str, Any], stuck: bool, early_on_collision: bool
) -> bool:
  """Decide whether an episode should end.

  Args:
    rule: `fork`, `rllib` or `time`.
    measurements: Measurements of the step, with `total_reward`.
    stuck: Result of `Stuck.update`.
    early_on_collision: Whether any collision ends `rllib` episodes.
  """
  if rule == 'time':
    return False
  if rule == 'fork':
    return stuck
  assert rule == 'rllib', rule
  return (
    measurements['step'] > measurements['max_steps']
    or measurements['next_command'] == 'REACH_GOAL'
    or (early_on_collision and bool(measurements['collided']))
    or measurements['total_reward'] < _WORST
  )
