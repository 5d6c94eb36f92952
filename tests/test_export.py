"""Exported policies, loaded by a program that does without this project."""

import os
import pickle
import subprocess
import sys
import textwrap

import gymnasium
import numpy as np
import pytest

import agents
import baselines_her
import planet
from agents import evaluation
from agents.pipeline import main, trained
from tests import golden
from tests.agents import training_runs

SHIPPED = os.path.join(golden.ROOT, 'results', 'agents')
RNG = np.random.RandomState(0)
STEPS = 3


def play(agent, observations):
  """Best actions for batches of observations, one step after the other."""
  state, actions = None, []
  for observation in observations:
    action, state = agent.predict(observation, state, deterministic=True)
    actions.append(action)
  return np.stack(actions)


def ppo(folder, env='Pendulum-v1', **params):
  params = {**training_runs.SMALL, 'steps': 40, **params}
  training = agents.train(
    env, str(folder), None, params=params, seed=0, env_processes=False
  )
  return agents.load(list(training)[-1]['logdir'], trust='tests')


class Numbers(gymnasium.Env):
  """Three choices, from 5."""

  observation_space = gymnasium.spaces.Box(-1, 1, (2, 2), np.float32)
  action_space = gymnasium.spaces.Discrete(3, start=5)

  def reset(self, seed=None, options=None):
    return self.observation_space.sample(), {}

  def step(self, action):
    assert action in self.action_space
    return self.observation_space.sample(), 0.0, False, False, {}


def session(folder, **cpanel):
  values = dict(number_epochs=1, epoch_size=100, test_win_size=1, **cpanel)
  main.main(
    ['--params', 'agents.pipeline.params.ddpg_pendulum']
    + ['--cpanel', repr(values), '--session-path', str(folder)]
    + ['--session-name', 'one', '--log-level', '3', '--no-monitor-cpu']
  )
  return trained.load(folder / 'one')


AGENTS = {
  'ppo': lambda folder: agents.load(f'{SHIPPED}/ppo_pendulum'),
  'discrete': lambda folder: ppo(folder, Numbers),
  'recurrent': lambda folder: ppo(folder, network='recurrent_gaussian'),
  'her': lambda folder: baselines_her.load(f'{SHIPPED}/her_reach'),
  'ddpg': lambda folder: session(folder, normalize_observations=True),
  # The rest of the plan is part of the state.
  'planet': lambda folder: planet.load(
    f'{SHIPPED}/carla_loop', params={'planner_warm_start': True}, seed=1
  ),
}


@pytest.fixture(
  scope='module',
  params=[
    ('recurrent', 'her', 'planet'),
    pytest.param(tuple(AGENTS), marks=pytest.mark.slow),
  ],
  ids=['some', 'all'],
)
def exported(request, tmp_path_factory):
  """Folder with policies, and what agents do with random observations."""
  folder = tmp_path_factory.mktemp('exported')
  cases, written = {}, {}
  for name in request.param:
    with AGENTS[name](tmp_path_factory.mktemp(name)) as agent:
      written[name] = agent.export(str(folder / name))
      count = 1 if name == 'planet' else 4
      observations = [
        sample(agent.observation_space, count) for _ in range(STEPS)
      ]
      cases[name] = observations, play(agent, observations), agent.action_space
      assert all(x in agent.action_space for y in cases[name][1] for x in y)
  with open(folder / 'cases', 'wb') as file_:
    plain = {k: x[:2] for k, x in cases.items()}
    pickle.dump(plain, file_)
  return folder, written


def sample(space, count):
  if isinstance(space, gymnasium.spaces.Dict):
    return {key: sample(x, count) for key, x in space.items()}
  shape = count, *space.shape
  if space.dtype == np.uint8:
    return RNG.randint(0, 255, shape, np.uint8)
  return RNG.uniform(-1, 1, shape).astype(np.float32)


