"""Printing of metrics, and the limit of environment steps."""

import numpy as np
import pytest

from agents.run import locks, messages
from agents.tools import graph_errors
from agents.tools.tf1 import tf
from planet.tools.attr_dict import AttrDict
from planet.training import utility
from tests import graphs


def test_printed_steps_are_exact(tmp_path):
  """Also beyond 2 ** 24, where float32 skips odd numbers."""
  step = tf.placeholder(tf.int64, ())
  line = utility.print_metrics({'loss': tf.constant(1.5)}, step, 1, 'losses')
  messages.set_up_logging()
  path = tmp_path / 'log.txt'
  with graphs.session() as sess, messages.write_messages(str(path)):
    for value in (2**24 + 1, 2**40 + 3):
      sess.run(line, {step: value})
  assert path.read_text().splitlines() == [
    'losses: step/loss = [16777217 1.5]',
    'losses: step/loss = [1099511627779 1.5]',
  ]


def test_lines_that_cannot_be_written(monkeypatch):
  """The error of the file arrives, not that of TensorFlow."""

  def fail(*unused_args):
    raise locks.Lost('gone')

  monkeypatch.setattr(utility._logger, 'debug', fail)
  step = tf.placeholder(tf.int64, ())
  line = utility.print_metrics({'loss': tf.constant(1.5)}, step, 1, 'losses')
  with graphs.session() as sess, pytest.raises(locks.Lost, match='gone'):
    with graph_errors.unwrapped():
      sess.run(line, {step: 1})


def test_lines_of_batches_that_do_not_divide_the_interval(tmp_path):
  """One as soon as each interval is over."""
  step = tf.placeholder(tf.int64, ())
  line = utility.print_metrics({}, step, 100, 'losses', 48)
  messages.set_up_logging()
  path = tmp_path / 'log.txt'
  with graphs.session() as sess, messages.write_messages(str(path)):
    for value in range(0, 300, 48):
      sess.run(line, {step: value})
  found = [x.split('[')[1] for x in path.read_text().splitlines()]
  assert found == ['0 ]', '144 ]', '240 ]']


def test_limit_counts_repeated_actions(tmp_path, monkeypatch):
  """Also those of episodes that do not say how often theirs are repeated."""
  np.savez(tmp_path / 'some.npz', reward=np.zeros(11))
  left = []

  def model_fn(unused_data, trainer, unused_config):
    left.append(trainer.may_play())
    raise InterruptedError

  monkeypatch.setattr(utility, 'get_batch', lambda *unused: None)
  for limit in (80, 81):
    config = AttrDict(
      train_dir=str(tmp_path),
      tasks=[AttrDict(action_repeat=8)],
      test_collects={},
      total_env_steps=limit,
    )
    with pytest.raises(InterruptedError):
      next(utility.train(model_fn, None, None, config))
  assert left == [False, True]
