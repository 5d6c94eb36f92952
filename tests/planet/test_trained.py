"""Trained PlaNet agents as a library."""

import shutil

import gymnasium
import numpy as np
import pytest

import planet
from agents.run import errors
from agents.tools.tf1 import tf
from planet import trained
from planet.scripts import evaluate, train
from tests import examples
from tests.planet.scripts import training_runs


@pytest.fixture(scope='module')
def logdir(tmp_path_factory):
  folder = tmp_path_factory.mktemp('run')
  params = {'planner_warm_start': True, 'max_steps': 10}
  training_runs.train_here(folder, params)
  return str(folder)


def test_episodes(logdir):
  with planet.load(logdir, seed=1) as agent:
    result = planet.evaluate(agent, episodes=1)
  with planet.load(logdir, seed=1) as agent:
    again = planet.evaluate(agent, episodes=1)
  assert result.lengths == [20]
  assert result.returns == again.returns


def test_environments_of_ones_own(logdir):
  """Adapted even if observations fit, unlike those that the agent makes."""

  class Env(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 255, (32, 32, 3), np.uint8)
    render_mode = 'rgb_array'
    closed = False

    def __init__(self, size):
      self.action_space = gymnasium.spaces.Box(2, 4, (size,))
      self.actions = []

    def reset(self, seed=None, options=None):
      return self.render(), {}

    def step(self, action):
      assert action in self.action_space
      self.actions.append(action)
      return self.render(), 0.0, len(self.actions) == 1000, False, {}

    def render(self):
      return np.zeros((32, 32, 3), np.uint8)

    def close(self):
      self.closed = True

  env = Env(5)
  with planet.load(logdir) as agent:
    assert planet.evaluate(agent, env, episodes=1).lengths == [20]
    assert len(env.actions) == 1000
    wrong = Env(4)
    with pytest.raises(ValueError, match=r'action has shape \(4,\)'):
      planet.evaluate(agent, lambda: wrong, episodes=1)
    assert wrong.closed
    agent._config = agent._config.replace(tasks=2 * agent._config.tasks)
    assert planet.evaluate(agent, Env(4), episodes=1).lengths == [20]
    short = gymnasium.wrappers.TimeLimit(agent.make_env(), 5)
    assert planet.evaluate(agent, short, episodes=1).lengths == [5]
    # Images and vectors together are vectors.
    keys = ['image', 'state']
    agent._config = agent._config.replace(
      observation='both', observation_keys=keys
    )
    env = Env(5)
    env.observation_space = gymnasium.spaces.Box(-1, 1, (3,))
    adapted = agent._adapt(env)
    assert adapted.observation_space.shape == (32 * 32 * 3 + 3,)


def test_saved_agent(logdir, tmp_path, monkeypatch):
  image = np.random.RandomState(0).randint(0, 255, (32, 32, 3), np.uint8)
  with planet.load(logdir, seed=1) as agent:
    expected, _ = agent.predict(image, deterministic=True)
    monkeypatch.setenv('HOME', str(tmp_path))
    agent.save('~/saved')
  with planet.load(str(tmp_path / 'saved'), seed=1) as agent:
    found, _ = agent.predict(image, deterministic=True)
    assert np.array_equal(found, expected)
  names = sorted(x.name for x in (tmp_path / 'saved').iterdir())
  assert names[0] == 'checkpoint' and 'config.yaml' in names
  assert logdir not in (tmp_path / 'saved' / 'config.yaml').read_text()
  # Plans need no decoder, by far the largest part.
  saved = tf.train.list_variables(str(tmp_path / 'saved'))
  parts = {name.split('/')[1] for name, _ in saved}
  assert parts == {'encoder', 'rnn', 'head_reward'}


def test_state_and_noise(logdir):
  rng = np.random.RandomState(0)
  images = rng.randint(0, 255, (2, 32, 32, 3), np.uint8)

  def play(use_state, deterministic=True):
    # The planner draws its candidates from the same seed.
    with planet.load(logdir, seed=1) as agent:
      action, state = agent.predict(images[0], deterministic=deterministic)
      for wrong in (state[:1], state[0], [np.zeros(2) for _ in state], 'a'):
        with pytest.raises(ValueError, match='one that predict has returned'):
          agent.predict(images[1], wrong)
      if use_state:
        agent.reset()
      following, _ = agent.predict(
        {'image': images[1]}, state if use_state else None, deterministic=True
      )
      return action, following

  remembered, given = play(None), play(True)
  assert np.array_equal(remembered, given)
  noisy, _ = play(None, deterministic=False)
  assert not np.array_equal(noisy, remembered[0])
  assert remembered[0].shape == (5,) and abs(remembered[0]).max() <= 1


def test_what_cannot_be_loaded(logdir, tmp_path):
  with pytest.raises(errors.UsageError, match='There is no run'):
    planet.load(str(tmp_path))
  # Ten steps are over before the first test phase.
  with pytest.raises(errors.UsageError, match='no best checkpoint in'):
    planet.load(logdir, checkpoint='best')
  with pytest.raises(errors.UsageError, match="'dumy'.*Did you mean dummy"):
    planet.load(logdir, task='dumy')
  with pytest.raises(errors.UsageError, match='batch_shape'):
    planet.load(logdir, params={'batch_shape': [1, 1]})
  with planet.load(logdir) as agent:
    with pytest.raises(ValueError, match=r'shape \(64, 64, 2\), but'):
      agent.predict(np.zeros((64, 64, 2), np.uint8))
    with pytest.raises(ValueError, match='a pair with an info'):
      agent.predict((np.zeros((64, 64, 3), np.uint8), {}))
    with pytest.raises(ValueError, match=r'shape \(\), but'):
      agent.predict([[1], [1, 2]])


@pytest.mark.parametrize(
  'program', [pytest.param('train', marks=pytest.mark.slow), 'evaluate', 'load']
)
def test_flipped_bit_of_a_checkpoint(logdir, tmp_path, capsys, program):
  """One sentence, and all files stay as they are."""
  run = tmp_path / '00001'
  shutil.copytree(f'{logdir}/00001', run)
  weights = tf.train.load_variable(
    str(run / 'model.ckpt-10'), 'graph/head_reward/dense/kernel'
  )
  (path,) = run.glob('model.ckpt-10.data-*')
  content = bytearray(path.read_bytes())
  content[content.index(weights.tobytes()) + 9] ^= 4
  path.write_bytes(content)
  before = {x: x.read_bytes() for x in run.rglob('*') if x.is_file()}
  if program == 'load':
    with pytest.raises(errors.UsageError, match='-10 is damaged .Checksum'):
      planet.load(str(run))
  elif program == 'evaluate':
    assert evaluate.run(['--logdir', str(run)]) == 2
  else:
    params = '{tasks: [dummy], planner_warm_start: true, max_steps: 20}'
    args = ['--logdir', str(tmp_path), '--config', 'debug', '--params', params]
    assert train.run(args) == 2
  if program != 'load':
    assert 'model.ckpt-10 is damaged (Checksum' in capsys.readouterr().err
  after = {x: x.read_bytes() for x in run.rglob('*') if x.is_file()}
  assert set(before) - set(after) <= {run / 'DONE'}
  kept = [x for x in before if '.ckpt' in x.name or x.suffix == '.npz']
  assert kept and all(before[x] == after[x] for x in kept)


def test_example_of_the_documentation(logdir, capsys):
  examples.run_example(trained.__doc__, 'logs/cartpole/00001', logdir)
  assert np.isfinite(float(capsys.readouterr().out))
