"""A goal environment of your own, for HER: move a point to its goal.

  agents-check-env my_goal_env:MovePoint-v0 --for her
  her-train --env=my_goal_env:MovePoint-v0 --num_timesteps=10000 \
      --log_path=logs/point
  her-play logs/point --trust my_goal_env
"""

import gymnasium
import numpy as np

PLACE = gymnasium.spaces.Box(-2, 2, (2,), np.float64)


class MovePoint(gymnasium.Env):
  """Point in the plane; what it has achieved is where it is."""

  metadata = {'render_modes': ['rgb_array']}
  # Three vectors under these names; both goals have the same shape.
  observation_space = gymnasium.spaces.Dict(
    {'observation': PLACE, 'achieved_goal': PLACE, 'desired_goal': PLACE}
  )
  action_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)

  def __init__(self, render_mode=None):
    self.render_mode = render_mode

  def reset(self, seed=None, options=None):
    super().reset(seed=seed)
    self._place = self.np_random.uniform(-1, 1, 2)
    self._goal = self.np_random.uniform(-1, 1, 2)
    return self._observe(), {}

  def step(self, action):
    self._place = np.clip(self._place + 0.2 * np.clip(action, -1, 1), -2, 2)
    reward = float(self.compute_reward(self._place, self._goal, {}))
    # Success is read from here. Episodes may end when it is reached.
    info = {'is_success': float(reward == 0)}
    return self._observe(), reward, False, False, info

  def compute_reward(self, achieved_goal, desired_goal, info):
    # Hindsight asks with batches: goals [batch, 2], and returns [batch].
    distance = np.linalg.norm(achieved_goal - desired_goal, axis=-1)
    return -(distance > 0.2).astype(np.float64)

  def render(self):
    # Only for videos.
    image = np.full((64, 64, 3), 255, np.uint8)
    for place, channel in ((self._goal, 0), (self._place, 1)):
      x, y = np.maximum(32 + 14 * place, 3).astype(int)
      image[y - 3 : y + 3, x - 3 : x + 3, channel] = 0
    return image

  def _observe(self):
    return {
      'observation': self._place.copy(),
      'achieved_goal': self._place.copy(),
      'desired_goal': self._goal.copy(),
    }


# Episodes have at most 30 steps, here always.
gymnasium.register('MovePoint-v0', MovePoint, max_episode_steps=30)
