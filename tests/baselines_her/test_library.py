"""Training HER from Python, as notebooks and loops over seeds do."""

import json
import os
import signal
from unittest import mock

import gymnasium
import numpy as np
import pytest

import baselines_her
from agents.run import errors, references
from agents.tools.tf1 import tf
from baselines_her import her, library, logger, play, vec_env
from baselines_her.pipeline import task
from tests import examples, golden
from tests.baselines_her import toy

PARAMS = {
  'n_cycles': 1,
  'n_batches': 2,
  'batch_size': 16,
  'hidden': 8,
  'n_test_rollouts': 1,
}
ENV = 'tests.baselines_her.odd_envs:Fine-v0'


def train(logdir, seed, steps=10, env=ENV, **more):
  return library.train(env, logdir, steps, {**PARAMS, **more}, seed)


def without(record, *names):
  return {k: v for k, v in record.items() if k not in ('seconds', *names)}


def rows(logdir):
  return logger.read_csv(os.path.join(str(logdir), 'progress.csv'))


@pytest.mark.slow
def test_loop_over_seeds(tmp_path, capfd):
  """Trainings in one process, which say nothing and keep the signals."""
  handler, current = signal.getsignal(signal.SIGINT), logger.get_current()
  capfd.readouterr()
  for index, seed in enumerate(np.array([1, 2, 1])):
    records = list(train(tmp_path / str(index), seed))
    assert [x['epoch'] for x in records] == [1, 2]
    assert [x['updates'] for x in records] == [2, 4]
    assert [x['environment_steps'] for x in records] == [5, 10]
    assert [x['episodes'] for x in records] == [1, 2]
    assert [x['success_rate'] for x in records] == [0, 0]
    assert all(-5 <= x['return'] <= 0 and x['seconds'] > 0 for x in records)
    assert set(records[1]) == {
      *('logdir', 'epoch', 'environment_steps', 'episodes', 'updates'),
      *('return', 'test_return', 'success_rate', 'test_success_rate'),
      *('loss/critic', 'seconds'),
    }
    assert records[0]['logdir'] == str(tmp_path / str(index))
  assert rows(tmp_path / '0') == rows(tmp_path / '2') != rows(tmp_path / '1')
  assert signal.getsignal(signal.SIGINT) is handler
  assert logger.get_current() is current
  assert capfd.readouterr().out == ''


@pytest.mark.slow
def test_left_and_continued(tmp_path, capsys):
  """A second training of the same run takes over; others go on beside it."""
  whole = list(train(tmp_path / 'whole', 1))
  training = train(tmp_path / 'parts', 1)
  beside = train(tmp_path / 'beside', 2)
  # There is nothing to continue when it is called, but when it begins.
  again = train(tmp_path / 'parts', 1)
  assert next(training)['epoch'] == next(beside)['epoch'] == 1
  (second,) = again
  assert list(training) == []
  next(beside)
  assert without(second, 'logdir') == without(whole[1], 'logdir')
  assert rows(tmp_path / 'parts') == rows(tmp_path / 'whole')
  # Episodes are not forgotten as those of a run that begins anew.
  lengths = [
    len((tmp_path / name / '0.0.monitor.csv').read_text().splitlines())
    for name in ('parts', 'whole')
  ]
  assert lengths[0] == lengths[1]
  alone = list(train(tmp_path / 'alone', 2))
  assert rows(tmp_path / 'beside') == rows(tmp_path / 'alone')
  assert len(alone) == 2
  printed = capsys.readouterr()
  assert printed.out == printed.err == ''
  # By the folder alone, which also names what the training was given.
  trained = baselines_her.train(None, tmp_path / 'parts', 10, trust='tests')
  assert list(trained) == []
  assert 'Nothing to do: the run in' in capsys.readouterr().err
  with pytest.raises(references.NotTrusted, match='odd_envs'):
    baselines_her.train(None, tmp_path / 'parts', 15)


def test_refused_run_keeps_its_settings(tmp_path):
  """Only a checkpoint that fits may change them."""
  list(train(tmp_path, 1, 5))
  before = (tmp_path / 'params.json').read_text()
  for path in (tmp_path / 'checkpoints').iterdir():
    (path / 'rank1.json').write_text('{}')
  with pytest.raises(errors.UsageError, match='saved with 2 ranks'):
    list(train(tmp_path, 1, lr=0.5))
  assert (tmp_path / 'params.json').read_text() == before


def make_env():
  return gymnasium.make(ENV)


