"""Environments of gymnasium as PlaNet sees them."""

import numpy as np

from planet.envs import gym_pixels


def test_discrete_actions():
  env = gym_pixels.make('CartPole-v1', 1, 100, pixels=False)
  assert env.action_space.shape == (2,)
  assert env.reset()['state'].dtype == np.float32
  observ, reward, _, _ = env.step(np.array([0.3, -0.8], np.float32))
  assert observ['state'].shape == (4,) and reward == 1
