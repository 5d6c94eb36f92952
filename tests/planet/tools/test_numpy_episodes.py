"""Recorded episodes as files, and as datasets of chunks."""

import os
import time

import numpy as np
import pytest

from agents.tools import graph_errors
from agents.tools.tf1 import tf
from planet.tools import loaders, numpy_episodes
from tests import golden


@pytest.mark.parametrize(
  'name, kwargs', [('full', {}), ('max_length3', dict(max_length=3))]
)
def test_recorded_reader(name, kwargs, tmp_path):
  """`planet/episode_reader`: 32 bits and cumulative rewards, rtol 1e-5."""
  data = golden.load('planet/episode_reader')
  np.savez_compressed(tmp_path / 'episode.npz', **data.below('in'))
  filename = str(tmp_path / 'episode.npz')
  episode = numpy_episodes.episode_reader(filename, **kwargs)
  expected = data.below('out/' + name)
  golden.assert_all_close(episode, expected)
  assert {k: v.dtype for k, v in episode.items()} == {
    k: v.dtype for k, v in expected.items()
  }


def test_reader_can_resize_and_add_noise(tmp_path):
  filename = str(tmp_path / 'episode.npz')
  write(filename, 5, 0)
  episode = numpy_episodes.episode_reader(filename, resize=2)
  assert episode['image'].shape == (5, 4, 4, 3)
  episode, again = [
    numpy_episodes.episode_reader(filename, action_noise=0.5) for _ in range(2)
  ]
  assert episode['action'].dtype == np.float32
  assert 0 < np.abs(episode['action']).max() < 3
  # As in the original, which derives it from the name.
  np.testing.assert_array_equal(episode['action'], again['action'])


def write(filename, length, number, size=2):
  """Episode whose images hold its number and rewards the time."""
  np.savez_compressed(
    filename,
    image=np.full((length, size, size, 3), number, np.uint8),
    action=np.zeros((length, 1), np.float32),
    reward=np.arange(length, dtype=np.float64),
  )


