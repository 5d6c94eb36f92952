"""Endless streams of episodes, against `planet/loaders.json`."""

import errno
import itertools
import os
import random
import weakref

import numpy as np
import pytest

from planet.tools import loaders
from tests import golden, processes

RECORDED = golden.load_json('planet/loaders')
ALL = [
  (loaders.cache_loader, dict(every=5)),
  (loaders.recent_loader, dict(every=5)),
  (loaders.reload_loader, {}),
  (loaders.dummy_loader, {}),
]
all_loaders = pytest.mark.parametrize(
  'loader, kwargs', ALL, ids=[x.__name__ for x, _ in ALL]
)


@pytest.fixture(autouse=True)
def limit():
  with processes.time_limit(20):
    yield


def read_name(filename):
  return os.path.basename(filename).removesuffix('.npz')


@pytest.mark.parametrize(
  'case',
  RECORDED['cases'],
  ids=[f'{x["loader"]}-{x["every"]}' for x in RECORDED['cases']],
)
def test_recorded_order(case, tmp_path):
  """Names that are yielded while files appear; exact, with both seeds."""
  add = lambda name: (tmp_path / f'{name}.npz').touch()
  for name in case['initial_files']:
    add(name)
  appear = dict(case['file_added_before_yield'])
  random.seed(case['python_random_seed'])
  np.random.seed(case['numpy_random_seed'])
  kwargs = {} if case['every'] is None else dict(every=case['every'])
  stream = getattr(loaders, case['loader'])(
    read_name, str(tmp_path), 4, **kwargs
  )
  names = []
  for index in range(len(case['yields'])):
    if index in appear:
      add(appear[index])
    names.append(next(stream))
  assert names == case['yields']


def test_recorded_permutations():
  """Permutations until an amount is reached; exact."""
  for row in RECORDED['permuted']:
    np.random.seed(row['numpy_random_seed'])
    result = list(loaders._permuted(row['sequence'], row['amount']))
    assert result == row['result']
  assert list(loaders._permuted([], 5)) == RECORDED['permuted_empty'] == []


def test_recorded_samples():
  """Random elements without repetition; exact."""
  for row in RECORDED['sample']:
    random.seed(row['python_random_seed'])
    result = list(loaders._sample(row['sequence'], row['amount']))
    assert result == row['result']


@all_loaders
def test_empty_folder(loader, kwargs, tmp_path, monkeypatch):
  """An error after the patience (the original waited for ever)."""
  monkeypatch.setattr(loaders, '_TIMEOUT', 0.3)
  with pytest.raises(RuntimeError, match=f'no episodes in {tmp_path}'):
    next(loader(read_name, str(tmp_path), 4, **kwargs))


@all_loaders
def test_episodes_that_come_late(loader, kwargs, tmp_path, monkeypatch):
  """Episodes may appear within the patience."""
  monkeypatch.setattr(loaders, '_TIMEOUT', 5.0)
  monkeypatch.setattr(
    loaders.time, 'sleep', lambda unused: write(tmp_path / 'a.npz')
  )
  episode = next(loader(read_arrays, str(tmp_path), 4, **kwargs))
  assert episode['x'].shape == (4, 2)


@pytest.mark.parametrize(
  'loader', [loaders.cache_loader, loaders.recent_loader]
)
def test_every_one(loader, tmp_path):
  """It does not hang (half of one is zero), and finds new files."""
  (tmp_path / 'a.npz').touch()
  stream = loader(read_name, str(tmp_path), 4, every=1)
  assert list(itertools.islice(stream, 5)) == ['a'] * 5
  (tmp_path / 'b.npz').touch()
  assert set(itertools.islice(stream, 40)) == {'a', 'b'}


def write(filename):
  np.savez(filename, x=np.ones((4, 2), np.float32), y=np.uint8([1] * 4))


def read_arrays(filename):
  with np.load(filename) as archive:
    return {key: archive[key] for key in archive.files}


@all_loaders
def test_damaged_file(loader, kwargs, tmp_path):
  """Set aside once, and skipped; the others are used."""
  write(tmp_path / 'b.npz')
  content = (tmp_path / 'b.npz').read_bytes()
  (tmp_path / 'a.npz').write_bytes(content[:-30])
  stream = loader(read_arrays, str(tmp_path), 4, **kwargs)
  for episode in itertools.islice(stream, 7):
    assert sorted(episode) == ['x', 'y']
  assert sorted(os.listdir(tmp_path)) == ['a.npz.damaged', 'b.npz']


def test_file_that_disappears(tmp_path):
  """Nothing is set aside if another process has removed it."""
  write(tmp_path / 'a.npz')

  def reader(filename):
    raise FileNotFoundError(filename)

  assert loaders.read_episode(reader, str(tmp_path / 'a.npz')) is None
  assert os.listdir(tmp_path) == ['a.npz']


@pytest.mark.parametrize(
  'name', ['EIO', 'ESTALE', 'EACCES', 'EMFILE', 'ENOMEM']
)
def test_errors_of_the_system_are_not_damage(name, tmp_path):
  """The episode stays as it is, and the error is raised."""
  write(tmp_path / 'a.npz')

  def reader(filename):
    raise OSError(getattr(errno, name), os.strerror(getattr(errno, name)))

  with pytest.raises(OSError):
    loaders.read_episode(reader, str(tmp_path / 'a.npz'))
  assert os.listdir(tmp_path) == ['a.npz']


