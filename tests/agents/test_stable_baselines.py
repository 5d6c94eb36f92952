"""Trained agents where stable-baselines3 expects its own."""

import functools

import gymnasium
import pytest

import agents
from tests.agents import training_runs


@pytest.mark.needs('stable_baselines3')
@pytest.mark.parametrize(
  'network', ['feed_forward_gaussian', 'recurrent_gaussian']
)
def test_evaluate_policy(network, tmp_path):
  """On a vector of two environments, and on a single one."""
  from stable_baselines3.common import evaluation, vec_env

  params = {**training_runs.SMALL, 'steps': 40, 'network': network}
  (record,) = agents.train(
    'Pendulum-v1', str(tmp_path), params=params, env_processes=False
  )
  make = functools.partial(gymnasium.make, 'Pendulum-v1')
  with agents.load(record['logdir']) as agent:
    for env in (vec_env.DummyVecEnv([make] * 2), make()):
      returns, lengths = evaluation.evaluate_policy(
        agent, env, n_eval_episodes=3, return_episode_rewards=True, warn=False
      )
      assert lengths == [200] * 3 and all(x < 0 for x in returns)
    found = agents.evaluate(agent, make(), 1, seed=0)
    env = vec_env.DummyVecEnv([make])
    env.seed(0)
    mean, _ = evaluation.evaluate_policy(agent, env, 1, warn=False)
    assert mean == pytest.approx(found.mean, rel=1e-4)
