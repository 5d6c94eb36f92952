"""Hindsight sampling against recorded numbers, and what it means."""

import numpy as np
import pytest

from baselines_her import her_sampler
from tests.baselines_her import toy

REWARDS = {'sparse': toy.sparse_reward, 'info': toy.info_reward}


@pytest.mark.parametrize('case', range(5))
def test_recorded(case):
  """her_sampler.npz: exact draws, transitions, rewards; inputs untouched."""
  data = toy.group(toy.load('her_sampler'), f'case{case}_')
  seed, replay_k, _, _, batch = (int(x) for x in data['meta'])
  episodes = toy.group(data, 'in_')
  episodes['o_2'] = episodes['o'][:, 1:]
  episodes['ag_2'] = episodes['ag'][:, 1:]
  before = {k: v.copy() for k, v in episodes.items()}
  sample = her_sampler.make_sample_her_transitions(
    str(data['strategy']), replay_k, REWARDS[str(data['reward'])]
  )
  np.random.seed(seed)
  result = sample(episodes, batch)
  np.testing.assert_array_equal(np.random.uniform(size=4), data['next_uniform'])
  wanted = toy.group(data, 'out_')
  assert set(result) == set(wanted)
  for key, value in wanted.items():
    np.testing.assert_allclose(result[key], value, 1e-6, 1e-9, err_msg=key)
  for key, value in before.items():
    np.testing.assert_array_equal(episodes[key], value)
  np.random.seed(seed)
  draws = sample.draw(*episodes['u'].shape[:2], batch)
  np.testing.assert_array_equal(draws.episode, data['episode_idxs'])
  np.testing.assert_array_equal(draws.time, data['t_samples'])
  np.testing.assert_array_equal(draws.future, data['future_t'])
  np.testing.assert_array_equal(draws.relabel, data['her_mask'].astype(bool))


def test_all_recorded_cases_are_used():
  assert int(toy.load('her_sampler')['n_cases']) == 5


def test_goals_are_achieved_later_in_the_same_episode():
  """With k = 4, four of five goals come from later states, up to the last."""
  episodes, length = 7, 5
  number = np.arange(episodes)[:, None, None]
  time = np.arange(length + 1)[None, :, None]
  ag = np.broadcast_to(100.0 * number + time, (episodes, length + 1, 1))
  batch = {
    'o': ag,
    'ag': ag,
    'u': ag[:, :-1],
    'g': np.full((episodes, length, 1), -1.0),
    'o_2': ag[:, 1:],
    'ag_2': ag[:, 1:],
  }
  sample = her_sampler.make_sample_her_transitions(
    'future', 4, lambda ag_2, g, info: -(ag_2 != g)[:, 0].astype(float)
  )
  np.random.seed(0)
  result = sample(batch, 20000)
  goal, reached = result['g'][:, 0], result['ag_2'][:, 0]
  her = goal >= 0
  assert abs(her.mean() - 0.8) < 0.01
  assert (goal[her] // 100 == reached[her] // 100).all()
  assert (goal[her] >= reached[her]).all()
  assert set(goal[her] % 100) == {1, 2, 3, 4, 5}
  np.testing.assert_array_equal(result['r'] == 0, goal == reached)
