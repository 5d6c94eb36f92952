"""What the ids of environments name."""

import pickle
import sys
import threading

import gymnasium
import pytest
from gymnasium.envs.classic_control import PendulumEnv
from gymnasium.envs.registration import EnvSpec

from agents.envs import adapters, external, registry
from agents.run.errors import UsageError


@pytest.mark.parametrize(
  'env_id, library, resolved',
  [
    ('Pendulum-v1', 'gymnasium', 'Pendulum-v1'),
    ('HalfCheetah-v3', 'gymnasium', 'HalfCheetah-v5'),
    ('HalfCheetah-v4', 'gymnasium', 'HalfCheetah-v4'),
    ('CarRacing-v0', 'gymnasium', 'CarRacing-v3'),
    ('FetchReach-v1', 'gymnasium', 'FetchReach-v4'),
    ('HandReach-v0', 'gymnasium', 'HandReach-v3'),
    pytest.param(
      'HalfCheetahBulletEnv-v0',
      'gym',
      'HalfCheetahBulletEnv-v0',
      marks=pytest.mark.needs('pybullet'),
    ),
    ('package:Env-v0', 'gymnasium', 'package:Env-v0'),
  ],
)
def test_resolve(env_id, library, resolved):
  assert registry.resolve(env_id) == (library, resolved)


class Timed(PendulumEnv):
  """Has the name of an id."""


@pytest.mark.parametrize('name', ['Timed', 'Untimed', 'mine/Timed'])
def test_ids_without_a_version(monkeypatch, name):
  """Come before a class of their name, which has no time limit."""
  spec = EnvSpec(name, Timed, max_episode_steps=7)
  monkeypatch.setitem(gymnasium.registry, name, spec)
  env = adapters.create(f'{__name__}:{name}')
  assert env.spec.max_episode_steps == 7


def test_unknown_ids():
  with pytest.raises(UsageError, match='Did you mean Pendulum-v1'):
    registry.resolve('Pendulun-v1')


@pytest.mark.parametrize(
  'env_id, expected',
  [
    ('Pendulum-v1', False),
    ('Reacher-v5', True),
    ('FetchReach-v4', True),
    ('minitaur', False),
    pytest.param('AntBulletEnv-v0', False, marks=pytest.mark.needs('pybullet')),
    ('gymnasium_robotics:PointMaze_UMaze-v3', True),
  ],
)
def test_renders_with_opengl(env_id, expected):
  assert registry.renders_with_opengl(env_id) == expected


def make_only():
  return gymnasium.make('Only-v0')


@pytest.mark.parametrize('by_name', [False, True])
def test_functions_that_make_ids_of_the_main_program(by_name, monkeypatch):
  """Another process has not seen what the program has registered."""
  own = type('Only', (PendulumEnv,), {'__module__': '__main__'})
  monkeypatch.setattr(sys.modules['__main__'], 'Only', own, raising=False)
  entry = '__main__:Only' if by_name else own
  gymnasium.register('Only-v0', entry, max_episode_steps=7)
  try:
    env = external.ExternalProcess(make_only)
    assert env.reset().shape == (3,)
    assert [env.step([0.0])[2] for _ in range(7)] == [False] * 6 + [True]
    env.close()
  finally:
    del gymnasium.registry['Only-v0']


def test_what_is_not_packed():
  """Entries of gymnasium itself, and those that cannot be pickled."""

  def pack():
    return dict(map(pickle.loads, registry.pack()))

  lock = {'lock': threading.Lock()}
  gymnasium.register('Locked-v0', make_only, kwargs=lock)
  gymnasium.register('Only-v0', make_only)
  try:
    packed = pack()
  finally:
    specs = [gymnasium.registry.pop(x) for x in ('Locked-v0', 'Only-v0')]
  assert not {'Locked-v0', 'Pendulum-v1'} & {*packed}
  # Restoring the entry must not import the module of the function.
  assert packed['Only-v0'].entry_point == f'{__name__}:make_only'
  assert specs[1].entry_point is make_only


def test_environments_that_cannot_be_sent():
  lock = threading.Lock()
  with pytest.raises(UsageError, match="lock' object; create what it"):
    external.ExternalProcess(lambda: lock)
