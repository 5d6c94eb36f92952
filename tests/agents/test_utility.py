"""Tests of checkpoints; configurations are tested with plain data."""

import ast
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
    with pytest.raises(ValueError, match='Need to specify logdir'):
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


def names_of(path):
  """Dotted names such as `module.function` that a file uses."""
  with open(os.path.join(golden.ROOT, path)) as file_:
    tree = ast.parse(file_.read())
  return {
    ast.unparse(x) for x in ast.walk(tree) if isinstance(x, ast.Attribute)
  }


SHARED = {
  'saver': (['define_saver'], 'train_ppo', 'checkpoints'),
  'newest checkpoint': (['choose_newest'], None, 'checkpoints'),
  'variables': (['initialize_variables'], 'train_ppo', 'checkpoints'),
  'configuration': (['compare', 'check_same'], 'runs', 'config'),
  'logging': (['set_up_logging'], 'train_ppo', 'run'),
}


@pytest.mark.parametrize('subject', SHARED)
def test_shared_by_ppo_and_her(subject):
  """What both need is named here, and both use it from here."""
  names, ppo, her = SHARED[subject]
  for name in names:
    assert callable(getattr(utility, name))
    assert f'utility.{name}' in names_of(f'baselines_her/{her}.py')
    if ppo:
      assert f'utility.{name}' in names_of(f'agents/{ppo}.py')


def test_newest_checkpoint_is_chosen_in_one_place(tmp_path, monkeypatch):
  """PPO asks for variables, HER for folders."""
  assert 'utility.latest_checkpoint' in names_of('agents/visualize_ppo.py')
  asked = []
  monkeypatch.setattr(
    checkpoint, 'choose_newest', lambda paths, *_: asked.append(list(paths))
  )
  assert utility.latest_checkpoint(str(tmp_path)) is None
  assert asked == [[]] and utility.choose_newest.__module__ == (
    checkpoint.__name__
  )


def test_tensorflow_is_loaded_when_it_is_needed():
  """HER compares settings before it starts further processes."""
  code = 'import sys; from agents import utility; utility.compare({}, {}); '
  code += "sys.exit('tensorflow' in sys.modules)"
  subprocess.run([sys.executable, '-c', code], cwd=golden.ROOT, check=True)
