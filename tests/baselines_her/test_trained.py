"""Trained HER agents as a library."""

import gymnasium
import numpy as np
import pytest

import baselines_her
from agents.run import errors
from baselines_her import run, trained
from tests import examples
from tests.baselines_her import odd_envs, test_library

SETTINGS = ['--n_cycles=1', '--n_batches=1', '--batch_size=16', '--hidden=8']


@pytest.fixture(scope='module')
def logdir(tmp_path_factory):
  folder = str(tmp_path_factory.mktemp('run'))
  code = run.run(
    ['run', '--env=FetchReach-v1', '--num_timesteps=100', '--seed=1']
    + [f'--log_path={folder}', '--n_test_rollouts=1', '--random_eps=0']
    + SETTINGS
  )
  assert code == 0
  return folder


def test_evaluation(logdir):
  with baselines_her.load(logdir) as agent:
    result = baselines_her.evaluate(agent, episodes=2, seed=1)
    again = baselines_her.evaluate(agent, episodes=2, seed=1)
  assert result.lengths == [50, 50] and len(result.successes) == 2
  assert result.returns == again.returns
  assert 0 <= result.success_rate <= 1


def test_two_agents_at_once(logdir):
  with baselines_her.load(logdir) as one, baselines_her.load(logdir) as two:
    env = one.make_env()
    observation, _ = env.reset(seed=1)
    assert (
      env.observation_space['observation']
      == one.observation_space['observation']
    )
    assert env.action_space == one.action_space
    env.close()
    first, state = one.predict(observation, deterministic=True)
    second, _ = two.predict(observation, deterministic=True)
    noisy, _ = two.predict(observation)
  assert state is None
  assert (first == second).all() and (first != noisy).any()
  assert first.dtype == np.float32 and first.shape == (4,)


def test_exploration_is_that_of_the_training(logdir):
  """Unless it is given; this training takes no random actions."""
  with baselines_her.load(logdir, noise_eps=0.0) as agent:
    space = agent.observation_space
    observation = {key: np.ones(x.shape) for key, x in space.items()}
    first, _ = agent.predict(observation, deterministic=True)
    for _ in range(20):
      assert (agent.predict(observation)[0] == first).all()


def test_a_batch_takes_one_run_of_the_graph(logdir, monkeypatch):
  with baselines_her.load(logdir) as agent:
    space, act, calls = agent.observation_space, agent.policy.get_actions, []
    rng = np.random.RandomState(0)
    batch = {
      key: rng.uniform(-1, 1, (20, *x.shape)) for key, x in space.items()
    }
    monkeypatch.setattr(
      agent.policy,
      'get_actions',
      lambda o, *x, **y: calls.append(len(o)) or act(o, *x, **y),
    )
    actions, states = agent.predict(batch, deterministic=True)
    assert calls == [20] and states is None and actions.shape == (20, 4)
    for row in range(20):
      one, _ = agent.predict(
        {key: x[row] for key, x in batch.items()}, deterministic=True
      )
      assert one.shape == (4,) and one.dtype == actions.dtype
      np.testing.assert_allclose(actions[row], one, rtol=1e-5, atol=1e-6)
    single, _ = agent.predict({key: x[:1] for key, x in batch.items()})
    assert single.shape == (1, 4)
    batch['desired_goal'] = batch['desired_goal'][:5]
    with pytest.raises(ValueError, match=r'desired_goal has shape \(5, 3\)'):
      agent.predict(batch)


def test_saved_without_pickles(logdir, tmp_path):
  with baselines_her.load(logdir) as agent:
    expected = baselines_her.evaluate(agent, episodes=1, seed=1)
    agent.save(str(tmp_path / 'saved'))
  names = sorted(x.name for x in (tmp_path / 'saved').iterdir())
  assert names == ['policy.json', 'policy.npz']
  with baselines_her.load(str(tmp_path / 'saved')) as agent:
    found = baselines_her.evaluate(agent, episodes=1, seed=1)
  assert found.returns == expected.returns
  path = tmp_path / 'saved' / 'policy.json'
  text = path.read_text()
  path.write_text(text[:20])
  with pytest.raises(errors.UsageError, match='Cannot load a policy'):
    baselines_her.load(str(tmp_path / 'saved'))


def test_wrong_observation(logdir):
  with baselines_her.load(logdir) as agent:
    observation = {
      'observation': np.zeros(3),
      'achieved_goal': np.zeros(3),
      'desired_goal': np.zeros(3),
    }
    with pytest.raises(ValueError, match=r'observation has shape \(3,\)'):
      agent.predict(observation)
    size = agent.observation_space['observation'].shape
    observation['observation'] = np.full(size, np.nan)
    with pytest.raises(ValueError, match='observation is NaN'):
      agent.predict(observation)
    del observation['desired_goal']
    message = 'with achieved_goal, desired_goal, observation, as in the tr'
    for wrong in (observation, np.zeros(3)):
      with pytest.raises(ValueError, match=message):
        agent.predict(wrong)


def test_nothing_to_load(tmp_path):
  with pytest.raises(errors.UsageError, match='There is no policy in'):
    baselines_her.load(str(tmp_path))


def test_example_of_the_documentation(logdir, capsys):
  examples.run_example(trained.__doc__, 'logs/reach', logdir)
  assert np.isfinite(float(capsys.readouterr().out))


def test_function_of_the_script(tmp_path):
  """Its name restores nothing, so it needs no trust; evaluation takes it."""

  def make():
    return gymnasium.make(test_library.ENV)

  list(baselines_her.train(make, tmp_path, 5, test_library.PARAMS, 0))
  with baselines_her.load(str(tmp_path)) as agent:
    assert len(baselines_her.evaluate(agent, make(), 2).returns) == 2
    with pytest.raises(errors.UsageError, match='pass the object again'):
      baselines_her.evaluate(agent)


BOUNDS = {
  'two': gymnasium.spaces.Box(-2, 2, (2,), np.float32),
  'fifth': gymnasium.spaces.Box(-0.2, 0.2, (2,), np.float64),
  'one-sided': gymnasium.spaces.Box(np.float32([0, -1]), np.float32([5, 0])),
  'integers': gymnasium.spaces.Box(-3, 3, (2,), np.int64),
}


class Bounded(odd_envs.Odd):
  """Goal environment with other actions."""

  def __init__(self, name):
    super().__init__()
    self.action_space, self.taken = BOUNDS[name], []

  def step(self, action):
    assert action in self.action_space
    self.taken.append(action)
    return super().step(action)


@pytest.mark.parametrize(
  'name',
  [
    x
    if x in ('one-sided', 'integers')
    else pytest.param(x, marks=pytest.mark.slow)
    for x in BOUNDS
  ],
)
def test_deployed(name, tmp_path):
  """Actions are legal ones up to the bounds, as in the training."""

  def make():
    return gymnasium.wrappers.TimeLimit(Bounded(name), 5)

  list(baselines_her.train(make, tmp_path, 5, test_library.PARAMS, 0))
  env, space = make(), BOUNDS[name]
  with baselines_her.load(str(tmp_path)) as agent:
    assert agent.action_space == space
    # Weights that do not fit into tanh.
    bias = [x for x in agent.policy._graph.variables if 'main/pi' in x.name][-1]
    bias.load(np.float32([100, -100]), agent.policy.sess)
    observation, _ = env.reset()
    action, _ = agent.predict(observation, deterministic=True)
    env.step(action)
    assert action.dtype == space.dtype
    assert np.array_equal(action, [space.high[0], space.low[1]])
    baselines_her.evaluate(agent, env, 1)
    assert np.array_equal(env.unwrapped.taken[-1], action)
