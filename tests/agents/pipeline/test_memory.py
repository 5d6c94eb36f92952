"""Memories: indices of the original, and what became of its faults."""

import numpy as np
import pytest

from agents.pipeline import chunks, episodes, memory
from agents.run import errors
from tests import golden
from tests.agents.pipeline import sessions


@pytest.fixture
def session(tmp_path):
  return sessions.SmallSession(tmp_path)


def make_chunk(number, steps=3, workers=2, overrun=1):
  """Values that count on from chunk to chunk, 100 apart between workers."""
  first = number * steps
  values = np.arange(first, first + steps + overrun, dtype=np.float32)
  values = values + 100 * np.arange(workers, dtype=np.float32)[:, None]
  return {'/x': values[..., None], '/count': values.astype(np.int64)}


def test_ring_equals_recorded_indices(session):
  """Start, end, length and contents after each chunk, also when full."""
  ring = memory.RingMemory(session, chunk_sample_len=3, buffer_chunk_len=4)
  table = golden.load_json('pipeline/pipeline_golden')
  for row in table['ring_chunk3_buffer4_overrun1']:
    ring.store(make_chunk(row['store']))
    assert (ring.start, ring.end) == (row['start'], row['end'])
    full = ring.length == ring.capacity
    assert (ring.length, full) == (row['length'], row['full'])
    assert ring.get_index(np.arange(ring.num_valid)).tolist() == row['valid']
    assert ring.num_valid == len(row['valid'])
    stored = ring.get_buffer()['/x']
    last = stored[:, row['last_chunk']]
    golden.assert_close(ring.get_last_chunk()['/x'], last)
    recorded = [0 if x is None else x for x in row['worker0']]
    assert stored[0, :, 0].tolist() == recorded
    golden.assert_close(last[1], last[0] + 100)


def test_roll_equals_recorded_contents(session):
  """Entries stay in order; the oldest chunk is pushed out on the left."""
  roll = memory.RollMemory(session, chunk_sample_len=3, buffer_chunk_len=2)
  table = golden.load_json('pipeline/pipeline_golden')
  for row in table['roll_chunk3_buffer2']:
    roll.store(make_chunk(row['store']))
    assert roll.start == 0
    full = roll.length == roll.capacity
    assert (roll.length, full) == (row['i_index'], row['full'])
    assert roll.capacity == row['size']
    stored = roll.get_buffer()['/x'][0, : roll.length, 0]
    assert stored.tolist() == row['worker0']


def test_next_index_wraps(session):
  ring = memory.RingMemory(session, chunk_sample_len=3, buffer_chunk_len=4)
  assert ring.get_index_move_n_steps(np.array([1, 11]), 2).tolist() == [3, 1]


@pytest.mark.parametrize('overrun', [0, 1, 2])
def test_each_overrun_keeps_the_newest_entries(session, overrun):
  """Whatever was stored: contents in order of time, valid ones, lengths."""
  ring = memory.RingMemory(
    session, chunk_sample_len=2, buffer_chunk_len=3, overrun=overrun
  )
  assert ring.length == 0 and ring.num_valid == 0
  assert ring.state_dict() == {} and ring.get_last_chunk() == {}
  for number in range(9):
    ring.store(make_chunk(number, steps=2, overrun=overrun))
    last = 2 * (number + 1) + overrun
    length = min(6, last)
    assert ring.length == length
    entries = ring.state_dict()['/count'][0]
    assert entries.tolist() == list(range(last - length, last))
    valid = ring.get_index(np.arange(ring.num_valid))
    assert len(valid) == length - overrun
    assert ring.get_buffer()['/count'][0, valid].tolist() == (
      entries[: length - overrun].tolist()
    )


def test_one_chunk_of_fixed_length(session):
  roll = memory.RollMemory(session, chunk_sample_len=3, buffer_chunk_len=1)
  for number in range(3):
    roll.store(make_chunk(number))
    golden.assert_all_close(dict(roll.get_buffer()), make_chunk(number))
  with pytest.raises(errors.UsageError, match='/x of a chunk has shape'):
    roll.store(make_chunk(0, steps=4))


def test_late_and_missing_keys(session):
  """Unknown values are NaN, or zero where there is no NaN."""
  ring = memory.RingMemory(session, chunk_sample_len=3, buffer_chunk_len=3)
  ring.store(make_chunk(0))
  late = {'/f': np.ones((2, 4), np.float32), '/b': np.ones((2, 4), bool)}
  ring.store({**make_chunk(1), **late})
  ring.store(make_chunk(2))
  stored = ring.state_dict()
  nan = np.nan
  # The missing half-step of the third chunk replaces that of the second.
  expected = [nan, nan, 1, 1, 1, nan, nan, nan, nan]
  np.testing.assert_array_equal(stored['/f'][1], expected)
  np.testing.assert_array_equal(stored['/b'][1], np.array(expected) == 1)
  assert stored['/b'].dtype == bool


