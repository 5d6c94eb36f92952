"""Whatever the file of an episode holds, it is told and set aside."""

import glob
import io
import os
import re
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from agents.run import errors
from agents.tools.tf1 import tf
from planet import control
from planet.envs import dummy_env
from planet.scripts import train
from planet.tools import episode_files, loaders, numpy_episodes
from planet.tools.bind import bind
from planet.training import episode_folder
from tests import golden

LENGTH = 6
SHAPES = {'image': (4, 4, 3), 'action': (2,), 'reward': (), 'state': (3,)}


def episode(**changes):
  """Arrays of an episode; None removes one."""
  arrays = dict(
    image=np.full((LENGTH, 4, 4, 3), 7, np.uint8),
    action=np.zeros((LENGTH, 2), np.float32),
    reward=np.ones(LENGTH),
    state=np.zeros((LENGTH, 3), np.float32),
    action_repeat=np.int64(2),
  )
  arrays.update(changes)
  return {key: value for key, value in arrays.items() if value is not None}


def one(shape, value, dtype=np.float64):
  """Zeros, and a value in the middle."""
  array = np.zeros((LENGTH, *shape), dtype)
  array[LENGTH // 2] = value
  return array


REWARDS = {
  'text': (np.array(['a'] * LENGTH), 'reward is of type <U1'),
  'bytes': (np.array([b'a'] * LENGTH), 'not a number'),
  'dates': (np.arange(LENGTH).astype('datetime64[s]'), 'datetime64'),
  'durations': (np.arange(LENGTH).astype('timedelta64[s]'), 'timedelta64'),
  'complex': (np.ones(LENGTH, complex), 'complex128'),
  'records': (np.zeros(LENGTH, [('a', 'f4')]), 'not a number'),
  'objects': (np.array([None] * LENGTH), 'object'),
  'vectors': (np.zeros((LENGTH, 3)), r'a reward has shape \[3\], but is one'),
  'columns': (np.zeros((LENGTH, 1)), r'a reward has shape \[1\]'),
  'one number': (
    np.float64(3),
    r'reward has shape \[\], but should have a time',
  ),
  'NaN': (one((), np.nan), 'reward is nan at step 3'),
  'infinite': (one((), -np.inf), 'reward is -inf at step 3'),
  'too large': (one((), 1e300), r'reward is 1e\+300 at step 3'),
  'far too large': (one((), 10, np.longdouble) ** 4000, 'reward is inf'),
  'too large a sum': (np.full(LENGTH, 2e38), 'sum of its rewards is infinite'),
  'too large integers': (one((), 2**40, int), 'reward is 1099511627776'),
  'fewer': (np.zeros(LENGTH - 1), 'differ in length.*5'),
  'more': (np.zeros(LENGTH + 1), 'differ in length.*7'),
}
OTHERS = {
  'action NaN': (dict(action=one((2,), np.nan)), 'action is nan at step 3'),
  'action text': (dict(action=np.full((LENGTH, 2), 'x')), 'action is of type'),
  'state NaN': (dict(state=one((3,), np.nan, np.float16)), 'state is nan'),
  'repeat text': (dict(action_repeat='two'), 'action_repeat is of type'),
  'repeat vector': (dict(action_repeat=[2, 2]), 'should be a number'),
  'repeat zero': (dict(action_repeat=0), 'action_repeat is 0, but'),
  'repeat NaN': (dict(action_repeat=np.nan), 'action_repeat is nan, but'),
  'no steps': (
    {key: value[:0] for key, value in episode(action_repeat=None).items()},
    'it has no steps',
  ),
}
# These depend on the task.
MISFITS = {
  'image size': (
    dict(image=np.zeros((LENGTH, 5, 4, 3), np.uint8)),
    r'image \[5, 4, 3\] uint8 instead of image \[4, 4, 3\] uint8',
  ),
  'image channels': (
    dict(image=np.zeros((LENGTH, 4, 4), np.uint8)),
    r'image \[4, 4\]',
  ),
  'image floats': (
    dict(image=np.zeros((LENGTH, 4, 4, 3))),
    r'image \[4, 4, 3\] float',
  ),
  'image int16': (
    dict(image=np.zeros((LENGTH, 4, 4, 3), np.int16)),
    r'image \[4, 4, 3\] int16',
  ),
  'action size': (dict(action=np.zeros((LENGTH, 4))), r'action \[4\]'),
  'no reward': (dict(reward=None), 'it has no reward'),
  'no action': (dict(action=None), 'it has no action'),
  'no image': (dict(image=None), 'it has no image'),
  'two observations': (
    {key: value[:2] for key, value in episode(action_repeat=None).items()},
    'it has 2 observations, but batch_shape and num_chunks need 4',
  ),
}


def save(**changes):
  return lambda path: np.savez_compressed(path, **episode(**changes))


def header(text, length=48, version=b'\x01\x00'):
  """A reward whose header is any text."""

  def write(path):
    np.savez(path, **episode(reward=None))
    content = text.encode().ljust(117) + b'\n'
    size = len(content).to_bytes(2, 'little')
    data = b'\x93NUMPY' + version + size + content + bytes(length)
    with zipfile.ZipFile(path, 'a', zipfile.ZIP_DEFLATED) as archive:
      archive.writestr('reward.npy', data)

  return write


def cut(amount):
  def write(path):
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **episode())
    content = buffer.getvalue()
    path.write_bytes(content[: int(amount * len(content))])

  return write


