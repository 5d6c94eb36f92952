"""Trained PPO agents as a library."""

import copy
import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium.utils import env_checker

import agents
from agents import train_ppo, trained, utility
from agents.run import checkpoint, errors
from agents.tools.tf1 import tf
from tests import examples
from tests.agents import training_runs


@pytest.fixture(scope='module')
def logdir(tmp_path_factory):
  return _train(tmp_path_factory.mktemp('run'))


@pytest.fixture(scope='module')
def recurrent(tmp_path_factory):
  folder = tmp_path_factory.mktemp('recurrent')
  return _train(folder, network='recurrent_gaussian')


def _train(folder, **settings):
  config = training_runs.config(**settings)
  config = utility.save_config(config, str(folder))
  for _ in train_ppo.train(config, env_processes=False):
    pass
  return str(folder)


def test_actions_are_those_of_the_network(logdir):
  with agents.load(logdir) as agent:
    observation = np.array([0.5, -0.5, 3.0], np.float32)
    action, state = agent.predict(observation, deterministic=True)
  assert state is None
  reader = tf.train.load_checkpoint(checkpoint.find_variables(logdir))
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


def test_saved_agent(logdir, tmp_path, monkeypatch):
  monkeypatch.setenv('HOME', str(tmp_path))
  monkeypatch.chdir(tmp_path)
  observation = np.array([0.5, -0.5, 3.0], np.float32)
  with agents.load(logdir) as agent:
    expected, _ = agent.predict(observation, deterministic=True)
    agent.save('~/saved')
  with agents.load(str(tmp_path / 'saved')) as agent:
    assert agent.predict(observation, deterministic=True)[0] == expected
  path = checkpoint.find_variables(str(tmp_path / 'saved'))
  names = dict(tf.train.list_variables(path))
  assert 'network/policy/dense/kernel' in names
  # Neither optimizer nor episodes.
  assert not [x for x in names if 'Adam' in x or 'memory' in x]
  assert logdir not in (tmp_path / 'saved' / 'config.yaml').read_text()


def test_folders_to_save_to(logdir, tmp_path):
  """That of the run would lose what its training continues from."""
  (tmp_path / 'file').write_text('')
  with agents.load(logdir) as agent:
    for folder in (logdir, f'{logdir}/', '', None, str(tmp_path / 'file')):
      with pytest.raises(errors.UsageError, match='Cannot|not a path'):
        agent.save(folder)


def test_checkpoint_that_is_replaced(logdir):
  """By a training that goes on, after it was chosen."""
  with agents.load(logdir) as agent:
    config = agent.config
  with pytest.raises(errors.UsageError, match='been removed.*Repeat'):
    trained.PPO(config, f'{logdir}/model.ckpt-7')


def test_noise_only_on_request(logdir):
  observation = np.zeros(3, np.float32)
  with agents.load(logdir) as agent:
    first, second = (
      agent.predict(observation, deterministic=True)[0] for _ in range(2)
    )
    noisy, _ = agent.predict(observation)
  assert first == second and first != noisy


def test_recurrent_state(recurrent):
  observation = np.ones(3, np.float32)
  with agents.load(recurrent) as agent:
    first, state = agent.predict(observation, deterministic=True)
    remembered, _ = agent.predict(observation, deterministic=True)
    given, _ = agent.predict(observation, state, deterministic=True)
    agent.reset()
    anew, _ = agent.predict(observation, deterministic=True)
    for wrong in ([state], state[:, :2], 'state', 5, {}, [[1, 2], [3]]):
      with pytest.raises(ValueError, match='one that predict has returned'):
        agent.predict(observation, wrong)
      with pytest.raises(ValueError, match='one that predict has returned'):
        agent.predict([observation] * 2, [None, wrong])
  assert remembered == given != first
  assert anew == first