@pytest.mark.parametrize(
  'first, later, kind',
  [
    (0, 0.5, np.float64),
    (np.int8(0), 300, np.int64),
    (True, 2, np.int64),
    (np.float32(0), 0.5, np.float32),
    (np.float32(0), 2, np.float32),
  ],
)
def test_numbers_that_begin_whole(session, first, later, kind):
  """Agents of users may return such actions; later ones were cut."""
  made = []
  for values in ([first, first], [first, later], [later, later]):
    chunk = chunks.Chunk(1)
    for time, value in enumerate(values):
      chunk.put(time, '/x', np.array([value]))
      chunk.put(time, '/masks', np.ones((1, 1)))
    made.append(chunk.finish(1))
  assert made[1]['/x'].tolist() == [[first, later]]
  assert made[1]['/x'].dtype == kind
  ring = memory.RingMemory(session, buffer_chunk_len=4)
  cut = episodes.EpisodeMemory(None, keys=['/x'], max_length=4)
  for chunk in made:
    ring.store(chunk)
    cut.store(chunk)
  values = [first, first, later, later]
  found = ring.state_dict()['/x'][0]
  assert found.tolist() == values and found.dtype == kind
  # Without the half-step at the end.
  found = cut.state_dict()['rows']['/x'][0, :3]
  assert found.tolist() == values[:3] and found.dtype == kind


def test_infos_are_not_stored(session):
  chunk = {
    **make_chunk(0),
    '/infos/a': np.zeros((2, 4)),
    '/infos/b': np.zeros((2, 4)),
  }
  sizes = dict(chunk_sample_len=3, buffer_chunk_len=2)
  ring = memory.RingMemory(session, **sizes)
  other = memory.RingMemory(session, **sizes, exclude_keys=['*/a', '/count'])
  for each in (ring, other):
    each.store(chunk)
  assert set(ring.get_buffer()) == {'/x', '/count'}
  assert set(other.get_buffer()) == {'/x', '/infos/b'}
  nothing = memory.RingMemory(session, exclude_keys=['*'])
  with pytest.raises(errors.UsageError, match='no key to store'):
    nothing.store(chunk)


def test_wrong_shapes_are_refused(session):
  """The message names key, given and expected shape; nothing is stored."""
  ring = memory.RingMemory(session, chunk_sample_len=3, buffer_chunk_len=4)
  ring.store(make_chunk(0))
  wrong = make_chunk(1)
  wrong['/x'] = wrong['/x'].repeat(2, -1)
  message = r'/x .* \(2, 4, 2\), but must have \(2, 4, 1\)'
  with pytest.raises(errors.UsageError, match=message):
    ring.store(wrong)
  with pytest.raises(
    errors.UsageError, match=r'\(3, 4, 1\), but must have \(2, 4, 1\)'
  ):
    ring.store(make_chunk(1, workers=3))
  with pytest.raises(
    errors.UsageError, match=r'\(2, 3, 1\), but must have \(2, 4, 1\)'
  ):
    ring.store(make_chunk(1, steps=2))
  assert ring.length == 4
  with pytest.raises(errors.UsageError, match='no room'):
    memory.RingMemory(session, chunk_sample_len=3, buffer_chunk_len=1)


def test_contents_are_read_only(session):
  ring = memory.RingMemory(session, chunk_sample_len=3, buffer_chunk_len=4)
  ring.store(make_chunk(0))
  with pytest.raises(ValueError, match='read-only'):
    ring.get_buffer()['/x'][:] = 0


@pytest.mark.parametrize('stores', [1, 3, 4, 6])
def test_snapshot_is_small_and_starts_anew(session, stores):
  """Only filled entries, oldest first; going on gives the same contents."""
  args = dict(chunk_sample_len=3, buffer_chunk_len=4)
  ring = memory.RingMemory(session, **args)
  for number in range(stores):
    ring.store(make_chunk(number))
  snapshot = ring.state_dict()
  assert snapshot['/x'].shape == (2, min(12, 3 * stores + 1), 1)
  other = memory.RingMemory(session, **args)
  other.load_state_dict(snapshot)
  assert other.start == 0 and other.length == ring.length
  for number in range(stores, stores + 3):
    golden.assert_all_close(other.state_dict(), ring.state_dict())
    golden.assert_all_close(other.get_last_chunk(), ring.get_last_chunk())
    for each in (ring, other):
      each.store(make_chunk(number))


def test_too_large_snapshot_is_refused(session):
  ring = memory.RingMemory(session, chunk_sample_len=3, buffer_chunk_len=4)
  for number in range(4):
    ring.store(make_chunk(number))
  small = memory.RingMemory(session, chunk_sample_len=3, buffer_chunk_len=2)
  with pytest.raises(errors.UsageError, match='12 entries'):
    small.load_state_dict(ring.state_dict())


def test_snapshot_with_keys_that_are_no_longer_stored(session):
  """They are left out, as later chunks do not have them."""
  args = dict(chunk_sample_len=3, buffer_chunk_len=4)
  ring = memory.RingMemory(session, **args)
  ring.store({**make_chunk(0), '/y': make_chunk(0)['/x']})
  other = memory.RingMemory(session, exclude_keys=['/y'], **args)
  other.load_state_dict(ring.state_dict())
  assert '/x' in other.get_buffer() and '/y' not in other.get_buffer()


def test_size_is_reported_once(session):
  """Megabytes per key, when the first chunk tells the shapes."""
  ring = memory.RingMemory(
    session, chunk_sample_len=3, buffer_chunk_len=2**17 // 3
  )
  ring.store(make_chunk(0))
  ring.store(make_chunk(1))
  with open(session.path + '/report.log') as file_:
    report = file_.read()
  assert report.count('MB') == 3 and '/count: 2.0 MB' in report
