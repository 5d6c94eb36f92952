"""Training PPO from Python, as notebooks and loops over seeds do."""

import os
import signal

import pytest

import agents
from agents import library
from agents.run import errors
from tests import examples
from tests.agents import training_runs

PARAMS = {**training_runs.SMALL, 'env': 'Pendulum-v1'}


def train(logdir, seed):
  return agents.train(logdir, params=PARAMS, seed=seed, env_processes=False)


def test_loop_over_seeds(capfd):
  """Two trainings in one process, which say nothing and keep the signals."""
  handler = signal.getsignal(signal.SIGINT)
  capfd.readouterr()
  first, other, again = [list(train(None, seed)) for seed in (0, 1, 0)]
  assert first == again != other
  assert [x['epoch'] for x in first] == [1, 2]
  assert [x['environment_steps'] for x in first] == [80, 160]
  assert all(x['train_return'] < 0 and x['test_return'] < 0 for x in first)
  assert signal.getsignal(signal.SIGINT) is handler
  assert capfd.readouterr().out == ''


def test_left_and_continued(tmp_path, capsys):
  training = train(str(tmp_path), 0)
  run = next(training)['logdir']
  training.close()
  assert os.path.exists(os.path.join(run, 'model.ckpt-80.index'))
  (second,) = train(str(tmp_path), 0)
  assert second['logdir'] == run and second['epoch'] == 2
  assert list(train(str(tmp_path), 0))[0]['logdir'] != run
  printed = capsys.readouterr()
  assert printed.out == printed.err == ''
  assert [x[1] for x in training_runs.read_scores(run)] == [40, 80, 120, 160]


def test_wrong_parameters():
  with pytest.raises(errors.UsageError, match='Did you mean num_agents'):
    next(agents.train(params={'num_agent': 2}))


def test_example_of_the_documentation(tmp_path, monkeypatch, capsys):
  """The numbers of the example are replaced by small ones."""
  small = {**PARAMS, 'steps': 40}
  monkeypatch.setattr(
    agents, 'train', lambda *args, **kw: library.train(*args, **_use(kw, small))
  )
  examples.run_example(library.__doc__, 'logs/pendulum', str(tmp_path))
  steps, score = capsys.readouterr().out.split()
  assert int(steps) == 80 and float(score) < 0


def _use(given, small):
  assert set(given['params']) == {'env', 'steps'}
  return {**given, 'params': small, 'env_processes': False}
