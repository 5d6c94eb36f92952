"""Checkpoints are whole or ignored, whatever a process or disk did to them."""

import errno
import glob
import os
import shutil

import numpy as np
import pytest

from agents import utility
from agents.run import checkpoint, errors, mpi
from agents.tools.tf1 import tf


def test_trees(tmp_path):
  tree = {
    'a': {'b': [1, 2.5, None, True, 'x']},
    'tuple': (1, (2,)),
    'bytes': b'\x00\xff',
    'array': np.arange(6, dtype=np.uint8).reshape(2, 3),
    'scalar': np.float32(1.5),
    'empty': np.zeros((0, 3)),
  }
  checkpoint.write_tree(str(tmp_path / 'states'), tree)
  found = checkpoint.read_tree(str(tmp_path / 'states'))
  assert list(found) == list(tree)
  for key in ('a', 'tuple', 'bytes', 'scalar'):
    assert found[key] == tree[key]
  assert type(found['scalar']) is np.float32
  for key in ('array', 'empty'):
    np.testing.assert_array_equal(found[key], tree[key])
    assert found[key].dtype == tree[key].dtype


@pytest.mark.parametrize(
  'tree, place',
  [({'a': [object()]}, '/a/0'), ({'a': {1: 2}}, '/a'), ({'a': {2}}, '/a')],
)
def test_what_cannot_be_stored(tmp_path, tree, place):
  with pytest.raises(TypeError, match=place):
    checkpoint.write_tree(str(tmp_path / 'states'), tree)
  assert not list(tmp_path.iterdir())


@pytest.mark.parametrize('ending', ['.json', '.npz'])
@pytest.mark.parametrize('length', [0, 1, -1])
def test_truncated_trees(tmp_path, ending, length):
  """Any damage is a `ValueError`."""
  prefix = str(tmp_path / 'states')
  checkpoint.write_tree(prefix, {'a': np.arange(6), 'b': 1})
  with open(prefix + ending, 'r+b') as file_:
    content = file_.read()
    file_.truncate(length if length >= 0 else len(content) + length)
  with pytest.raises(ValueError):
    checkpoint.read_tree(prefix)


def test_flipped_bit_of_a_tree(tmp_path):
  """Numbers in the text are guarded as arrays are, also if it can be read."""
  prefix = str(tmp_path / 'states')
  checkpoint.write_tree(prefix, {'step': 1000})
  path = tmp_path / 'states.json'
  path.write_text(path.read_text().replace('1000', '1008'))
  with pytest.raises(ValueError, match='has changed'):
    checkpoint.read_tree(prefix)


def write(path, text):
  """Checkpoint that consists of a text."""
  with checkpoint.write_folder(str(path), mpi.world()) as new:
    assert path.parent == type(path)(new).parent
    (type(path)(new) / 'file').write_text(text)


def test_folders(tmp_path):
  """Listed by number; one is replaced by another of the same name."""
  for name in ('x-10', 'x-9', 'x-9+', 'x-9'):
    write(tmp_path / name, name)
  (tmp_path / 'x-8.new').mkdir()
  (tmp_path / 'x-').mkdir()
  found = checkpoint.list_folders(str(tmp_path), 'x-')
  assert list(found) == ['x-9', 'x-9+', 'x-10']
  assert not any(map(checkpoint.find_damage, found.values()))
  assert checkpoint.list_folders(str(tmp_path / 'none')) == {}


@pytest.mark.parametrize('moves', [0, 1])
def test_killed_while_replacing(tmp_path, monkeypatch, moves):
  """The old one is listed until the new one is there, and comes back."""
  path = tmp_path / 'x-1'
  write(path, 'old')
  rename, done = os.rename, []

  def die(old, new):
    if len(done) == moves:
      raise KeyboardInterrupt
    done.append(new)
    rename(old, new)

  with monkeypatch.context() as patch:
    patch.setattr(checkpoint.os, 'rename', die)
    with pytest.raises(KeyboardInterrupt):
      write(path, 'new')
  (found,) = checkpoint.list_folders(str(tmp_path), 'x-').values()
  assert checkpoint.find_damage(found) is None
  assert len(os.listdir(tmp_path)) == 2
  checkpoint.recover_folders(str(tmp_path))
  assert os.listdir(tmp_path) == ['x-1']
  assert (path / 'file').read_text() == 'old'