def twice(path):
  np.savez(path, **episode())
  with pytest.warns(UserWarning), zipfile.ZipFile(path, 'a') as archive:
    archive.writestr('reward.npy', archive.read('reward.npy'))


def array(path):
  with open(path, 'wb') as file_:
    np.save(file_, np.zeros(3))


DESCRIBED = "{'descr': '<f8', 'fortran_order': False, 'shape': %s, }"
FILES = {
  'text file': (lambda x: x.write_text('Hello'), 'not a zip file'),
  'empty file': (lambda x: x.touch(), 'not a zip file'),
  'one array': (array, 'not a zip file'),
  'folder': (lambda x: x.mkdir(), 'it is not a file'),
  'pipe': (os.mkfifo, 'it is not a file'),
  'empty archive': (np.savez, 'it has no steps'),
  'half an archive': (cut(0.5), 'not a zip file'),
  'last bytes missing': (cut(0.99), ''),
  'reward twice': (twice, 'it has reward twice'),
  'huge header': (
    header(DESCRIBED % '(1000000000000000,)'),
    'reward has 48 by',
  ),
  'no shape': (header(DESCRIBED % '(6, -1)'), 'reward has 48 bytes'),
  'short header': (header(DESCRIBED % '(5,)'), 'reward has 48 bytes'),
  'header of code': (header('__import__("os").abort()'), ''),
  'header of text': (header('{[('), ''),
  'other header': (
    header(DESCRIBED % '(6,)', 48, b'\x09\x00'),
    'unknown format',
  ),
}
DAMAGED = {
  **{f'reward: {x}': (save(reward=y), z) for x, (y, z) in REWARDS.items()},
  **{x: (save(**y), z) for x, (y, z) in OTHERS.items()},
  **FILES,
}
ALL = {**DAMAGED, **{x: (save(**y), z) for x, (y, z) in MISFITS.items()}}


def set_aside(folder, caplog):
  """Name and the only sentence about a file that was set aside."""
  (name,) = [x for x in os.listdir(folder) if not x.endswith('.npz')]
  (sentence,) = caplog.messages
  assert name == 'a.npz.damaged' and f'episode {folder}/a.npz (' in sentence
  assert f'; renamed it to {name}.' in sentence and '\n' not in sentence
  return sentence


