"""Training PlaNet from Python, as notebooks and loops over seeds do."""

import os
import signal
import tempfile

import gymnasium
import numpy as np
import pytest

import planet
from agents.run import errors, files, log, stopping
from planet import library
from tests import examples

# Little to compute, and a graph that is soon built.
PARAMS = {
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


def train(env='dummy', logdir=None, total_env_steps=None, **params):
  params = {**PARAMS, **params}
  if total_env_steps:
    del params['max_steps']
  return planet.train(
    env, logdir, total_env_steps, 'debug', params, seed=np.int64(0)
  )


class Env(gymnasium.Env):
  """Four steps per episode, with a reward that says how many came before."""

  observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
  action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
  render_mode = 'rgb_array'

  def __init__(self):
    self.closed = self.total = 0

  def reset(self, seed=None, options=None):
    self.steps = 0
    return np.zeros(2, np.float32), {}

  def step(self, action):
    self.steps += 1
    self.total += 1
    return np.zeros(2, np.float32), 1.0, self.steps == 800, False, {}

  def render(self):
    return np.zeros((32, 32, 3), np.uint8)

  def close(self):
    self.closed += 1


@pytest.mark.slow
def test_loop_that_is_left_and_continued(tmp_path, capsys):
  """Saved when it is left; nothing is printed but what has to be read."""
  handler = signal.getsignal(signal.SIGINT)
  logdir = str(tmp_path / 'run')
  records = []
  for record in train(logdir=logdir):
    records.append(record)
    break
  (record,) = records
  assert record['epoch'] == 1 and record['environment_steps'] == 1000
  assert record['updates'] == 2 and record['episodes'] == 1
  assert 'return' not in record and record['test_return'] > 0
  assert record['seconds'] > 0 and record['loss/reward'] > 0
  assert {'model.ckpt-8.index'} < set(names(record['logdir']))
  first = train(logdir=logdir, main_learning_rate=1e-4)
  second = train(logdir=record['logdir'], main_learning_rate=1e-4)
  # The second takes over from the first, which has only been created.
  assert [x['epoch'] for x in second] == [2]
  assert 'DONE' in names(record['logdir'])
  assert list(first) == []
  assert signal.getsignal(signal.SIGINT) is handler
  printed = capsys.readouterr()
  assert printed.out == ''
  assert printed.err.count('main_learning_rate: 0.001 -> 0.0001') == 1
  assert printed.err.count('Nothing to do: all runs in') == 1


def test_budget(tmp_path):
  """Counts seed episodes and repeated actions; no episode begins after it.

  Without tests, epochs have a record, too.
  """
  params = {'train_collects': [{'after': 0, 'every': 2}], 'test_steps': 0}
  *_, record = train(total_env_steps=2500, **params)
  assert record['environment_steps'] == 3000
  assert record['logdir'].startswith(tempfile.gettempdir())
  # Whole epochs are trained: two episodes were due, the third was not played.
  assert record['epoch'] == 1 and record['updates'] == 2
  assert record['loss/reward'] > 0 and 'test_return' not in record
  lines = log.read_metrics(record['logdir'])
  assert lines and not any(
    x in line for line in lines for x in ('return/test', 'trainer/train/score')
  )
  with pytest.raises(errors.UsageError, match='both limit the training'):
    planet.train('dummy', str(tmp_path), 100, params={'max_steps': 5})
  limits = {'max_steps': 5, 'total_env_steps': None}
  planet.train('dummy', str(tmp_path), params=limits)


@pytest.mark.slow
def test_larger_budget(tmp_path):
  collects = [{'after': 0, 'every': 2}]
  logdir = str(tmp_path)
  *_, record = train('dummy', logdir, 2500, train_collects=collects)
  assert record['environment_steps'] == 3000
  *_, record = train('dummy', logdir, 3500, train_collects=collects)
  assert record['environment_steps'] == 4000


class Robot(Env):
  """Camera and motors, with bounds that are not [-1, 1]."""

  action_space = gymnasium.spaces.Box(
    np.float32([-2, -0.2, 0]), np.float32([2, 0.2, 5])
  )

  def step(self, action):
    assert action in self.action_space
    self.action = action
    return super().step(action)


def plan_half(cell, objective_fn, state, obs_shape, action_shape, **more):
  from agents.tools.tf1 import tf

  shape = [tf.shape(state['sample'])[0], more['horizon'], *action_shape]
  plan = tf.fill(tf.stack(shape), 0.5)
  plan.set_shape([None, more['horizon'], *action_shape])
  return plan


INSTANCE = Env()


@pytest.mark.parametrize(
  'env', [lambda: Robot(), pytest.param(INSTANCE, marks=pytest.mark.slow)]
)
def test_environments_of_ones_own(tmp_path, env, caplog):
  """A function, whose environments live elsewhere, or an environment."""
  *_, record = train(env, str(tmp_path))
  assert record['test_return'] == 800 and record['environment_steps'] == 800
  with planet.load(record['logdir']) as agent:
    with pytest.raises(errors.UsageError, match='pass the object again'):
      agent.make_env()
    other = Env() if env is INSTANCE else Robot()
    result = planet.evaluate(agent, other, episodes=1)
    assert result.returns == [800] and result.lengths == [4]
  if env is INSTANCE:
    assert env.closed == 0 and env.total > 1600
  with pytest.raises(errors.UsageError, match='pass the object again'):
    next(train(None, str(tmp_path), max_steps=24))
  if env is not INSTANCE:
    deploy(record['logdir'], caplog)


def deploy(logdir, caplog):
  """Act in a loop of one's own, with actions of the environment."""
  space = Robot.action_space
  params = {'planner': plan_half}
  with planet.load(logdir, params=params) as agent:
    assert agent.action_space == space and agent.action_repeat == 200
    action, _ = agent.predict(np.zeros((32, 32, 3), np.uint8), None, True, True)
    assert action in space and action.dtype == np.float32
    np.testing.assert_allclose(action, [1, 0.1, 3.75], rtol=1e-6)
    env = Robot()
    env.reset()
    for image in (env.render(), np.ones((48, 80, 3)), np.zeros((9, 9), int)):
      env.step(agent.predict(image, deterministic=True)[0])
    with pytest.raises(ValueError, match='values from 255 to 255; return'):
      agent.predict(np.full((32, 32, 3), 255.0))
    several, _ = agent.predict(np.zeros((2, 48, 80, 3)), deterministic=True)
    assert several.shape == (2, 3) and all(x in space for x in several)
    # The previous action in the state is still the one that the model knows.
    agent._exploration = 0.3
    noisy = [agent.predict(env.render())[0] for _ in range(20)]
    assert all(x in space for x in noisy) and np.std(noisy, 0).min() > 0
    planet.evaluate(agent, env, episodes=1)
    assert np.array_equal(env.action, action)
  path = os.path.join(logdir, 'config.yaml')
  stored = files.read_yaml(path)
  assert stored.pop('interfaces')
  files.write_yaml(path, stored)
  with planet.load(logdir, params=params) as agent:
    assert agent.action_space == gymnasium.spaces.Box(-1, 1, (3,))
    assert 'Continue the run once' in caplog.text
    action, _ = agent.predict(env.render(), None, True, True)
    assert np.array_equal(action, [0.5] * 3)
    planet.evaluate(agent, env, episodes=1)
    np.testing.assert_allclose(env.action, [1, 0.1, 3.75], rtol=1e-6)


def shoot_up(cell, objective_fn, state, *unused, horizon, **more):
  from agents.tools.tf1 import tf

  sample = state['a']['sample']
  plan = tf.ones([tf.shape(sample)[0], horizon, 5])
  plan.set_shape([None, horizon, 5])
  return plan


def test_parts_of_ones_own(tmp_path):
  """As objects; found again by name if there is trust, or typed.

  A planner that is an object is also loaded where an environment is one's own.
  """
  from tests.planet import own_parts

  trust = [__name__, own_parts.__name__]
  own = {'network': own_parts, 'model': own_parts.Pair}
  *_, record = train(
    logdir=str(tmp_path), planner=shoot_up, image_size=64, max_steps=8, **own
  )
  with pytest.raises(errors.UsageError, match='--trust'):
    planet.load(record['logdir'])
  image = np.zeros((64, 64, 3), np.uint8)
  planner = {'planner': f'{__name__}:shoot_up'}
  with planet.load(record['logdir'], trust=trust[1], params=planner) as agent:
    action, _ = agent.predict(image, deterministic=True)
    assert action.tolist() == [1] * 5
  with planet.load(record['logdir'], trust=trust) as agent:
    action, _ = agent.predict(image, deterministic=True)
    assert action.tolist() == [1] * 5
    several, states = agent.predict(np.stack([image] * 2), deterministic=True)
    assert several.shape == (2, 5) and len(states) == 2


@pytest.mark.slow
def test_interrupt(tmp_path, monkeypatch):
  """The training is saved, and goes on with the next call."""
  monkeypatch.chdir(tmp_path)
  training = train(logdir='.', max_steps=1000)
  record = next(training)
  monkeypatch.chdir('/')
  with stopping.as_if_asked(), pytest.raises(stopping.StopRequested):
    next(training)
  (path,) = [x for x in names(record['logdir']) if x.endswith('.index')]
  assert next(train(logdir=str(tmp_path), max_steps=1000))['epoch'] == 2


WRONG = [
  (dict(params={'taskss': ['dummy']}), 'Did you mean tasks'),
  (dict(env='cartpole_balanc'), 'Did you mean cartpole_balance'),
  (dict(config='cpuu'), 'Did you mean cpu'),
  (dict(config=dict), 'name of a configuration'),
  (dict(params=[1]), 'give a dict'),
  (dict(seed=-1), "Argument 'seed' is -1"),
  (dict(seed=1.5), "Argument 'seed' is 1.5"),
  (dict(total_env_steps=0), 'total_env_steps'),
  (dict(params={'model': 'lstm'}), 'give one of rssm, ssm, drnn'),
]


@pytest.mark.parametrize('args, message', WRONG)
def test_wrong_arguments(args, message, tmp_path):
  """Found when the function is called, not when the training begins."""
  with pytest.raises(errors.UsageError, match=message):
    planet.train(logdir=str(tmp_path / 'new'), **args)
  assert not names(tmp_path)


def test_what_could_never_work():
  """No end, and one environment for two episodes at once."""
  with pytest.raises(errors.UsageError, match='never reach'):
    next(train(total_env_steps=2500))
  with pytest.raises(errors.UsageError, match='cannot play 2 episodes'):
    next(train(Env(), train_collects=[{}], collect_batch=2))


@pytest.mark.slow
def test_example_of_the_documentation(tmp_path, monkeypatch, capsys):
  """The parameters of the example are replaced by small ones."""
  params = {**PARAMS, 'max_steps': 8, 'test_collects': []}

  def train(env, logdir, config):
    assert env == 'cartpole_balance' and config == 'cpu'
    return library.train('dummy', logdir, None, 'debug', params)

  monkeypatch.setattr(planet, 'train', train)
  examples.run_example(library.__doc__, 'logs/cartpole', str(tmp_path))
  assert capsys.readouterr().out.split() == ['1000', 'None']