def test_flipped_bits(tmp_path):
  """Whatever they lead to, the file is read or set aside."""
  path = str(tmp_path / 'a.npz')
  write(tmp_path / 'good.npz')
  with np.load(tmp_path / 'good.npz') as archive:
    np.savez_compressed(tmp_path / 'good.npz', **dict(archive))
  content = (tmp_path / 'good.npz').read_bytes()
  damaged = 0
  for place in range(len(content)):
    for bit in (0, 3, 7):
      flipped = bytearray(content)
      flipped[place] ^= 1 << bit
      (tmp_path / 'a.npz').write_bytes(flipped)
      if loaders.read_episode(read_arrays, path) is None:
        damaged += 1
        os.remove(path + '.damaged')
  assert damaged > len(content)


@pytest.mark.parametrize(
  'loader, kwargs, expected', [(*ALL[0], 1), (*ALL[1], 1), (*ALL[2], 6)]
)
def test_files_are_read_once_or_always(loader, kwargs, expected, tmp_path):
  """Caches keep what was read; `reload_loader` reads anew every time."""
  (tmp_path / 'a.npz').touch()
  calls = []
  stream = loader(lambda x: calls.append(x) or x, str(tmp_path), 4, **kwargs)
  list(itertools.islice(stream, 6))
  assert len(calls) == expected


def test_dummy_data(tmp_path):
  """Random numbers of the types and shapes of an episode."""
  write(tmp_path / 'a.npz')
  stream = loaders.dummy_loader(read_arrays, str(tmp_path), 4)
  one, two = itertools.islice(stream, 2)
  assert {k: (v.shape, v.dtype.name) for k, v in one.items()} == dict(
    x=((4, 2), 'float32'), y=((4,), 'uint8')
  )
  assert 0 <= one['x'].min() and one['x'].max() < 1
  assert (one['x'] != two['x']).all()


@pytest.mark.parametrize(
  'loader', [loaders.cache_loader, loaders.recent_loader]
)
def test_bounded_memory(loader, tmp_path, caplog):
  """The order is the same, few episodes are alive at a time, and one line
  says so.
  """
  for number in range(12):
    (tmp_path / f'{number:02}.npz').touch()
  alive = weakref.WeakSet()

  class Episode:
    nbytes = 2**20

    def __init__(self, filename):
      self.name = read_name(filename)
      alive.add(self)

  def names(amount, most, **kwargs):
    stream = loader(Episode, str(tmp_path), 4, every=5, seed=1, **kwargs)
    result = []
    for episode in itertools.islice(stream, amount):
      result.append(episode.name)
      assert len(alive) <= most
    return result

  expected = names(40, 13)
  assert len(set(expected)) > 8
  assert not caplog.messages
  assert names(40, 4, max_bytes=3.5 * 2**20) == expected
  (message,) = caplog.messages
  assert f'Episodes in {tmp_path} exceed 3.5 MiB' in message
  assert 'loader_max_bytes' in message


def test_episodes_that_vanish(tmp_path):
  """Files that are deleted while they are not in memory are passed over."""
  for number in range(4):
    (tmp_path / f'{number}.npz').touch()

  def read(filename):
    open(filename).close()
    return np.str_(read_name(filename))

  stream = loaders.cache_loader(
    read, str(tmp_path), 4, every=8, seed=1, max_bytes=1
  )
  next(stream)
  for number in range(3):
    (tmp_path / f'{number}.npz').unlink()
  rest = list(itertools.islice(stream, 20))
  assert set(rest[10:]) == {'3'}


def test_scan_draws_from_the_newest(tmp_path):
  """A window of three episodes follows those that are added."""

  def add(number):
    (tmp_path / f'{number:02}.npz').write_text('')

  def draw(loader, count):
    return {next(loader) for _ in range(count)}

  for number in range(5):
    add(number)
  loader = loaders.scan_loader(
    os.path.basename, str(tmp_path), 1, 10, seed=0, max_episodes=3
  )
  assert draw(loader, 100) == {'02.npz', '03.npz', '04.npz'}
  for number in range(5, 7):
    add(number)
  draw(loader, 10)
  assert draw(loader, 100) == {'04.npz', '05.npz', '06.npz'}
  for number in range(7, 20):
    add(number)
  draw(loader, 10)
  assert draw(loader, 100) == {'17.npz', '18.npz', '19.npz'}
  loader = loaders.scan_loader(os.path.basename, str(tmp_path), 1, 40, seed=0)
  assert len(draw(loader, 200)) == 20


def test_file_that_another_process_has_set_aside(tmp_path):
  """Processes that train together read one folder."""
  path = str(tmp_path / 'damaged.npz')
  (tmp_path / 'damaged.npz').touch()
  for _ in range(2):
    loaders.quarantine(path, 'on purpose')
  assert os.listdir(tmp_path) == ['damaged.npz.damaged']
