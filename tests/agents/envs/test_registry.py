"""What the ids of environments name."""

import gymnasium
import pytest
from gymnasium.envs.classic_control import PendulumEnv
from gymnasium.envs.registration import EnvSpec

from agents.envs import adapters, registry
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
