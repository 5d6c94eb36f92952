"""Trees of states on disk; whole checkpoints are tested with the runner."""

import os

import numpy as np
import pytest

from agents.pipeline import checkpoints
from agents.pipeline import toolbox
from agents.run import mpi
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
  checkpoints.write_tree(str(tmp_path / 'states'), tree)
  found = checkpoints.read_tree(str(tmp_path / 'states'))
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
    checkpoints.write_tree(str(tmp_path / 'states'), tree)
  assert not list(tmp_path.iterdir())


@pytest.mark.parametrize('name', ['train', 'long-term', 'a-1', '../b', '.c'])
def test_names_of_memories(tmp_path, name):
  """Any of them comes back, and none leads out of the session."""
  (tmp_path / 'run' / 'checkpoints').mkdir(parents=True)
  saved = {name: {'values': np.arange(3)}, 'a': {'values': np.zeros(2)}}
  with tf.Graph().as_default(), tf.Session() as sess:
    store = checkpoints.Checkpoints(str(tmp_path / 'run'), mpi.world())
    path = store.save(1, sess, {}, {}, saved)
    _, found = store.load(path, sess)
  assert set(found) == set(saved)
  np.testing.assert_array_equal(found[name]['values'], np.arange(3))
  assert os.listdir(tmp_path) == ['run']
  assert len(os.listdir(tmp_path / 'run' / 'memsnapshot')) == 1


def test_random_numbers_continue(tmp_path):
  np.random.seed(3)
  np.random.normal(size=3)
  state = toolbox.get_random_state()
  checkpoints.write_tree(str(tmp_path / 'states'), state)
  expected = np.random.normal(size=4)
  toolbox.set_random_state(checkpoints.read_tree(str(tmp_path / 'states')))
  np.testing.assert_array_equal(np.random.normal(size=4), expected)