OTHER = """
import os, pickle, sys

# An editable installation is known here as well.
for name in ('agents', 'planet', 'baselines_her', 'scripts'):
  sys.modules[name] = None
import numpy as np
import tensorflow as tf

folder = sys.argv[1]
with open(os.path.join(folder, 'cases'), 'rb') as file_:
  cases = pickle.load(file_)


def play(call, observations, size):
  actions, state = [], None
  for observation in observations:
    if not isinstance(observation, dict):
      observation = {'observation': observation}
    if size:
      rows = len(next(iter(observation.values())))
      start = np.zeros([rows, size], np.float32)
      observation = {**observation, 'state': start if state is None else state}
    result = call(**observation)
    actions.append(np.array(result['action']))
    state = result.get('state')
  return np.stack(actions)


for name, (observations, expected) in cases.items():
  path = os.path.join(folder, name)
  model = tf.saved_model.load(path).signatures['serving_default']
  state = model.structured_input_signature[1].get('state')
  size = state.shape[1] if state is not None else 0
  found = play(model, observations, size)
  assert found.dtype == expected.dtype, (name, found.dtype, expected.dtype)
  np.testing.assert_allclose(found, expected, 1e-5, 1e-5, err_msg=name)
  path = os.path.join(path, 'policy.tflite')
  if os.path.exists(path):
    runner = tf.lite.Interpreter(path).get_signature_runner()
    found = play(runner, observations, size)
    assert found.dtype == expected.dtype, (name, found.dtype)
    np.testing.assert_allclose(found, expected, 1e-4, 1e-4, err_msg=name)
    name += ' with TFLite'
  print('the same:', name)
"""


def test_same_actions_without_this_project(exported, tmp_path):
  folder, written = exported
  done = subprocess.run(
    [sys.executable, '-I', '-c', textwrap.dedent(OTHER), str(folder)],
    cwd=tmp_path,
    capture_output=True,
    text=True,
  )
  assert done.returncode == 0, done.stdout + done.stderr
  same = done.stdout.count('the same')
  assert same == len(written), done.stdout
  assert done.stdout.count('with TFLite') == len(written) - 1, written


def test_formats(exported):
  folder, written = exported
  for name, formats in written.items():
    assert formats['saved_model'] == str(folder / name)
    assert ('tflite' in formats) == ('onnx' in formats) == (name != 'planet')


@pytest.mark.needs('tf2onnx', 'onnxruntime')
def test_onnx(exported):
  import onnxruntime

  folder, written = exported
  with open(folder / 'cases', 'rb') as file_:
    cases = pickle.load(file_)
  for name in set(cases) - {'planet'}:
    observations, expected = cases[name]
    model = onnxruntime.InferenceSession(written[name]['onnx'])
    outputs, state = [x.name for x in model.get_outputs()], {}
    for observation, actions in zip(observations, expected):
      if not isinstance(observation, dict):
        observation = {'observation': observation}
      if len(outputs) > 1 and not state:
        rows, (_, size) = len(actions), model.get_inputs()[1].shape
        state = {'state': np.zeros([rows, size], np.float32)}
      found, *after = model.run(outputs, {**observation, **state})
      np.testing.assert_allclose(found, actions, 1e-4, 1e-4, err_msg=name)
      state = dict(zip(['state'], after))


def test_without_tf2onnx(exported, monkeypatch):
  from agents.tools import exporting

  monkeypatch.setattr(exporting.util, 'find_spec', lambda name: None)
  sentence = exporting._write_onnx('unused', None)
  assert sentence == (
    "ONNX needs tf2onnx: pip install 'reference-agents[onnx]'."
  )


def test_agents_of_sessions(tmp_path):
  """They act in the bounds of their environment, and can be saved."""
  with session(tmp_path) as agent:
    assert agent.action_space == gymnasium.make('Pendulum-v1').action_space
    observation = np.ones(3, np.float32)
    best, state = agent.predict(observation, deterministic=True)
    assert best in agent.action_space and state is None
    noisy, state = agent.predict(observation)
    assert noisy in agent.action_space and noisy != best
    later, _ = agent.predict(observation, state)
    assert later != noisy
    with pytest.raises(ValueError, match='one that predict has returned'):
      agent.predict(observation, [state])
    result = evaluation.evaluate(agent, episodes=1, seed=0)
    assert result.lengths == [200]
    for _ in range(2):
      agent.save(str(tmp_path / 'saved'))
  with trained.load(tmp_path / 'saved') as agent:
    assert agent.predict(observation, deterministic=True)[0] == best
    again = evaluation.evaluate(agent, gymnasium.make('Pendulum-v1'), 1, seed=0)
    assert again.returns == result.returns
