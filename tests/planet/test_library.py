"""Training PlaNet from Python, as notebooks and loops over seeds do."""

import os
import signal

import pytest

import planet
from agents.run import errors
from planet import library
from tests import examples

# Little to compute, and a graph that is soon built.
PARAMS = {
  'tasks': ['dummy'],
  'train_steps': 4,
  'test_steps': 4,
  'max_steps': 16,
  'image_size': 32,
  'batch_shape': [2, 3],
  'action_repeat': 200,
  'num_seed_episodes': 1,
  'train_collects': [],
  'planner_iterations': 1,
  'planner_horizon': 2,
  'model_size': 8,
  'num_layers': 1,
}


def names(*parts):
  return os.listdir(os.path.join(*parts))


def test_loop_over_seeds(tmp_path, capsys):
  """One training to its end and one that is left, in one process."""
  handler = signal.getsignal(signal.SIGINT)
  records, runs = {}, {}
  for seed in (0, 1):
    records[seed] = []
    params = {**PARAMS, 'max_steps': 8 if seed == 0 else 16}
    for record in planet.train(
      str(tmp_path / str(seed)), 'debug', params, seed=seed
    ):
      records[seed].append(record)
      runs[seed] = record.pop('logdir')
      if seed == 1:
        break
  (first,), (other,) = records[0], records[1]
  assert first['epoch'] == other['epoch'] == 1
  assert first['environment_steps'] == other['environment_steps'] == 1000
  assert first['test_return'] != other['test_return']
  assert 'DONE' in names(runs[0]) and 'DONE' not in names(runs[1])
  assert 'model.ckpt-8.index' in names(runs[1])
  assert signal.getsignal(signal.SIGINT) is handler
  printed = capsys.readouterr()
  assert printed.out == printed.err == ''


def test_wrong_parameters(tmp_path):
  with pytest.raises(errors.UsageError, match='Did you mean tasks'):
    next(planet.train(str(tmp_path), 'debug', {'taskss': ['dummy']}))
  assert not names(tmp_path)


def test_example_of_the_documentation(tmp_path, monkeypatch, capsys):
  """The parameters of the example are replaced by small ones."""
  params = {**PARAMS, 'max_steps': 8, 'test_collects': []}

  def train(logdir, config, given, seed):
    assert config == 'cpu' and given == {'tasks': ['cartpole_balance']}
    return library.train(logdir, 'debug', params, seed)

  monkeypatch.setattr(planet, 'train', train)
  examples.run_example(library.__doc__, 'logs/cartpole', str(tmp_path))
  assert capsys.readouterr().out.split() == ['1000', 'None']
