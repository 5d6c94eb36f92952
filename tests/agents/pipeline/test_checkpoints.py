"""Contents of memories and random numbers; more is tested with the runner."""

import os

import numpy as np
import pytest

from agents.pipeline import checkpoints, toolbox
from agents.run import checkpoint, mpi
from agents.tools.tf1 import tf


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
  checkpoint.write_tree(str(tmp_path / 'states'), state)
  expected = np.random.normal(size=4)
  toolbox.set_random_state(checkpoint.read_tree(str(tmp_path / 'states')))
  np.testing.assert_array_equal(np.random.normal(size=4), expected)
