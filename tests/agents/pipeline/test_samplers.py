"""Steps from memories to batches."""

import numpy as np
import pytest

from agents.pipeline import gym_explorer, memory, samplers
from agents.run import errors
from tests import golden
from tests.agents.pipeline import sessions, toy_agents

CHAIN = 'tests.agents.pipeline.toy_envs.ChainEnv'
COUNT = 'tests.agents.pipeline.toy_envs.CountEnv'


@pytest.fixture
def session():
  return sessions.SmallSession()


def fill(session, constructor=COUNT, cycles=20, chunks=15, kwargs=None, **args):
  """Ring memory that has been filled by an explorer of two workers."""
  agents = {'agent': toy_agents.CountingAgent(session)}
  env = {'constructor': constructor, 'kwargs': kwargs or {}}
  explorer = gym_explorer.GymExplorer(
    session, agents, env=env, num_workers=2, processes=0, n_steps=2
  )
  ring = memory.RingMemory(
    session, chunk_sample_len=2, buffer_chunk_len=chunks, **args
  )
  for _ in range(cycles):
    ring.store(explorer.update())
  return ring, explorer


@pytest.mark.parametrize('name, tau', [('gae', 0.95), ('discounted', None)])
def test_advantages_equal_the_recorded_ones(name, tau):
  """Within the rounding of 32 bits."""
  recorded = golden.load_json('pipeline/pipeline_golden')[name]
  chunk = {k: np.float32(v) for k, v in recorded['inputs'].items()}
  info = {'agent': 'agent', 'gamma': recorded['gamma'], 'tau': tau}
  result = samplers.compute_advantages(chunk, info)
  for key in ('returns', 'advantages'):
    value = result[f'/agents/agent/artifacts/{key}']
    assert np.isnan(value[:, -1]).all()
    golden.assert_close(value[:, :-1], np.float32(recorded[key]), name=key)


def test_compose_chains_and_stops():
  """Facts are passed on, but not to the next call."""

  def count(data, info):
    info['seen'] = info.get('seen', 0) + 1
    return [*data, info['seen']]

  twice = samplers.Compose([count, count], seen=5)
  assert twice([]) == twice([]) == [6, 7]
  ends = samplers.Compose([lambda data, info: None, count])
  assert ends([]) is None


def test_options_that_no_function_reads():
  """Functions of users may read any."""
  shipped = [samplers.pick_memory, samplers.sample_replay]
  samplers.Compose(shipped, batch_size=64, mode='train')
  with pytest.raises(errors.UsageError, match='Did you mean batch_size'):
    samplers.Compose(shipped, batch_sise=64)
  samplers.Compose([*shipped, lambda data, info: data], own=1)


@pytest.mark.parametrize('missing', ['agent', 'gamma', 'tau'])
def test_options_that_are_missing(missing):
  info = {'agent': 'agent', 'gamma': 0.9, 'tau': None}
  del info[missing]
  with pytest.raises(errors.UsageError, match=f'have no {missing}; add it'):
    samplers.compute_advantages({}, info)


def test_memory_is_picked_by_mode(session):
  ring, _ = fill(session)
  assert samplers.pick_memory({'train': ring}, {}) is ring
  last = samplers.get_last_chunk(ring, {})
  assert last['/rewards'].shape == (2, 3, 1)
  empty = memory.RingMemory(session)
  assert samplers.get_last_chunk(empty, {}) is None


@pytest.mark.parametrize('truncated', [False, True])
def test_successors(session, truncated):
  """Also of the last step of an episode, and where the ring is closed."""
  ring, _ = fill(session, kwargs={'truncated': truncated})
  assert ring.length == ring.capacity
  batch = samplers.sample_replay(ring, {'batch_size': 50})
  assert '/final_observations/agent' not in batch
  time, following = (batch[f'/observations/agent{x}'][:, 0] for x in ('', '_2'))
  np.testing.assert_array_equal(following, time + 1)
  episodes = (batch[f'/observations/agent{x}'][:, 1] for x in ('', '_2'))
  np.testing.assert_array_equal(*episodes)
  np.testing.assert_array_equal(batch['/rewards'][:, 0], time + 1)
  flag = '/truncations' if truncated else '/terminals'
  np.testing.assert_array_equal(batch[flag][:, 0], time == 2)
  assert len(np.unique(time)) == 3


def test_too_few_data(session):
  """As many transitions as asked for are not enough."""
  ring, _ = fill(session, cycles=3)
  assert ring.num_valid * ring.num_workers == 12
  assert samplers.sample_replay(ring, {'batch_size': 12}) is None
  assert samplers.sample_replay(ring, {'batch_size': 11}) is not None
  empty = memory.RingMemory(session)
  assert samplers.sample_replay(empty, {'batch_size': 1}) is None


def test_steps_before_a_reset_are_not_used(session):
  """Their successor was overwritten by another episode."""
  ring, explorer = fill(session, kwargs={'length': 99}, cycles=3)
  explorer.reset()
  for _ in range(3):
    ring.store(explorer.update())
  np.random.seed(0)
  seen = set()
  for _ in range(20):
    batch = samplers.sample_replay(ring, {'batch_size': 20})
    time, following = (
      batch[f'/observations/agent{x}'][:, 0] for x in ('', '_2')
    )
    np.testing.assert_array_equal(following, time + 1)
    seen |= set(zip(*batch['/observations/agent'][:, :2].T.tolist()))
  assert seen == {(x, y) for x in range(6) for y in (0, 1)} - {(5, 0)}


def test_no_step_has_a_successor(session):
  """An error instead of drawing for ever."""
  ring, explorer = fill(session, kwargs={'length': 99}, cycles=1)
  chunk = explorer.update()
  chunk['/masks'] = 0 * chunk['/masks']
  for _ in range(20):
    ring.store(chunk)
  with pytest.raises(errors.UsageError, match='do_reset'):
    samplers.sample_replay(ring, {'batch_size': 20})


def test_dropped_final_observations_are_noticed(session):
  """Only limits of time need them."""
  exclude = dict(exclude_keys=['/infos/*', '/final_observations/*'])
  ring, _ = fill(session, kwargs={'truncated': True}, **exclude)
  with pytest.raises(errors.UsageError, match='/final_observations/agent'):
    samplers.sample_replay(ring, {'batch_size': 50})
  ring, _ = fill(session, **exclude)
  batch = samplers.sample_replay(ring, {'batch_size': 50})
  assert batch['/observations/agent_2'].shape == (50, 3)
