"""Environments of gymnasium as PlaNet sees them."""

import gymnasium
import numpy as np
import pytest

from agents.run import errors
from planet.envs import gym_pixels


def test_discrete_actions():
  env = gym_pixels.make('CartPole-v1', 1, 100, pixels=False)
  assert env.action_space.shape == (2,)
  assert env.reset()['state'].dtype == np.float32
  observ, reward, _, _ = env.step(np.array([0.3, -0.8], np.float32))
  assert observ['state'].shape == (4,) and reward == 1


@pytest.mark.parametrize(
  'observ', [np.array([3, 4]), np.array([[3], [4]], np.uint8), np.float64(3)]
)
def test_vectors_of_any_box(observ):
  class Env(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 9, observ.shape, observ.dtype)
    action_space = gymnasium.spaces.Box(-1, 1, (1,))

    def reset(self, seed=None, options=None):
      return observ, {}

  env = gym_pixels.make(Env(), 1, 100, pixels=False)
  state = env.reset()['state']
  assert state.dtype == np.float32
  assert state.tolist() == observ.flatten().tolist()
  assert env.observation_space.spaces['state'].contains(state)


def test_actions_with_one_bound():
  class Env(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (1,))
    action_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,))

  env = Env()
  gym_pixels.make(env, 1, 100, pixels=False)
  env.action_space = gymnasium.spaces.Box(0, np.inf, (1,))
  with pytest.raises(errors.UsageError, match='one bound'):
    gym_pixels.make(env, 1, 100, pixels=False)