DAMAGES = {
  'file has 2 bytes instead of 4': lambda x: (x / 'file').write_text('ab'),
  'file is missing': lambda x: (x / 'file').unlink(),
  'COMPLETE is missing': lambda x: (x / 'COMPLETE').unlink(),
  'COMPLETE cannot be read': lambda x: (x / 'COMPLETE').write_text('{'),
}


@pytest.mark.parametrize('words', DAMAGES)
def test_damaged_folders(tmp_path, words):
  """The sentence names the damage and the older one that is used."""
  for index in range(3):
    write(tmp_path / f'x-{index}', 'text')
  DAMAGES[words](tmp_path / 'x-2')
  paths = list(checkpoint.list_folders(str(tmp_path), 'x-').values())
  told = []
  assert checkpoint.choose_newest(paths, warn=told.append) == paths[1]
  (sentence,) = told
  assert f'Checkpoint {paths[2]} is damaged ({words}' in sentence
  assert sentence.endswith(f'; using {paths[1]}.')
  for path in paths[:2]:
    shutil.rmtree(path)
  with pytest.raises(errors.UsageError) as error:
    checkpoint.choose_newest(paths[2:], warn=told.append)
  assert f'damaged: {paths[2]} ({words}' in str(error.value)
  assert len(told) == 1 and checkpoint.choose_newest([]) is None


class Ranks:
  """Communicator of one of several ranks; the first one's turn comes last."""

  def __init__(self, rank, size):
    self.rank, self.size = rank, size

  def Get_rank(self):
    return self.rank

  def Get_size(self):
    return self.size

  def Barrier(self):
    pass

  def bcast(self, value):
    return value


def test_checkpoints_of_ranks(tmp_path):
  """Variables and trees come back; others of as many ranks only."""
  folder = str(tmp_path / 'checkpoints')
  args = mpi.world(), 'x-', utility.define_saver
  saved = checkpoint.Checkpoints(folder, *args)
  assert saved.paths() == {}
  variable = tf.get_variable('x', (3,), tf.int32, tf.zeros_initializer())
  with tf.Session() as sess:
    for index in range(4):
      variable.load([index] * 3, sess)
      saved.save(
        f'x-{index}',
        {'index': index},
        sess,
        lambda new: open(os.path.join(new, 'more'), 'w').write('text'),
        keep=2,
        best='x-0',
      )
    assert list(saved.paths()) == ['x-0', 'x-2', 'x-3']
    found = checkpoint.Checkpoints(folder, *args)
    assert found.load(found.paths()['x-2'], sess) == {'index': 2}
    assert sess.run(variable).tolist() == [2, 2, 2]
  newest = found.paths()['x-3']
  assert 'more' in os.listdir(newest)
  other = checkpoint.Checkpoints(folder, Ranks(0, 2), 'x-')
  with pytest.raises(errors.UsageError, match='saved with 1 ranks, not 2'):
    other.load(newest)
  assert other.load(newest, all_ranks=False) == {'index': 3}


@pytest.mark.parametrize('ending', ['.json', '.npz'])
def test_flipped_bits_of_trees(tmp_path, ending):
  saved = checkpoint.Checkpoints(str(tmp_path), mpi.world())
  path = saved.save('1', {'a': 1000, 'b': np.zeros(100)})
  with open(os.path.join(path, 'rank0' + ending), 'r+b') as file_:
    content = file_.read()
    where = content.index(b'1000') if ending == '.json' else 300
    file_.seek(where)
    file_.write(bytes([content[where] ^ 1]))
  with pytest.raises(errors.UsageError, match='is damaged') as error:
    saved.load(path)
  assert '\n' not in str(error.value)


@pytest.mark.parametrize(
  'text', ['', '{', '[]', '3', '{"checkpoint": "../x", "score": 1}']
)
def test_damaged_score(tmp_path, text):
  (tmp_path / 'best').mkdir()
  (tmp_path / 'best' / 'score.json').write_text(text)
  with pytest.raises(errors.UsageError, match='score.json is damaged'):
    checkpoint.read_best_score(str(tmp_path))


def test_as_many_are_kept_after_a_restart(tmp_path):
  _, saver = save_variables(tmp_path, range(7), max_to_keep=7)
  saver.continue_in(str(tmp_path))
  with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    saver.save(sess, str(tmp_path / 'model.ckpt'), 7)
  found = checkpoint.list_variables(str(tmp_path))
  assert [int(x.rpartition('-')[2]) for x in found] == list(range(1, 8))


