"""What workers do to single observations and infos."""

import gymnasium
import numpy as np
import pytest

from agents.envs import adapters
from agents.pipeline import chunks, env_config, worker
from agents.run import errors
from tests import golden

W = 'gymnasium.wrappers'
BOX = gymnasium.spaces.Box


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


class Varying(gymnasium.Env):
  """Returns numbers of other types than its space has, one per step."""

  action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

  def __init__(self, space, *values):
    self.observation_space, self._values = space, values

  def reset(self, *, seed=None, options=None):
    self._left = [*self._values]
    return self._left.pop(0), {}

  def step(self, action):
    return self._left.pop(0), 0.0, not self._left, False, {}


def observe(monkeypatch, space, *values):
  """Return what a chunk, whose first observation decides, has of them."""
  made = adapters.adapt(Varying(space, *values))
  monkeypatch.setattr(env_config, 'make', lambda *_: made)
  env = worker.Worker({'name': 'mine'})
  chunk = chunks.Chunk(1)
  chunk.put(0, 'x', env.reset()['agent'][None])
  for time in range(1, len(values)):
    observation, _, done, info = env.step({'agent': np.zeros(1)})
    observation = info['final'] if done else observation
    chunk.put(time, 'x', observation['agent'][None])
  return chunk.finish(len(values) - 1)['x'][0]


@pytest.mark.parametrize(
  'space, values',
  [
    (BOX(-1, 1, (2,), np.float32), ([0, 1], [0.5, -0.5])),
    (BOX(-1, 1, (2,), np.float64), (np.float32([0, 1]), [0.5, 1e-9])),
    (BOX(0, 999, (1,), np.int64), (np.uint8([0]), np.array([999]))),
    (BOX(0, 1, (2,), np.int8), ([True, False], [0.0, 1.0])),
    (gymnasium.spaces.Discrete(3), (0.0, 2)),
  ],
)
def test_first_observation_of_another_type(monkeypatch, space, values):
  """The others are not rounded to it."""
  found = observe(monkeypatch, space, *values)
  assert found.tolist() == np.array(values).tolist()
  assert found.dtype == space.dtype


def test_observation_that_is_not_of_its_space(monkeypatch):
  space = BOX(0, 9, (2,), np.int64)
  with pytest.raises(errors.EnvError, match='has numbers of int64; make them'):
    observe(monkeypatch, space, [0, 1], [0.5, 1])


def test_parts_that_are_not_declared(monkeypatch):
  """No agent observes them, so they may be anything."""
  box = BOX(-1, 1, (2,), np.float32)
  space = gymnasium.spaces.Dict(arm=gymnasium.spaces.Dict(agent=box), agent=box)
  value = np.float32([0, 1])
  observation = {
    'agent': value,
    'arm': {'agent': value, 'map': None},
    'depth': np.full(3, np.inf),
  }
  made = adapters.adapt(Varying(space, observation, observation))
  monkeypatch.setattr(env_config, 'make', lambda *_: made)
  env = worker.Worker({'name': 'mine'})
  assert sorted(env.reset()) == ['agent', 'arm/agent']
  assert sorted(env.step({'agent': value})[3]['final']) == [
    'agent',
    'arm/agent',
  ]


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