@pytest.mark.filterwarnings('ignore:.*overflow')
@pytest.mark.parametrize('name', ALL)
def test_before_training(name, tmp_path, caplog):
  """One sentence names the file and the reason; the others are left."""
  write, reason = ALL[name]
  write(tmp_path / 'a.npz')
  for other in 'bc':
    save()(tmp_path / f'{other}.npz')
  episode_folder.check(str(tmp_path), SHAPES, 4)
  assert episode_folder.count(str(tmp_path), 9) == 2
  assert re.search(reason, set_aside(tmp_path, caplog))


@pytest.mark.filterwarnings('ignore:.*overflow')
@pytest.mark.parametrize('name', ALL)
def test_during_training(name, tmp_path, tmp_path_factory, caplog):
  """A file that another worker adds gets the same check when it is loaded."""
  for other in 'bc':
    save()(tmp_path / f'{other}.npz')
  data = numpy_episodes.numpy_episodes(
    str(tmp_path),
    str(tmp_path),
    (1, 4),
    loader=bind(loaders.cache_loader, every=1),
  )
  log = episode_folder.EpisodeLog(str(tmp_path))
  assert log.count_steps() == 2 * 2 * (LENGTH - 1)
  batch = tf.data.make_one_shot_iterator(data.train).get_next()
  with tf.Session() as sess:
    sess.run(batch)
    write, reason = ALL[name]
    # Workers give a file its name when it is complete.
    elsewhere = tmp_path_factory.mktemp('elsewhere') / 'a.npz'
    write(elsewhere)
    elsewhere.rename(tmp_path / 'a.npz')
    while not glob.glob(f'{tmp_path}/*.damaged'):
      assert (sess.run(batch)['image'] == 7).all()
    assert (sess.run(batch)['image'] == 7).all()
  assert log.count_steps() == 2 * 2 * (LENGTH - 1)
  sentence = set_aside(tmp_path, caplog)
  assert name in MISFITS or re.search(reason, sentence)


@pytest.mark.parametrize('name', DAMAGED)
def test_log_of_episodes(name, tmp_path, caplog):
  """It reads no images, and counts no file that it finds to be damaged."""
  DAMAGED[name][0](tmp_path / 'a.npz')
  log = episode_folder.EpisodeLog(str(tmp_path))
  log.update()
  if os.path.exists(tmp_path / 'a.npz.damaged'):
    assert log.returns == [] and log.steps == 0
    set_aside(tmp_path, caplog)
  else:
    assert name in ('action NaN', 'state NaN')
    assert np.isfinite(log.returns).all() and log.steps == 2 * (LENGTH - 1)


def test_good_files_stay(tmp_path, caplog):
  """Any numbers will do, in any order and byte order, as they always have."""
  save()(tmp_path / 'a.npz')
  np.savez(tmp_path / 'b.npz', **episode(action_repeat=None))
  save(action_repeat=2.0)(tmp_path / 'c.npz')
  save(reward=np.ones(LENGTH, bool))(tmp_path / 'd.npz')
  save(state=np.ones((LENGTH, 3), np.uint8))(tmp_path / 'e.npz')
  save(action=np.asfortranarray(np.ones((LENGTH, 2), '>f8')))(
    tmp_path / 'f.npz'
  )
  save(state=np.ones((LENGTH, 3), np.longdouble))(tmp_path / 'g.npz')
  episode_folder.check(str(tmp_path), SHAPES, LENGTH)
  for name in sorted(os.listdir(tmp_path)):
    # Each may be the first, from which the types are taken.
    (tmp_path / name).rename(tmp_path / f'0{name}')
    data = numpy_episodes.numpy_episodes(
      str(tmp_path), str(tmp_path), (7, LENGTH)
    )
    batch = tf.data.make_one_shot_iterator(data.train).get_next()
    with tf.Session() as sess:
      found = {x: str(y.dtype) for x, y in sess.run(batch).items()}
    assert found.pop('image') == 'uint8' and found.pop('length') == 'int32'
    assert set(found.values()) == {'float32'}
    (tmp_path / f'0{name}').rename(tmp_path / name)
  assert len(os.listdir(tmp_path)) == 7 and not caplog.messages


