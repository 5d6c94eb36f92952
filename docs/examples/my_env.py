"""Your own environment, for PPO and PlaNet: push a cart to the middle.

ppo-train --config=default --env=my_env:PushCart-v0 --logdir=logs/cart_ppo
planet-train --config cpu --logdir=logs/cart_planet \
  --params '{tasks: ["my_env:PushCart-v0"], action_repeat: 2}'
"""

import gymnasium
import numpy as np


class PushCart(gymnasium.Env):
  metadata = {'render_modes': ['rgb_array']}  # What PlaNet asks for.
  # Bounds of place and speed should be what occurs: PPO scales by them.
  observation_space = gymnasium.spaces.Box(-2, 2, (2,), np.float32)
  action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

  def __init__(self, render_mode=None):
    self.render_mode = render_mode

  def reset(self, seed=None, options=None):
    super().reset(seed=seed)  # Makes np_random, so that --seed has an effect.
    self.state = np.array([self.np_random.uniform(-1, 1), 0], np.float32)
    return self.state, {}

  def step(self, action):
    speed = 0.9 * self.state[1] + 0.1 * action[0]
    place = np.clip(self.state[0] + 0.1 * speed, -2, 2)
    self.state = np.array([place, speed], np.float32)
    # Neither flag ends episodes; max_episode_steps below does.
    return self.state, 1 - abs(float(place)), False, False, {}

  def render(self):
    # PlaNet sees this image, of any size; PPO does without.
    image = np.full((64, 64, 3), 255, np.uint8)
    image[24:40, 28:36] = (255, 0, 0)
    return np.roll(image, int(13 * self.state[0]), axis=1)


gymnasium.register('PushCart-v0', PushCart, max_episode_steps=100)
