"""Tests of checkpoints; configurations are tested with plain data."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from agents import utility
from agents.run import checkpoint, errors, files
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


def test_checkpoints_that_are_kept():
  """The newest, and one of every five hours, as in the original."""
  tf.get_variable('x', ())
  kept = utility.define_saver().as_saver_def()
  assert (kept.keep_checkpoint_every_n_hours, kept.max_to_keep) == (5, 5)


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


def test_variables_and_their_names(tmp_path):
  """Some of the variables, under other names, with initial values."""
  first = tf.get_variable('a', (), tf.int32, tf.ones_initializer())
  second = tf.get_variable('b', (), tf.int32, tf.ones_initializer())
  saver = utility.define_saver(variables={'x': first})
  with tf.Session() as sess:
    utility.initialize_variables(sess, None, None, variables=[first])
    first.load(5, sess)
    path = saver.save(sess, str(tmp_path / 'model.ckpt'), 7)
    assert len(sess.run(tf.report_uninitialized_variables())) == 1
    utility.initialize_variables(sess, saver, str(tmp_path))
    assert sess.run([first, second]) == [5, 1]
  assert tf.train.list_variables(path) == [('x', [])]
  assert utility.define_saver(variables=[]) is None


@pytest.mark.parametrize('name', ['config.yaml', 'params.json'])
def test_settings_of_other_systems(tmp_path, name):
  """Plain data in a file of theirs, and their own way to read it."""
  plain = {'rate': 1e-05, 'size': [1, 2], 'limit': None, 'text': '1e3'}
  folder = str(tmp_path / 'new')
  config = object()
  assert utility.save_config(config, folder, plain, name) is config
  assert os.listdir(folder) == [name]
  parse = lambda found: sorted(found.items())
  found = utility.load_config(folder, parse=parse, filename=name)
  assert found == sorted(plain.items())
  (tmp_path / 'new' / name).write_text('[1')
  with pytest.raises(errors.UsageError, match=f'Cannot read .*{name}'):
    utility.load_config(folder, parse=parse, filename=name)


@pytest.mark.parametrize('name', ['config.yaml', 'params.json'])
def test_settings_of_numpy(tmp_path, name):
  """Settings of environments and networks may be of any type."""
  given = {'env': {'g': np.float32(2), 'wind': np.bool_(False)}, 'n': (1, 2)}
  utility.save_config(given, str(tmp_path), given, name)
  stored = files.read_plain(str(tmp_path / name))
  assert stored == {'env': {'g': 2, 'wind': False}, 'n': [1, 2]}


def test_one_place_for_savers_and_variables():
  """PPO, HER, PlaNet and the pipeline have no ways of their own."""
  found = set()
  for package in ('agents', 'planet', 'baselines_her'):
    for folder, _, names in os.walk(os.path.join(golden.ROOT, package)):
      for name in names:
        path = os.path.join(folder, name)
        if name.endswith('.py'):
          with open(path) as file_:
            text = file_.read()
          words = r'\bSaver\(|variables_initializer\(|\.initializer for'
          if re.search(words, text):
            found.add(os.path.relpath(path, golden.ROOT))
  # The class, and the original's function for variables without a value.
  others = {'agents/tools/saver.py', 'baselines_her/tf_util.py'}
  assert found - others == {'agents/utility.py'}


def test_batch_env_closes_when_the_graph_fails():
  class Batch:
    closed = False

    def __init__(self, constructors, workers):
      assert (len(constructors), workers) == (3, 0)
      made.append(self)

    def close(self):
      self.closed = True

  made = []
  with pytest.raises(TypeError):
    utility.define_batch_env(dict, 3, False, Batch)
  assert made[0].closed


def test_tensorflow_is_loaded_when_it_is_needed():
  """HER compares settings before it starts further processes."""
  code = 'import sys; from agents import utility; utility.set_up_logging(); '
  code += "sys.exit(bool({'tensorflow', 'agents.ppo', 'agents.configs'} "
  code += '& {*sys.modules}))'
  subprocess.run([sys.executable, '-c', code], cwd=golden.ROOT, check=True)
