"""Training PPO from Python, as notebooks and loops over seeds do."""

import signal
import sys

import gymnasium
import numpy as np
import pytest

import agents
from agents import configs, library, networks
from agents.run import errors
from tests import examples
from tests.agents import training_runs

PARAMS = {x: y for x, y in training_runs.SMALL.items() if x != 'steps'}


def train(logdir, seed, env='Pendulum-v1', steps=80, **params):
  params = {**PARAMS, **params}
  return agents.train(
    env, logdir, steps, params=params, seed=seed, env_processes=False
  )


def timeless(records):
  return [{k: x for k, x in y.items() if k != 'seconds'} for y in records]


@pytest.mark.slow
def test_loop_over_seeds(capfd):
  """Trainings in one process, which say nothing and keep the signals."""
  handler = signal.getsignal(signal.SIGINT)
  capfd.readouterr()
  first, other = [timeless(train(None, seed)) for seed in (0, 1)]
  assert first != other
  assert [x['epoch'] for x in first] == [1, 2]
  assert [x['environment_steps'] for x in first] == [40, 80]
  assert [x['episodes'] for x in first] == [2, 4]
  assert [x['updates'] for x in first] == [2, 4]
  assert all(x['return'] < 0 and x['test_return'] < 0 for x in first)
  assert all(np.isfinite(x['loss/value']) for x in first)
  assert signal.getsignal(signal.SIGINT) is handler
  assert capfd.readouterr().out == ''


@pytest.mark.slow
def test_two_at_once():
  """Stepped in turn, they give the same numbers as alone."""
  alone = [timeless(train(None, seed)) for seed in (0, 1)]
  trainings = [train(None, seed) for seed in (0, 1)]
  turns = [timeless(pair) for pair in zip(*trainings)]
  assert [list(x) for x in zip(*turns)] == alone


@pytest.mark.slow
def test_left_and_continued(tmp_path, capsys):
  """While the first training has a name, and after the end."""
  training = train(str(tmp_path), 0)
  first = next(training)
  run = first['logdir']
  (second,) = train(str(tmp_path), 0)
  assert list(training) == []
  assert second['logdir'] == run and second['epoch'] == 2
  assert (first['episodes'], second['episodes']) == (2, 4)
  assert (first['updates'], second['updates']) == (2, 4)
  assert list(train(str(tmp_path), 0)) == []
  printed = capsys.readouterr()
  assert printed.out == ''
  assert printed.err.count('\n') == 1
  assert f'Nothing to do: the run in {run} is finished' in printed.err
  assert [x[1] for x in training_runs.read_scores(run)] == [40, 80, 120, 160]
  # A loaded agent is trained on in its folder.
  with agents.load(run) as agent:
    (third,) = agents.train(None, agent.logdir, 120, env_processes=False)
  assert third['environment_steps'] == 120 and third['logdir'] == run


@pytest.mark.slow
def test_changed_settings(tmp_path, capsys):
  with train(str(tmp_path), 0, learning_rate=0.5) as training:
    next(training)
  records = list(train(str(tmp_path), 0, learning_rate=0.25))
  assert [x['epoch'] for x in records] == [2]
  assert capsys.readouterr().err == 'learning_rate 0.5 -> 0.25\n'


def test_budget_within_a_phase():
  """All steps, rounded up to one of all environments."""
  records = list(train(None, 0, steps=141, update_every=4))
  assert [x['environment_steps'] for x in records] == [80, 142]
  assert [x['episodes'] for x in records] == [4, 6]
  assert np.isfinite(records[1]['return'])
  assert np.isnan(records[1]['test_return'])


def make_env():
  return gymnasium.make('Pendulum-v1')


def narrow(*args):
  return networks.feed_forward_gaussian(*args)


@pytest.mark.parametrize(
  'env',
  [
    pytest.param(make_env, marks=pytest.mark.slow),
    pytest.param(make_env(), marks=pytest.mark.slow),
    lambda: make_env(),
  ],
)
def test_own_parts(env, tmp_path):
  """Environments and networks as objects; agents know what to ask for."""
  records = list(train(str(tmp_path), 0, env, num_agents=1, network=narrow))
  assert len(records) == 2
  logdir = records[0]['logdir']
  for trust in (agents.Trust((__name__,)), [__name__], (__name__,)):
    agents.load(logdir, trust=trust).close()
  with agents.load(logdir, trust=__name__) as agent:
    assert agent.config.network is narrow
    assert agents.evaluate(agent, make_env(), 1).lengths == [200]
    if env is make_env:
      assert agents.evaluate(agent, episodes=1).lengths == [20]
    else:
      with pytest.raises(errors.UsageError, match='was the object'):
        agent.make_env()


def test_environments_that_render_are_tried_elsewhere(tmp_path):
  """OpenGL in software would end a process that has TensorFlow."""
  from agents.tools.tf1 import tf

  assert tf.constant  # Is loaded.

  def make():
    if 'tensorflow' in sys.modules:
      raise RuntimeError('this process has TensorFlow')
    return gymnasium.make('Pendulum-v1')

  agents.train(make, str(tmp_path), 80, params=PARAMS).close()


@pytest.mark.parametrize(
  'arguments, message',
  [
    (dict(env='Pendulun-v1'), 'Did you mean Pendulum-v1'),
    (dict(), 'names no environment'),
    (dict(params={'num_agent': 2}), 'Did you mean num_agents'),
    (dict(params={'steps': 3}, total_env_steps=3), 'not both'),
    (dict(seed=-1), "'seed' is -1"),
    (dict(seed=1.5), "'seed' is 1.5"),
    (dict(total_env_steps=0), 'total_env_steps is 0'),
    (dict(params={'network': 3}), "'network' is 3"),
    (dict(params='{steps: 3}'), 'give a dict'),
    (dict(config=dict), 'name of a configuration'),
  ],
)
def test_wrong_arguments(arguments, message):
  """The call itself is refused."""
  with pytest.raises(errors.UsageError, match=message):
    agents.train(**arguments)


def test_typed_parameters():
  params = configs.Config(env='Pendulum-v1', **PARAMS)
  next(agents.train(params=params, env_processes=False))


def test_example_of_the_documentation(tmp_path, monkeypatch, capsys):
  """The numbers of the example are replaced by small ones."""
  monkeypatch.setattr(
    agents,
    'train',
    lambda env, logdir, steps, seed: library.train(
      env, logdir, 40, params=PARAMS, seed=seed, env_processes=False
    ),
  )
  examples.run_example(library.__doc__, 'logs/pendulum', str(tmp_path))
  steps, score = capsys.readouterr().out.split()
  assert int(steps) == 40 and float(score) < 0
