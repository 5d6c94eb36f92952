"""Tests of checkpoints; configurations are tested with plain data."""

import os
import subprocess
import sys

import pytest

from agents import utility
from agents.run import checkpoint
from agents.tools.tf1 import tf
from tests import golden


def save(folder, steps):
  """Checkpoints of a variable that holds the step."""
  variable = tf.get_variable('x', (), tf.int32, tf.zeros_initializer())
  saver = utility.define_saver(exclude=[r'.*_temporary.*'])
  with tf.Session() as sess:
    utility.initialize_variables(sess, saver, None)
    for step in steps:
      variable.load(step, sess)
      saver.save(sess, os.path.join(folder, 'model.ckpt'), step)
  return variable, saver


def test_restore_the_newest(tmp_path):
  variable, saver = save(tmp_path, [5, 40, 300])
  with tf.Session() as sess:
    utility.initialize_variables(sess, saver, str(tmp_path))
    assert sess.run(variable) == 300
    utility.initialize_variables(sess, saver, str(tmp_path), 'model.ckpt-40')
    assert sess.run(variable) == 40


def test_incomplete_checkpoints_are_passed_over(tmp_path):
  """As a process that is killed while saving may leave them."""
  save(tmp_path, [5, 40, 300])
  os.remove(tmp_path / 'model.ckpt-300.data-00000-of-00001')
  (tmp_path / 'model.ckpt-40.index').write_bytes(b'')
  (tmp_path / 'checkpoint').unlink()
  assert checkpoint.find_variables(str(tmp_path)).endswith('model.ckpt-5')


def test_folders_can_be_moved(tmp_path):
  variable, saver = save(tmp_path / 'old', [5])
  (tmp_path / 'old').rename(tmp_path / 'new')
  with tf.Session() as sess:
    utility.initialize_variables(sess, saver, str(tmp_path / 'new'))
    assert sess.run(variable) == 5


def test_expectations_about_resuming(tmp_path):
  _, saver = save(tmp_path, [5])
  with tf.Session() as sess:
    initialize = utility.initialize_variables
    with pytest.raises(ValueError, match='no checkpoint to resume in None'):
      initialize(sess, saver, None, resume=True)
    with pytest.raises(RuntimeError, match='unexpected checkpoint'):
      initialize(sess, saver, str(tmp_path), resume=False)
    with pytest.raises(ValueError, match='no checkpoint to resume'):
      initialize(sess, saver, str(tmp_path / 'empty'), resume=True)
    assert checkpoint.find_variables(str(tmp_path / 'empty')) is None


def test_excluded_variables(tmp_path):
  tf.get_variable('a', ())
  with tf.variable_scope('x_temporary'):
    tf.get_variable('b', ())
  saver = utility.define_saver(exclude=[r'.*_temporary.*'])
  with tf.Session() as sess:
    utility.initialize_variables(sess, saver, None)
    path = saver.save(sess, str(tmp_path / 'model.ckpt'), 1)
  assert [name for name, _ in tf.train.list_variables(path)] == ['a']


def test_tensorflow_is_loaded_when_it_is_needed():
  """HER compares settings before it starts further processes."""
  code = 'import sys; from agents import utility; utility.set_up_logging(); '
  code += "sys.exit('tensorflow' in sys.modules)"
  subprocess.run([sys.executable, '-c', code], cwd=golden.ROOT, check=True)
