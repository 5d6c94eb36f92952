"""What workers do to single observations and infos."""

import numpy as np
import pytest

from agents.pipeline import env_config, worker
from agents.run import errors
from tests import golden

W = 'gymnasium.wrappers'


def test_paths_equal_the_recorded_ones():
  """Explorers put kinds such as `/observations` in front."""
  recorded = golden.load_json('pipeline/pipeline_golden')['flatten']
  flat = worker.flatten(recorded['inp'])
  assert {f'/{k}': v for k, v in flat.items()} == recorded['out']
  assert list(worker.flatten(3)) == ['agent']
  assert list(worker.flatten({0: 3, 1: {2: 3}})) == ['0', '1/2']


def test_only_numbers_are_told():
  """Arrays and flags are; texts, objects and nothing are not."""
  info = {
    'flag': True,
    'text': 'a',
    'none': None,
    'deep': {'array': np.ones(2, np.float32), 'list': [1, 2]},
    'unlike': {'object': object()},
    'ragged': [[1], [1, 2]],
  }
  found = worker.numbers(info)
  assert set(found) == {'flag', 'deep/array', 'deep/list'}
  assert found['deep/array'].dtype == float


@pytest.mark.parametrize('restorable', [True, False])
def test_rows_after_a_kill(tmp_path, restorable):
  """Episodes since the checkpoint are played again, and told once."""
  path = str(tmp_path / '0.monitor.csv')
  env = {
    'constructor': 'tests.agents.pipeline.toy_envs.CountEnv',
    'kwargs': {'length': 2, 'restorable': restorable},
  }
  first = worker.Worker(env, 0, path)
  first.reset()
  action = {'agent': np.zeros(1)}
  for _ in range(4):
    first.step(action)
  state = first.state_dict()
  for _ in range(4):
    first.step(action)
  resumed = worker.Worker(env, 0, path)
  resumed.load_state_dict(state)
  resumed.step(action)
  resumed.step(action)
  with open(path) as file_:
    rows = file_.read().splitlines()[2:]
  assert [x.split(',')[1] for x in rows] == ['2'] * 3


def test_state_before_the_first_episode():
  """The seed still decides about it."""
  env = {'name': 'Pendulum-v1'}
  resumed = worker.Worker(env, 1)
  assert resumed.load_state_dict(worker.Worker(env, 1).state_dict()) is None
  np.testing.assert_equal(resumed.reset(), worker.Worker(env, 1).reset())


def test_constructor_of_gymnasium():
  """Its environment gets the interface of the others."""
  tree = {'constructor': 'gymnasium.envs.classic_control.pendulum.PendulumEnv'}
  env = env_config.make(tree, render=False)
  assert env.reset().shape == (3,) and len(env.step([0.0])) == 4
  assert env_config.needs_process(tree, render=True)
  assert not env_config.needs_process({'name': 3}, render=True)


def test_wrappers_of_gymnasium():
  """Among those of this project."""
  scale = {'min_action': -1.0, 'max_action': 1.0}
  tree = {
    'constructor': 'tests.agents.pipeline.toy_envs.CountEnv',
    'kwargs': {'bound': 4, 'truncated': True},
    'wrappers': [
      {'name': 'gymnasium.wrappers.RescaleAction', 'args': scale},
      {'name': 'agents.tools.wrappers.ClipAction'},
    ],
  }
  env = env_config.make(tree, render=True)
  assert env.reset().tolist() == [0, 0, 0]
  transitions = [env.step(np.array([x], np.float32)) for x in (0.5, 3, 0)]
  assert [x[0][2] for x in transitions] == [2, 4, 0]
  assert [x[2] for x in transitions] == [False, False, True]
  assert transitions[-1][3]['truncated']
  assert env.render('rgb_array').shape == (600, 400, 3)


@pytest.mark.parametrize(
  'part, message',
  [
    ({'constructor': 'builtins.int', 'kwargs': {'x': 1}}, 'argument'),
    ({'constructor': 'builtins.eval'}, 'builtins.eval failed in its cons'),
    (
      {'wrappers': [{'name': f'{W}.TimeLimit', 'args': {W: 1}}]},
      'Cannot create a wrapper',
    ),
    (
      {
        'wrappers': [
          {'name': f'{W}.TimeLimit', 'args': {'max_episode_steps': 'x'}}
        ]
      },
      'v1 failed in its wrapper gymnasium.wrappers.TimeLimit with Type',
    ),
    ({'wrappers': [{'name': 'builtins.print'}]}, 'which is not an environment'),
  ],
)
def test_parts_that_fail(part, message):
  """One sentence that says which."""
  with pytest.raises((errors.UsageError, errors.EnvError), match=message):
    env_config.make({'name': 'Pendulum-v1', **part})


@pytest.mark.parametrize('wrapped', [False, True])
def test_environment_that_draws_from_the_generators_of_the_process(wrapped):
  """Its episodes depend on its seed only, and go on from a checkpoint."""
  env = {'constructor': 'tests.agents.pipeline.toy_envs.GlobalEnv'}
  if wrapped:
    env['wrappers'] = [{'name': 'gymnasium.wrappers.ClipAction'}]
  one, other = worker.Worker(env, 1), worker.Worker(env, 1)
  np.random.seed(0)
  before = np.random.get_state()[1].copy()
  first = [one.reset()['agent'] for _ in range(3)]
  second = [other.reset()['agent'] for _ in range(3)]
  np.testing.assert_array_equal(first, second)
  np.testing.assert_array_equal(before, np.random.get_state()[1])
  state, expected = one.state_dict(), [one.reset() for _ in range(2)]
  resumed = worker.Worker(env, 1)
  found = [resumed.load_state_dict(state), resumed.reset()]
  np.testing.assert_equal(found, expected)