def test_nothing_is_lost(tmp_path, caplog):
  """A second file of the name gets another one."""
  for number in range(3):
    (tmp_path / 'a.npz').write_text(str(number))
    assert loaders.read_episode(episode_files.read, f'{tmp_path}/a.npz') is None
  found = {x.name: x.read_text() for x in tmp_path.iterdir()}
  assert found == {
    'a.npz.damaged': '0',
    'a.npz.damaged2': '1',
    'a.npz.damaged3': '2',
  }
  assert 'renamed it to a.npz.damaged3' in caplog.messages[-1]


def test_file_that_cannot_be_renamed(tmp_path, monkeypatch):
  """The name of the file would be too long."""
  path = tmp_path / f'{251 * "a"}.npz'
  path.write_text('Hello')
  with pytest.raises(errors.UsageError, match='not a zip.*nor rename it: File'):
    loaders.read_episode(episode_files.read, str(path))
  assert path.read_text() == 'Hello'


def test_a_check_reads_once(tmp_path, monkeypatch):
  """Each file is opened once, and its images are not read."""
  for name in 'abc':
    save()(tmp_path / f'{name}.npz')
  opened, read = [], []
  archive, array = zipfile.ZipFile, np.lib.format.read_array
  monkeypatch.setattr(
    zipfile, 'ZipFile', lambda *x: opened.append(x[0]) or archive(*x)
  )
  monkeypatch.setattr(
    np.lib.format,
    'read_array',
    lambda *x, **y: read.append(array(*x, **y)) or read[-1],
  )
  episode_folder.check(str(tmp_path), SHAPES, 4)
  assert opened == [str(tmp_path / f'{x}.npz') for x in 'abc']
  assert len(read) == 12 and not any(x.dtype == np.uint8 for x in read)


@pytest.fixture
def run(tmp_path):
  """Folder of a run with two episodes for training and one for tests."""
  env_ctor = bind(dummy_env.make, 50, 20, image_size=32)
  folder = tmp_path / '00001'
  for phase, amount in (('train', 2), ('test', 1)):
    control.random_episodes(env_ctor, amount, str(folder / f'{phase}_episodes'))
  return folder


def words(run):
  params = (
    '{tasks: [dummy], image_size: 32, batch_shape: [2, 3], train_steps: 4, '
    'test_steps: 4, max_steps: 8, num_seed_episodes: 0, train_collects: [], '
    'test_collects: [], model_size: 8, num_layers: 1, isolate_envs: none}'
  )
  return [f'--logdir={run.parent}', '--config', 'debug', '--params', params]


@pytest.mark.slow
@pytest.mark.filterwarnings('ignore:.*overflow')
def test_whole_program(run):
  """Trains on what is left; one line for each file, and no traceback."""
  for phase in ('train', 'test'):
    for number, (write, _) in enumerate(ALL.values()):
      write(run / f'{phase}_episodes' / f'{number:02}.npz')
  done = subprocess.run(
    [sys.executable, '-m', 'planet.scripts.train', *words(run)],
    cwd=golden.ROOT,
    capture_output=True,
    text=True,
    timeout=120,
  )
  assert done.returncode == 0, done.stderr
  assert 'Traceback' not in done.stderr
  for phase, left in (('train', 2), ('test', 1)):
    folder = run / f'{phase}_episodes'
    assert len(loaders.list_episodes(str(folder))) == left
    for number in range(len(ALL)):
      assert (folder / f'{number:02}.npz.damaged').exists()
      assert f'{folder}/{number:02}.npz (' in done.stderr


def test_nothing_left(run, capsys):
  for path in (run / 'train_episodes').iterdir():
    with np.load(path) as archive:
      arrays = dict(archive)
    np.savez(path, **{**arrays, 'reward': arrays['reward'] * np.nan})
  assert train.run(words(run)) == 2
  error = capsys.readouterr().err
  assert 'reward is nan at step 0' in error and 'Traceback' not in error
  last = f'Error: There are no readable episodes in {run}/train_episodes'
  assert error.splitlines()[-1].startswith(last)
