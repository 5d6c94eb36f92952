"""Replay of episodes against recorded numbers."""

import numpy as np
import pytest

from agents.run import errors
from baselines_her import her_sampler, replay_buffer
from tests.baselines_her import toy


def make_buffer(stream, size, horizon):
  return replay_buffer.ReplayBuffer(
    {k: v.shape[1:] for k, v in stream.items()},
    size,
    horizon,
    her_sampler.make_sample_her_transitions('future', 4, toy.sparse_reward),
  )


@pytest.mark.parametrize('case', range(2))
def test_recorded(case):
  """replay_buffer.npz: places, counters, contents and a sample, all exact."""
  data = toy.group(toy.load('replay_buffer'), f'case{case}_')
  size, horizon, seed, capacity = (int(x) for x in data['meta'])
  stream = {k: data['in_' + k] for k in toy.EPISODE_KEYS}
  buffer = make_buffer(stream, size, horizon)
  assert buffer.size == capacity
  for array in buffer.buffers.values():
    array[...] = -99
  np.random.seed(seed)
  start, held, stored = 0, [], []
  for count in data['incs']:
    buffer.store_episode(
      {k: v[start : start + count] for k, v in stream.items()}
    )
    start += count
    held.append(buffer.get_current_episode_size())
    stored.append(buffer.get_transitions_stored())
  sample = buffer.sample(12)
  np.testing.assert_array_equal(held, data['current_size_episodes'])
  np.testing.assert_array_equal(stored, data['n_transitions_stored'])
  assert buffer.get_current_size() == data['get_current_size']
  assert buffer.full == bool(data['full'])
  for key in toy.EPISODE_KEYS:
    np.testing.assert_array_equal(buffer.buffers[key], data['buf_' + key])
  wanted = toy.group(data, 'sample_')
  assert set(sample) == set(wanted)
  for key, value in wanted.items():
    np.testing.assert_allclose(sample[key], value, 1e-7, 1e-12)


def make_small(capacity=4):
  stream = {
    'o': np.zeros((9, 3, 1)),
    'ag': np.zeros((9, 3, 1)),
    'g': np.zeros((9, 2, 1)),
    'u': np.arange(9.0)[:, None, None] * np.ones((1, 2, 1)),
  }
  return make_buffer(stream, capacity * 3, 3), stream


def test_partly_fitting_episodes():
  """The free places first, then places that were taken before."""
  buffer, stream = make_small()
  np.random.seed(1)
  buffer.store_episode({k: v[:3] for k, v in stream.items()})
  buffer.store_episode({k: v[3:6] for k, v in stream.items()})
  np.random.seed(1)
  taken = np.random.randint(0, 3, 2)
  wanted = np.array([0.0, 1, 2, 3])
  wanted[taken] = [4, 5]
  np.testing.assert_array_equal(buffer.buffers['u'][:, 0, 0], wanted)
  assert buffer.full and buffer.n_transitions_stored == 18


def test_state_goes_through():
  buffer, stream = make_small()
  buffer.store_episode({k: v[:3] for k, v in stream.items()})
  other, _ = make_small()
  other.load_state_dict(buffer.state_dict())
  assert other.current_size == 3 and other.n_transitions_stored == 9
  np.testing.assert_array_equal(other.buffers['u'][:3], stream['u'][:3])
  state = buffer.state_dict()
  for changed in ({**state, 'u': state['u'][..., :0]}, {'o': state['o']}):
    with pytest.raises(errors.UsageError, match='has changed'):
      other.load_state_dict(changed)


def test_misuse():
  buffer, stream = make_small()
  with pytest.raises(AssertionError, match='empty'):
    buffer.sample(1)
  with pytest.raises(AssertionError, match='do not fit'):
    buffer.store_episode({k: v[:5] for k, v in stream.items()})
  with pytest.raises(AssertionError, match='different numbers'):
    buffer.store_episode({**stream, 'u': stream['u'][:2]})
  buffer.store_episode({k: v[:3] for k, v in stream.items()})
  buffer.clear_buffer()
  assert buffer.get_current_size() == 0 and not buffer.full


def test_too_large_an_info():
  """A camera image in it, for example."""
  shapes = {'o': (3, 4), 'info_image': (2, 10**15)}
  with pytest.raises(
    errors.UsageError, match=r"for info\['image'\], of size 1"
  ):
    replay_buffer.ReplayBuffer(shapes, 30, 3, None)