@pytest.fixture
def folder(tmp_path):
  """Two good episodes, one cut off, one of other sizes, one that is odd."""
  write(tmp_path / 'b.npz', 7, 1)
  write(tmp_path / 'd.npz', 9, 2)
  content = (tmp_path / 'b.npz').read_bytes()
  (tmp_path / 'a.npz').write_bytes(content[: len(content) // 2])
  write(tmp_path / 'c.npz', 7, 3, size=4)
  np.savez(tmp_path / 'e.npz', image=np.zeros((7, 2, 2, 3), np.uint8))
  return tmp_path


def read_batches(folder, count, **kwargs):
  """Batches of two chunks of three steps, from the same folder twice."""
  datasets = numpy_episodes.numpy_episodes(
    str(folder), str(folder), (2, 3), **kwargs
  )
  assert sorted(datasets) == ['test', 'train']
  batch = tf.data.make_one_shot_iterator(datasets.train).get_next()
  with tf.Session() as sess:
    return [sess.run(batch) for _ in range(count)]


def test_damaged_files_are_set_aside(folder):
  """They are renamed and skipped; the first good one is the example."""
  batches = read_batches(folder, 6)
  assert sorted(os.listdir(folder)) == [
    'a.npz.damaged',
    'b.npz',
    'c.npz.damaged',
    'd.npz',
    'e.npz.damaged',
  ]
  images = np.concatenate([batch['image'] for batch in batches])
  assert set(images.flat) == {1, 2}


def test_batches(folder):
  """Chunks of consecutive steps, with the right shapes and types."""
  double = lambda image: tf.cast(image, tf.float32) * 2
  for batch in read_batches(folder, 4, preprocess_fn=double):
    assert {k: (v.shape, v.dtype.name) for k, v in batch.items()} == dict(
      image=((2, 3, 2, 2, 3), 'float32'),
      action=((2, 3, 1), 'float32'),
      reward=((2, 3), 'float32'),
      **{'return': ((2, 3), 'float32')},
      length=((2,), 'int32'),
    )
    assert (np.diff(batch['reward']) == 1).all()
    assert (batch['length'] == 3).all()
    assert set(batch['image'].flat) <= {2, 4}


def test_loader_and_number_of_chunks(folder):
  """The loader gets reader, folder and batch size; chunks are consecutive."""
  calls = []

  def loader(reader, directory, batch_size):
    calls.append((directory, batch_size))
    while True:
      yield reader(str(folder / 'd.npz'))

  (batch,) = read_batches(folder, 1, loader=loader, num_chunks=2)
  assert calls == [(str(folder), 2)]
  assert (np.diff(batch['reward'].ravel()) == 1).all()


def test_shuffled_chunks(folder):
  """Those of one episode are in different batches, by the seed."""

  def loader(reader, unused_directory, unused_size, seed):
    while True:
      yield reader(str(folder / 'd.npz'))

  settings = dict(loader=loader, num_chunks=2, seed=1)
  first, again, ordered = [
    [x['reward'] for x in read_batches(folder, 9, shuffle_buffer=n, **settings)]
    for n in (8, 8, 0)
  ]
  np.testing.assert_array_equal(first, again)
  joined = [np.diff(x.ravel())[2] == 1 for x in first]
  assert not all(joined)
  assert all(np.diff(x.ravel())[2] == 1 for x in ordered)
  assert all((np.diff(x) == 1).all() for x in first)


def test_short_episode_is_set_aside(folder, caplog):
  write(folder / 'short.npz', 2, 5)
  for batch in read_batches(folder, 3):
    assert set(batch['image'].flat) <= {1, 2}
  assert (folder / 'short.npz.damaged').exists()
  assert 'it has 2 observations, but' in ' '.join(caplog.messages)


def test_folder_without_readable_episodes(tmp_path):
  (tmp_path / 'a.npz').write_bytes(b'no archive')
  with pytest.raises(ValueError, match='no readable episodes'):
    numpy_episodes.numpy_episodes(str(tmp_path), str(tmp_path), (2, 3))
  assert os.listdir(tmp_path) == ['a.npz.damaged']


def test_loaders_are_offered_under_their_old_place():
  for name in ('cache_loader', 'recent_loader', 'reload_loader', '_sample'):
    assert getattr(numpy_episodes, name) is getattr(loaders, name)


def test_error_of_a_loader():
  """It is told even if the dataset has asked for more episodes since."""

  def fail():
    raise OSError('on purpose')
    yield

  read, stream = graph_errors.remember(next), fail()
  for expected in (OSError, StopIteration):
    with pytest.raises(expected):
      read(stream)
  with pytest.raises(OSError, match='on purpose'), graph_errors.unwrapped():
    raise tf.errors.UnknownError(None, None, 'something failed')


def test_sessions_close_at_once(tmp_path):
  """No thread tunes the datasets; closing would wait up to a minute for it."""
  write(str(tmp_path / 'a.npz'), 5, 0)
  datasets = numpy_episodes.numpy_episodes(str(tmp_path), str(tmp_path), (1, 2))
  for dataset in datasets.values():
    assert dataset.options().autotune.enabled is False


def test_episodes_of_whole_numbers(tmp_path):
  """Older versions recorded them as integers; all are used, as float32."""
  for name, state in (('a', [1, 2, 3]), ('b', [0.5, 1, 2])):
    state, reward = np.array(state)[:, None], np.zeros(3)
    np.savez(tmp_path / f'{name}.npz', state=state, reward=reward)
  data = numpy_episodes.numpy_episodes(
    str(tmp_path), str(tmp_path), (2, 3), seed=0
  )
  batch = tf.data.make_one_shot_iterator(data.train).get_next()
  with tf.Session() as sess:
    state = sess.run(batch)['state']
  assert state.dtype == np.float32
  assert sorted(state[:, 0, 0]) == [0.5, 1]
  assert sorted(x.name for x in tmp_path.iterdir()) == ['a.npz', 'b.npz']


def test_seeded_batches_are_not_read_in_advance(tmp_path):
  """New episodes would be found sooner or later, as time has it."""
  np.savez(tmp_path / 'a.npz', reward=np.zeros(3))
  count = []

  def loader(reader, directory, batch_size, seed=None):
    while True:
      count.append(seed)
      yield reader(str(tmp_path / 'a.npz'))

  data = numpy_episodes.numpy_episodes(
    str(tmp_path), str(tmp_path), (2, 3), loader=loader, seed=5
  )
  batch = tf.data.make_one_shot_iterator(data.train).get_next()
  with tf.Session() as sess:
    for number in range(1, 4):
      sess.run(batch)
      time.sleep(0.1)
      assert count == 2 * number * [5]