def test_others_files_are_not_deleted(tmp_path):
  """Whatever the file `checkpoint` says; old ones of the run are."""
  precious = tmp_path / 'model.ckpt-9.index'
  precious.write_text('mine')
  folder = tmp_path / 'run'
  folder.mkdir()
  _, saver = save_variables(folder, range(4))
  (folder / 'checkpoint').write_text(
    f'model_checkpoint_path: "{tmp_path}/model.ckpt-9"\n'
    f'all_model_checkpoint_paths: "{tmp_path}/model.ckpt-9"\n'
  )
  saver = utility.define_saver()
  saver.continue_in(str(folder))
  with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in range(10, 17):
      saver.save(sess, str(folder / 'model.ckpt'), step)
  assert precious.read_text() == 'mine'
  assert len(checkpoint.list_variables(str(folder))) == 5


def test_nothing_is_left_of_what_cannot_be_saved(tmp_path, monkeypatch):
  saver = save_variables(tmp_path, [1])[1]

  def fail(self, sess, path, *args, **kwargs):
    open(f'{path}-2.data-00000-of-00001.tempstate12', 'w').close()
    raise OSError(28, 'No space left on device')

  monkeypatch.setattr(tf.train.Saver, 'save', fail)
  with pytest.raises(OSError):
    saver.save(None, str(tmp_path / 'model.ckpt'), 2)
  assert not list(tmp_path.glob('*tempstate*'))


def save_variables(folder, steps, **kwargs):
  """Checkpoints of TensorFlow; returns a variable and the saver."""
  variable = tf.get_variable('x', (3, 5), tf.int32, tf.ones_initializer())
  tf.get_variable('text', initializer=tf.constant(['some', 'words']))
  tf.get_variable('empty', (0, 3))
  saver = utility.define_saver(**kwargs)
  with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for step in steps:
      saver.save(sess, str(folder / 'model.ckpt'), step)
  return variable, saver


@pytest.mark.parametrize('ending', ['.index', '.data-00000-of-00001'])
@pytest.mark.parametrize('length', [0, 10, None, 'folder'])
def test_truncated_variables(tmp_path, caplog, ending, length):
  """Both files count; a run goes on from the checkpoint before."""
  variable, saver = save_variables(tmp_path, [5, 40])
  newest, older = str(tmp_path / 'model.ckpt-40'), tmp_path / 'model.ckpt-5'
  assert checkpoint.newest_step(str(tmp_path)) == 40
  if isinstance(length, int):
    os.truncate(newest + ending, length)
  else:
    os.remove(newest + ending)
  if length == 'folder':
    os.mkdir(newest + ending)
  assert checkpoint.newest_step(str(tmp_path)) == 5 and not caplog.messages
  with tf.Session() as sess:
    utility.initialize_variables(sess, saver, str(tmp_path))
    assert sess.run(variable).sum() == 15
    if os.path.exists(newest + '.index'):
      (sentence,) = caplog.messages
      assert f'Checkpoint {newest} is damaged' in sentence
      assert sentence.endswith(f'using {older}.')
      with pytest.raises(errors.UsageError, match='ckpt-40 is damaged'):
        utility.initialize_variables(
          sess, saver, str(tmp_path), 'model.ckpt-40'
        )


@pytest.mark.parametrize('place', ['.index', ''])
def test_disk_that_does_not_answer(place, tmp_path, monkeypatch):
  """Neither goes back to an older checkpoint nor starts over."""
  _, saver = save_variables(tmp_path, [5, 40])
  target = f'{tmp_path}/model.ckpt-40.index' if place else str(tmp_path)

  def failing(function):
    def call(path, *args, **kwargs):
      if path == target:
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)
      return function(path, *args, **kwargs)

    return call

  monkeypatch.setattr('builtins.open', failing(open))
  monkeypatch.setattr(os, 'listdir', failing(os.listdir))
  with tf.Session() as sess, pytest.raises(OSError, match='Input/output'):
    utility.initialize_variables(sess, saver, str(tmp_path))


def test_variables_with_other_bytes(tmp_path):
  """Found out when they are read, and told in one sentence."""
  _, saver = save_variables(tmp_path, [5])
  (filename,) = glob.glob(str(tmp_path / '*.data-*'))
  with open(filename, 'r+b') as file_:
    file_.write(b'damage')
  with tf.Session() as sess, pytest.raises(errors.UsageError) as error:
    utility.initialize_variables(sess, saver, str(tmp_path))
  text = str(error.value)
  assert 'model.ckpt-5 is damaged' in text and '\n' not in text
