"""Exploring some episodes, and a memory that cuts chunks into them."""

import numpy as np
import pytest

from agents.pipeline import episodes, gym_explorer
from agents.run import errors
from tests.agents.pipeline import sessions, toy_agents, toy_envs

KEY = '/rewards'


def make_chunk(*rows, masks):
  """Chunk of values per worker; what belongs to the half-step is NaN."""
  values = np.array([[*row, np.nan] for row in rows], np.float32)
  return {
    KEY: values[..., None],
    '/masks': np.array(masks, np.float32)[..., None],
    '/other': values,
  }


def make_memory():
  return episodes.EpisodeMemory(None, keys=[KEY], max_length=4)


def cut(memory, chunk):
  """Values of the episodes that end in a chunk."""
  memory.store(chunk)
  found = memory.take(memory.length)
  assert set(found) == {KEY, '/lengths'} and memory.length == 0
  assert found[KEY].shape == (len(found['/lengths']), 4, 1)
  return [
    episode[:length, 0].tolist()
    for episode, length in zip(found[KEY], found['/lengths'])
  ]


def test_order_and_episodes_over_chunks():
  """Episodes come by the time of their ends, then by worker."""
  memory = make_memory()
  masks = [[0, 1, 0, 1], [0, 0, 1, 0], [0, 1, 0, 0]]
  chunk = make_chunk([1, 2, 3], [11, 12, 13], [21, 22, 23], masks=masks)
  assert cut(memory, chunk) == [[11], [1, 2], [21, 22], [12, 13], [23]]
  # The memory uses its arrays again.
  chunk[KEY][:] = -1
  masks = [[1, 1, 0], [0, 1, 1], [0, 1, 0]]
  chunk = make_chunk([4, 5], [14, 15], [24, 25], masks=masks)
  assert cut(memory, chunk) == [[3, 4, 5], [24, 25]]
  masks = [[0, 1], [1, 0], [0, 1]]
  chunk = make_chunk([6], [16], [26], masks=masks)
  assert cut(memory, chunk) == [[14, 15, 16]]


def test_reset_forgets_what_was_begun():
  memory = make_memory()
  assert cut(memory, make_chunk([1, 2], masks=[[0, 1, 1]])) == []
  assert cut(memory, make_chunk([3, 4], masks=[[0, 1, 0]])) == [[3, 4]]


def test_old_steps_stay_behind_the_end():
  """As in `agents.ppo.memory`, which this has to be equal to."""
  memory = make_memory()
  masks = [[0, 1, 1, 0, 0]]
  memory.store(make_chunk([1, 2, 3, 4], masks=masks))
  assert memory.take(3) is None
  found = memory.take(2)
  assert found[KEY][..., 0].tolist() == [[1, 2, 3, 0], [4, 2, 3, 0]]
  assert found['/lengths'].tolist() == [3, 1]


def test_state():
  """A copy goes on where the original was."""
  memory = make_memory()
  fresh = make_memory()
  fresh.load_state_dict(memory.state_dict())
  memory.store(make_chunk([7, 1, 2], masks=[[0, 0, 1, 1]]))
  fresh.load_state_dict(memory.state_dict())
  memory.store(make_chunk([8, 9], masks=[[1, 0, 1]]))
  assert cut(fresh, make_chunk([3], masks=[[1, 0]])) == [[7], [1, 2, 3]]


def test_mistakes():
  memory = make_memory()
  with pytest.raises(errors.UsageError, match='at most 4.*max_length'):
    memory.store(make_chunk([1, 2, 3, 4, 5], masks=[[0, 1, 1, 1, 1, 0]]))


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
  memory = make_memory()
  first, second = explorer.update(), explorer.update()
  explorer.close()
  assert first[KEY].shape == second[KEY].shape == (2, 5, 1)
  assert cut(memory, first) == [[1, 2], [1, 2, 3], [1, 2]]
  assert cut(memory, second) == [[1, 2], [1, 2, 3], [1, 2]]
  assert explorer.n_episode == 6