def test_batches(logdir):
  """Several observations at once, as stable-baselines3 passes them."""
  observations = np.random.RandomState(0).uniform(-1, 1, (3, 3))
  with agents.load(logdir) as agent:
    actions, state = agent.predict(observations, deterministic=True)
    single = [agent.predict(x, deterministic=True)[0] for x in observations]
    assert agent.observation_space.shape == (3,) and agent.logdir == logdir
    assert all(agent.action_space.contains(x) for x in actions)
    for wrong in (observations[:, :2], observations[None]):
      with pytest.raises(ValueError, match='as in the training'):
        agent.predict(wrong)
    with pytest.raises(ValueError, match='observation is infinite'):
      agent.predict([0, 0, np.inf])
    with pytest.raises(ValueError, match='2 states for 3 rows; give'):
      agent.predict(observations, [None] * 2)
  assert actions.shape == (3, 1) and state is None
  # Products of matrices are rounded otherwise than those of single rows.
  np.testing.assert_allclose(actions, single, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize('network', ['logdir', 'recurrent'])
def test_a_batch_takes_one_run_of_the_graph(network, request, monkeypatch):
  observations = np.random.RandomState(0).uniform(-1, 1, (50, 3))
  calls = []
  with agents.load(request.getfixturevalue(network)) as agent:
    decide = agent._decide
    monkeypatch.setattr(
      agent, '_decide', lambda *x: calls.append(len(x[0])) or decide(*x)
    )
    actions, states = agent.predict(observations, deterministic=True)
    later, _ = agent.predict(observations, states, deterministic=True)
    assert calls == [50, 50]
    for row, observation in enumerate(observations[:5]):
      one, state = agent.predict(observation, None, True, True)
      np.testing.assert_allclose(actions[row], one, rtol=1e-4, atol=1e-6)
      one, _ = agent.predict(observation, state, deterministic=True)
      np.testing.assert_allclose(later[row], one, rtol=1e-4, atol=1e-6)


def test_recurrent_batches(recurrent):
  """Each row has a state of its own, until its episode begins anew."""
  observations = np.ones((2, 3), np.float32)
  with agents.load(recurrent) as agent:
    first, state = agent.predict(observations, deterministic=True)
    later, _ = agent.predict(observations, state, [True, False], True)
    single, _ = agent.predict(observations[0], deterministic=True)
    anew, _ = agent.predict(observations[0], None, True, True)
  assert first[0] == first[1] == later[0] and anew == single
  # Products of one row and of two may round differently.
  np.testing.assert_allclose(single, first[0], rtol=1e-4, atol=1e-6)
  assert later[1] != first[1]


def test_environment_of_the_training(logdir):
  """It has the interface of gymnasium, by its own checker."""
  with agents.load(logdir) as agent:
    env = agent.make_env('rgb_array')
    env_checker.check_env(env, skip_render_check=True)
    observation, info = env.reset(seed=3)
    assert env.observation_space.contains(observation) and info == {}
    for _ in range(20):
      *_, terminated, truncated, _ = env.step(env.action_space.sample())
    assert truncated and not terminated
    assert env.render().shape == (500, 500, 3)
    env.close()


def test_evaluation(logdir):
  with agents.load(logdir) as agent:
    result = agents.evaluate(agent, episodes=2, seed=np.int64(1))
    other = agents.evaluate(agent, gymnasium.make('Pendulum-v1'), 1, seed=1)
    assert result.lengths == [20, 20] and other.lengths == [200]
    assert result.returns == agents.evaluate(agent, None, 2, seed=1).returns
    assert result.success_rate is None
    # No time limit of its own, and a reward in an array of one number.
    endless = gymnasium.make('Pendulum-v1').unwrapped
    endless = gymnasium.wrappers.TransformReward(endless, lambda x: [x])
    assert agents.evaluate(agent, endless, episodes=1).lengths == [20]
    # Limits that other wrappers hide, and those of gym.
    longer = gymnasium.wrappers.TimeLimit(endless.unwrapped, 30)
    longer = gymnasium.wrappers.RecordEpisodeStatistics(longer)
    assert agents.evaluate(agent, longer, episodes=1).lengths == [30]
    closed: list = []
    longer.close = lambda: closed.append(longer)
    agents.evaluate(agent, longer, episodes=1)
    assert not closed
    agents.evaluate(agent, lambda: longer, episodes=1)
    assert closed
    gym = pytest.importorskip('gym')
    old = gym.wrappers.TimeLimit(gym.make('Pendulum-v1').unwrapped, 30)
    assert agents.evaluate(agent, old, episodes=1).lengths == [30]
    unsure = gymnasium.wrappers.TransformObservation(longer, lambda x: x, None)
    step = unsure.step
    unsure.step = lambda action: (*step(action)[:4], {'is_success': np.nan})
    with pytest.raises(errors.EnvError, match='NaN success encountered in'):
      agents.evaluate(agent, unsure, episodes=1)
    for wrong in (0, 1.5, None):
      with pytest.raises(errors.UsageError, match=f'{wrong} episodes'):
        agents.evaluate(agent, episodes=wrong)
    with pytest.raises(errors.UsageError, match="'seed' is -1"):
      agents.evaluate(agent, seed=-1)
  with pytest.raises(errors.UsageError, match='policy is None'):
    agents.evaluate(None)
  with pytest.raises(errors.UsageError, match='agent is closed'):
    agents.evaluate(agent)


def test_wrong_observation(logdir):
  with agents.load(logdir) as agent:
    with pytest.raises(ValueError, match=r'\(4,\), but .* \(3,\)'):
      agent.predict(np.zeros(4))
    # Programs that play print it, as it is the environment's mistake.
    for kind in (ValueError, errors.EnvError):
      with pytest.raises(kind, match='NaN; give finite numbers'):
        agent.predict([None] * 3)
    with pytest.raises(ValueError, match=r'\(\), but .* \(3,\)'):
      agent.predict([[1, 0, 0], [1]])
    with pytest.raises(ValueError, match='a pair with an info'):
      agent.predict(agent.make_env().reset())
    for wrong in ('go', b'go', {'observation': np.zeros(3)}, ['1', '2', '3']):
      with pytest.raises(ValueError, match=r'numbers of shape \(3,\)'):
        agent.predict(wrong)
    with pytest.raises(ValueError, match='1 states for 2 rows'):
      agent.predict(np.zeros([2, 3]), 5)
    with pytest.raises(ValueError, match='The batch has no rows'):
      agent.predict(np.zeros([0, 3]))
    for mode in ('typo', 'human', 5):
      with pytest.raises(errors.UsageError, match="give 'rgb_array'"):
        agent.make_env(mode)
    with pytest.raises(ValueError, match=r'\(3,\) for 2 rows'):
      agent.predict(np.zeros([2, 3]), episode_start=[True] * 3)


def test_copies(logdir):
  """They would share a session, or could not use it."""
  with agents.load(logdir) as agent:
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
      with pytest.raises(TypeError, match=f'load it there, from {logdir}'):
        attempt(agent)


class Choices(gymnasium.Env):
  observation_space = gymnasium.spaces.Tuple(
    [gymnasium.spaces.Discrete(3), gymnasium.spaces.MultiDiscrete([2, 4])]
  )
  action_space = gymnasium.spaces.Discrete(2)

  def reset(self, *, seed=None, options=None):
    return self.observation_space.sample(), {}

  def step(self, action):
    return self.observation_space.sample(), 1.0, True, False, {}


def test_observations_that_are_no_choice(tmp_path):
  """Refused, as a one-hot vector could not show them."""
  small = dict(num_agents=1, update_every=1, eval_episodes=1, max_length=2)
  list(agents.train(Choices, str(tmp_path), 2, params=small))
  with agents.load(str(tmp_path), trust=__name__) as agent:
    batch = np.array([0, 2]), np.array([[0, 3], [1, 0]])
    for good in ((2, [1, 3]), batch):
      agent.predict(good)
    for wrong in ((3, [1, 3]), (-1, [1, 3]), (0, [2, 3]), (0, [0, -1])):
      with pytest.raises(ValueError, match='The part .* but must be in'):
        agent.predict(wrong)
    with pytest.raises(ValueError, match='The part 1 is'):
      agent.predict((batch[0], batch[1] + 1))
    for wrong in ((2,), (2, [1, 3], 0), 2, {0: 2, 1: [1, 3]}):
      with pytest.raises(ValueError, match='a tuple of 2 parts'):
        agent.predict(wrong)


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
  with pytest.raises(errors.UsageError, match='Did you mean model.ckpt-'):
    agents.load(str(tmp_path), 'model.ckpt-7')
  index = 1 + 2 * scores[1::2].index(best)
  assert path.endswith(f'best/model.ckpt-{40 * (index + 1)}')


def test_example_of_the_documentation(logdir, capsys):
  examples.run_example(trained.__doc__, 'logs/pendulum', logdir)
  assert np.isfinite(float(capsys.readouterr().out))
