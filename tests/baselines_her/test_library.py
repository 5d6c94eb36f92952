"""Training HER from Python, as notebooks and loops over seeds do."""

import os
import signal

import pytest

import baselines_her
from agents.run import errors
from baselines_her import library, logger
from tests import examples

PARAMS = {
  'n_cycles': 1,
  'n_batches': 2,
  'batch_size': 16,
  'hidden': 8,
  'n_test_rollouts': 1,
}
ENV = 'tests.baselines_her.odd_envs:Fine-v0'


def train(logdir, seed, steps=10):
  return library.train(ENV, str(logdir), steps, PARAMS, seed)


def rows(logdir):
  return logger.read_csv(os.path.join(str(logdir), 'progress.csv'))


def test_loop_over_seeds(tmp_path, capfd):
  """Trainings in one process, which say nothing and keep the signals."""
  handler, current = signal.getsignal(signal.SIGINT), logger.get_current()
  capfd.readouterr()
  for index, seed in enumerate((1, 2, 1)):
    records = list(train(tmp_path / str(index), seed))
    assert [x['epoch'] for x in records] == [1, 2]
    assert [x['updates'] for x in records] == [2, 4]
    assert [x['environment_steps'] for x in records] == [5, 10]
    assert [x['success_rate'] for x in records] == [0, 0]
    assert records[0]['logdir'] == str(tmp_path / str(index))
  assert rows(tmp_path / '0') == rows(tmp_path / '2') != rows(tmp_path / '1')
  assert signal.getsignal(signal.SIGINT) is handler
  assert logger.get_current() is current
  assert capfd.readouterr().out == ''


def test_left_and_continued(tmp_path, capsys):
  whole = list(train(tmp_path / 'whole', 1))
  training = train(tmp_path / 'parts', 1)
  assert next(training)['epoch'] == 1
  training.close()
  assert len(rows(tmp_path / 'parts')) == 1
  (second,) = train(tmp_path / 'parts', 1)
  assert {**second, 'logdir': None} == {**whole[1], 'logdir': None}
  assert rows(tmp_path / 'parts') == rows(tmp_path / 'whole')
  printed = capsys.readouterr()
  assert printed.out == printed.err == ''


def test_wrong_parameters(tmp_path):
  with pytest.raises(errors.UsageError, match='Did you mean'):
    next(baselines_her.train(ENV, str(tmp_path / 'x'), 10, {'n_cycle': 1}))
  assert not os.listdir(tmp_path)


def test_example_of_the_documentation(tmp_path, monkeypatch, capsys):
  """The numbers of the example are replaced by small ones."""

  def small(env, logdir, num_timesteps, seed):
    assert (env, num_timesteps) == ('FetchReach-v1', 5000)
    return train(logdir, seed)

  monkeypatch.setattr(baselines_her, 'train', small)
  examples.run_example(library.__doc__, 'logs/reach', str(tmp_path / 'run'))
  assert capsys.readouterr().out.split() == ['5', '0.0', '10', '0.0']
