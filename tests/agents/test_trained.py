"""Trained PPO agents as a library."""

import gymnasium
import numpy as np
import pytest

import agents
from agents import train_ppo, trained, utility
from agents.run import checkpoint, errors
from agents.tools.tf1 import tf
from tests import examples
from tests.agents import training_runs


@pytest.fixture(scope='module')
def logdir(tmp_path_factory):
  return _train(tmp_path_factory.mktemp('run'))


def _train(folder, **settings):
  config = training_runs.config(**settings)
  config = utility.save_config(config, str(folder))
  for _ in train_ppo.train(config, env_processes=False):
    pass
  return str(folder)


def test_actions_are_those_of_the_network(logdir):
  with agents.load(logdir) as agent:
    observation = np.array([0.5, -0.5, 3.0], np.float32)
    action, state = agent.predict(observation)
  assert state is None
  reader = tf.train.load_checkpoint(utility.latest_checkpoint(logdir))
  count = reader.get_tensor('normalize_observ/count')
  mean = reader.get_tensor('normalize_observ/mean')
  var_sum = reader.get_tensor('normalize_observ/var_sum')
  # The pendulum's bounds are [1, 1, 8] for observations, 2 for actions.
  x = observation / np.array([1, 1, 8], np.float32) - mean
  x = np.clip(x / (np.sqrt(var_sum / (count - 1) + 1e-4) + 1e-8), -5, 5)
  layers = 'network/policy/dense', 'network/policy/dense_1'
  for name, activation in zip(layers, (lambda x: np.maximum(x, 0), np.tanh)):
    weights = reader.get_tensor(f'{name}/kernel')
    x = activation(x @ weights + reader.get_tensor(f'{name}/bias'))
  assert np.allclose(action, 2 * np.clip(x, -1, 1), atol=1e-4)


def test_saved_agent(logdir, tmp_path):
  observation = np.array([0.5, -0.5, 3.0], np.float32)
  with agents.load(logdir) as agent:
    expected, _ = agent.predict(observation)
    agent.save(str(tmp_path / 'saved'))
  with agents.load(str(tmp_path / 'saved')) as agent:
    assert agent.predict(observation)[0] == expected
  path = utility.latest_checkpoint(str(tmp_path / 'saved'))
  names = dict(tf.train.list_variables(path))
  assert 'network/policy/dense/kernel' in names
  # Neither optimiser nor episodes.
  assert not [x for x in names if 'Adam' in x or 'memory' in x]
  assert logdir not in (tmp_path / 'saved' / 'config.yaml').read_text()


def test_noise_only_on_request(logdir):
  observation = np.zeros(3, np.float32)
  with agents.load(logdir) as agent:
    first, second = (agent.predict(observation)[0] for _ in range(2))
    noisy, _ = agent.predict(observation, deterministic=False)
  assert first == second and first != noisy


def test_recurrent_state(tmp_path):
  logdir = _train(tmp_path, network='recurrent_gaussian')
  observation = np.ones(3, np.float32)
  with agents.load(logdir) as agent:
    first, state = agent.predict(observation)
    remembered, _ = agent.predict(observation)
    given, _ = agent.predict(observation, state)
    agent.reset()
    anew, _ = agent.predict(observation)
  assert remembered == given != first
  assert anew == first


def test_evaluation(logdir):
  with agents.load(logdir) as agent:
    result = agents.evaluate(agent, episodes=2, seed=1)
    other = agents.evaluate(agent, gymnasium.make('Pendulum-v1'), 1, seed=1)
    assert result.lengths == [20, 20] and other.lengths == [200]
    assert result.returns == agents.evaluate(agent, None, 2, seed=1).returns
    assert result.success_rate is None
    with pytest.raises(errors.UsageError, match='0 episodes'):
      agents.evaluate(agent, episodes=0)


def test_wrong_observation(logdir):
  with agents.load(logdir) as agent:
    with pytest.raises(ValueError, match=r'\(4,\), but those .* \(3,\)'):
      agent.predict(np.zeros(4))


def test_nothing_to_load(tmp_path):
  with pytest.raises(errors.UsageError, match='There is no run'):
    agents.load(str(tmp_path))


def test_best_model(tmp_path):
  config = utility.save_config(training_runs.config(), str(tmp_path))
  scores = list(train_ppo.train(config, env_processes=False))
  best = max(scores[1::2])
  assert checkpoint.read_best_score(str(tmp_path)) == pytest.approx(best)
  with agents.load(str(tmp_path), 'best') as agent:
    action, _ = agent.predict(np.zeros(3, np.float32))
  assert abs(action) <= 2
  path = checkpoint.find_variables(str(tmp_path), 'best')
  index = 1 + 2 * scores[1::2].index(best)
  assert path.endswith(f'best/model.ckpt-{40 * (index + 1)}')


def test_example_of_the_documentation(logdir, capsys):
  examples.run_example(trained.__doc__, 'logs/pendulum', logdir)
  assert np.isfinite(float(capsys.readouterr().out))