def test_environments_of_whatever_kind(tmp_path):
  """They give the same numbers as by their id."""
  by_id = without(list(train(tmp_path / 'id', 1))[-1], 'logdir')
  for name, env in (('function', make_env), ('object', make_env())):
    records = list(train(tmp_path / name, 1, env=env))
    assert without(records[-1], 'logdir') == by_id
  with pytest.raises(errors.UsageError, match='single environment'):
    library.train(make_env(), tmp_path / 'x', 10, PARAMS, num_env=2)
  path = tmp_path / 'object' / 'params.json'
  assert json.loads(path.read_text())['env_name'] == '<Fine-v0>'
  with pytest.raises(errors.UsageError, match='pass the object again'):
    baselines_her.train(None, tmp_path / 'object', 10, trust=['tests'])


@pytest.mark.parametrize(
  'arguments, message',
  [
    ({'params': {'n_cycle': 1}}, 'Did you mean'),
    ({'params': {'network': 'mlp'}}, 'network'),
    ({'params': '{n_cycles: 1}'}, 'give a dict'),
    ({'env': {}}, 'give an id, a function, or an environment'),
    ({'seed': -1}, 'seed'),
    ({'total_env_steps': -5}, 'total_env_steps'),
    ({'num_env': 0}, 'num_env'),
    ({'env': 'Nothing-v0'}, 'Nothing-v0'),
    ({'env': lambda: 3}, 'returns 3'),
    ({'env': ENV.replace('Fine', 'Sign')}, 'compute_reward returns 1 for'),
    ({'env': ENV.replace('Fine', 'NaNReward')}, 'a reward that is NaN'),
  ],
)
def test_wrong_arguments(tmp_path, arguments, message):
  """They are refused by the call, before anything begins."""
  with pytest.raises((errors.UsageError, errors.EnvError), match=message):
    baselines_her.train(**{'env': ENV, 'logdir': tmp_path / 'x', **arguments})
  assert not os.listdir(tmp_path)


@pytest.mark.slow
def test_network_of_the_examples(tmp_path, monkeypatch):
  """It is named or given, stored by its name, and loaded if it is trusted."""
  monkeypatch.syspath_prepend(os.path.join(golden.ROOT, 'docs', 'examples'))
  import her_network

  by_name = list(train(tmp_path / 'a', 1, network='her_network:Smooth'))
  given = list(train(tmp_path / 'b', 1, network=her_network.Smooth))
  assert without(by_name[1], 'logdir') == without(given[1], 'logdir')
  other = list(train(tmp_path / 'c', 1))
  assert other[1]['loss/critic'] != given[1]['loss/critic']
  with pytest.raises(references.NotTrusted, match='her_network'):
    baselines_her.load(tmp_path / 'b', trust='tests')
  with baselines_her.load(tmp_path / 'b', trust=['tests', 'her_network']) as x:
    assert x.predict(x.observation_space.sample())[0].shape == (1,)


def test_ids_without_a_time_limit(tmp_path):
  """The setting T is their limit, also for what loads the run."""
  env = ENV.replace('Fine', 'Endless')
  with pytest.raises(errors.UsageError, match='no time limit'):
    list(train(tmp_path, 1, env=env))
  own = without(list(train(tmp_path / 'a', 1))[-1], 'logdir')
  given = without(list(train(tmp_path / 'b', 1, env=env, T=5))[-1], 'logdir')
  assert given == own
  (more,) = library.train(None, tmp_path / 'b', 15, trust=['tests'])
  assert more['environment_steps'] == 15
  with baselines_her.load(tmp_path / 'b', trust=['tests']) as agent:
    assert baselines_her.evaluate(agent, episodes=2).lengths == [5, 5]
  assert play.find_problem(env, False, 5).startswith('render of environment')


def test_time_limits_of_sessions_and_vector_environments():
  """Sessions have the setting T; vector environments were created with it."""
  env = ENV.replace('Fine', 'Endless')
  made = task.Task(mock.Mock(), {'name': env, 'seed': 1}, {'T': 5})
  assert made.time_limit == made.settings.T == 5
  with tf.Graph().as_default(), toy.session():
    policy = her.learn(
      network=None,
      env=vec_env.make_vec_env(env, 'robotics', 1, 0, time_limit=5),
      total_timesteps=5,
      override_params=PARAMS,
    )
  assert policy.T == 5


def test_successes_are_missing(tmp_path, capsys):
  (record,) = train(tmp_path, 1, 5, ENV.replace('Fine', 'Mute'))
  assert "no 'is_success'" in capsys.readouterr().err
  assert record['test_success_rate'] == 0


def test_example_of_the_documentation(tmp_path, monkeypatch, capsys):
  """The numbers of the example are replaced by small ones."""

  def small(env, logdir, total_env_steps, seed):
    assert (env, total_env_steps) == ('FetchReach-v4', 5000)
    return train(logdir, seed)

  monkeypatch.setattr(baselines_her, 'train', small)
  examples.run_example(library.__doc__, 'logs/reach', str(tmp_path / 'run'))
  assert capsys.readouterr().out.split() == ['5', '0.0', '10', '0.0']
