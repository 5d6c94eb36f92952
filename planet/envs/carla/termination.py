"""When the environment wants an episode to end."""

import math

_FIRST_STUCK, _LOOK_FROM, _EVERY = 50, 70, 30
_MOVED = 0.2
_WORST = -100.0


class Stuck:
  """Notices that the vehicle has not moved for thirty steps.

  The way since the last look is measured every 30 steps from step 90 on, as
  in the fork.
  """

  def __init__(self, position):
    self._steps = 0
    self._reference = position
    self.displacement = 1000.0

  def update(self, position):
    """Take in the position after a step; returns whether it is stuck."""
    self._steps += 1
    if self._steps % _EVERY == 0:
      if self._steps > _LOOK_FROM:
        self.displacement = math.dist(position, self._reference)
      self._reference = position
    return self._steps > _FIRST_STUCK and self.displacement < _MOVED


def should_end(rule, measurements, stuck, early_on_collision):
  """Whether an episode should end.

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
