"""An environment of your own, for PPO and PlaNet: push a cart to the middle.

PPO learns from the observation, PlaNet from what `render` returns.

  agents-check-env my_env:PushCart-v0
  ppo-train --config=default --env=my_env:PushCart-v0 --logdir=logs/cart_ppo
  planet-train --config cpu --logdir logs/cart_planet \
      --params '{tasks: ["gym_my_env:PushCart-v0"], action_repeat: 2}'
"""

import gymnasium
import numpy as np


class PushCart(gymnasium.Env):
  """Cart on a rail whose middle is 0."""

  # PlaNet asks for 'rgb_array' when it creates the environment.
  metadata = {'render_modes': ['rgb_array']}
  # Bounds should be what occurs: PPO maps them to [-1, 1].
  observation_space = gymnasium.spaces.Box(-2, 2, (2,), np.float32)
  # The range of actions may be any; agents act in [-1, 1].
  action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

  def __init__(self, render_mode=None):
    self.render_mode = render_mode

  def reset(self, seed=None, options=None):
    # Sets self.np_random, so that --seed makes the same episodes again.
    super().reset(seed=seed)
    self._place, self._speed = self.np_random.uniform(-1, 1), 0.0
    return self._observe(), {}

  def step(self, action):
    push = float(np.clip(action[0], -1, 1))
    self._speed = 0.9 * self._speed + 0.1 * push
    self._place = float(np.clip(self._place + 0.1 * self._speed, -2, 2))
    reward = 1 - abs(self._place)
    # Neither ends early; max_episode_steps below ends episodes.
    return self._observe(), reward, False, False, {}

  def render(self):
    # Any size will do; PlaNet scales images to 64 x 64 pixels.
    image = np.full((64, 64, 3), 255, np.uint8)
    image[30:34, 31:33] = (0, 0, 255)
    column = int(32 + 14 * self._place)
    image[24:40, max(0, column - 4) : column + 4] = (255, 0, 0)
    return image

  def _observe(self):
    return np.array([self._place, self._speed], np.float32)


gymnasium.register('PushCart-v0', PushCart, max_episode_steps=100)
