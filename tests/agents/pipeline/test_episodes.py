"""Exploring some episodes, and cutting chunks into them."""

import numpy as np
import pytest

from agents.pipeline import episodes
from agents.pipeline import gym_explorer
from agents.run import errors
from tests.agents.pipeline import sessions
from tests.agents.pipeline import toy_agents
from tests.agents.pipeline import toy_envs

KEY = '/rewards'


def make_chunk(*rows, masks):
  """Chunk of values per worker; what belongs to the half-step is NaN."""
  values = np.array([[*row, np.nan] for row in rows], np.float32)
  return {
    KEY: values[..., None],
    '/masks': np.array(masks, np.float32)[..., None],
    '/other': values,
  }


def cut(cutter, chunk):
  """Values and lengths of the episodes."""
  found = cutter.cut(chunk)
  assert all(set(episode) == {KEY} for episode, _ in found)
  assert all(len(episode[KEY]) == 4 for episode, _ in found)
  return [episode[KEY][:length, 0].tolist() for episode, length in found]


def test_order_and_episodes_over_chunks():
  """Episodes come by the time of their ends, then by worker."""
  cutter = episodes.EpisodeCutter([KEY], 4)
  masks = [[0, 1, 0, 1], [0, 0, 1, 0], [0, 1, 0, 0]]
  chunk = make_chunk([1, 2, 3], [11, 12, 13], [21, 22, 23], masks=masks)
  assert cut(cutter, chunk) == [[11], [1, 2], [21, 22], [12, 13], [23]]
  # The memory uses its arrays again.
  chunk[KEY][:] = -1
  masks = [[1, 1, 0], [0, 1, 1], [0, 1, 0]]
  chunk = make_chunk([4, 5], [14, 15], [24, 25], masks=masks)
  assert cut(cutter, chunk) == [[3, 4, 5], [24, 25]]
  masks = [[0, 1], [1, 0], [0, 1]]
  chunk = make_chunk([6], [16], [26], masks=masks)
  assert cut(cutter, chunk) == [[14, 15, 16]]


def test_reset_forgets_what_was_begun():
  cutter = episodes.EpisodeCutter([KEY], 4)
  assert cut(cutter, make_chunk([1, 2], masks=[[0, 1, 1]])) == []
  assert cut(cutter, make_chunk([3, 4], masks=[[0, 1, 0]])) == [[3, 4]]


def test_old_steps_stay_behind_the_end():
  """As in `agents.ppo.memory`, which this has to be equal to."""
  cutter = episodes.EpisodeCutter([KEY], 4)
  masks = [[0, 1, 1, 0, 0]]
  first, second = cutter.cut(make_chunk([1, 2, 3, 4], masks=masks))
  assert first[0][KEY][:, 0].tolist() == [1, 2, 3, 0]
  assert second[0][KEY][:, 0].tolist() == [4, 2, 3, 0]
  assert (first[1], second[1]) == (3, 1)


def test_state():
  """A copy goes on where the original was."""
  cutter = episodes.EpisodeCutter([KEY], 4)
  fresh = episodes.EpisodeCutter([KEY], 4)
  fresh.load_state_dict(cutter.state_dict())
  cutter.cut(make_chunk([1, 2], masks=[[0, 1, 1]]))
  fresh.load_state_dict(cutter.state_dict())
  cutter.cut(make_chunk([8, 9], masks=[[1, 0, 1]]))
  assert cut(fresh, make_chunk([3], masks=[[1, 0]])) == [[1, 2, 3]]


def test_mistakes():
  cutter = episodes.EpisodeCutter([KEY], 4)
  with pytest.raises(errors.UsageError, match='at most 4.*max_length'):
    cutter.cut(make_chunk([1, 2, 3, 4, 5], masks=[[0, 1, 1, 1, 1, 0]]))
  with pytest.raises(errors.UsageError, match='as many workers'):
    cutter.cut(make_chunk([1], [2], masks=[[0, 1], [0, 1]]))


class SeedEnv(toy_envs.CountEnv):
  """Episodes as long as the seed says."""

  def seed(self, seed):
    self._length = seed


def test_explorer_stops_at_the_last_episode(tmp_path):
  """Whichever workers' episodes these are; nothing that was begun is lost."""
  session = sessions.SmallSession(tmp_path)
  explorer = gym_explorer.GymExplorer(
    session,
    {'agent': toy_agents.CountingAgent(session)},
    'train',
    env={'constructor': f'{__name__}.SeedEnv'},
    num_workers=2,
    n_episodes=3,
    quota=False,
    seed=2,
    processes=0,
  )
  cutter = episodes.EpisodeCutter([KEY], 4)
  first, second = explorer.update(), explorer.update()
  explorer.close()
  assert first[KEY].shape == second[KEY].shape == (2, 5, 1)
  assert cut(cutter, first) == [[1, 2], [1, 2, 3], [1, 2]]
  assert cut(cutter, second) == [[1, 2], [1, 2, 3], [1, 2]]
  assert explorer.n_episode == 6
