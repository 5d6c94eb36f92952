"""Tests of the border to gymnasium, gym and dm_control."""

import functools
import os
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.classic_control import PendulumEnv

from agents import evaluation
from agents.envs import adapters, opengl, spaces
from agents.run.errors import EnvError, UsageError
from tests import processes, scripted_envs


@pytest.mark.parametrize(
  'env_id',
  [
    'Pendulum-v1',
    pytest.param(
      'InvertedPendulumBulletEnv-v0', marks=pytest.mark.needs('pybullet')
    ),
  ],
)
def test_interface(env_id):
  """Four values per step, seeds that count, spaces of gymnasium."""
  first, second = [], []
  for results in (first, second):
    env = adapters.make(env_id)
    env.seed(3)
    assert isinstance(env.action_space, gymnasium.spaces.Box)
    assert isinstance(env.observation_space, gymnasium.spaces.Box)
    results.append(env.reset())
    for _ in range(5):
      observ, reward, done, info = env.step(env.action_space.sample())
      results.append(observ)
      assert np.isscalar(float(reward)) and not done
      assert isinstance(info, dict)
    env.close()
  np.testing.assert_array_equal(first, second)


def test_time_limits_are_told_apart():
  env = adapters.make('Pendulum-v1')
  env.reset()
  action = np.zeros(1, np.float32)
  transitions = [env.step(action) for _ in range(200)]
  assert [x[2] for x in transitions] == [False] * 199 + [True]
  assert transitions[-1][3]['truncated'] is True
  assert 'truncated' not in transitions[0][3]


def test_render_mode():
  env = adapters.make('Pendulum-v1', 'rgb_array')
  env.reset()
  assert env.render('rgb_array').shape == (500, 500, 3)
  with pytest.raises(ValueError, match='has render_mode'):
    env.render('human')
  env.close()


@pytest.mark.needs('pybullet')
def test_several_environments_of_pybullet():
  """Its modules import each other from a path that we take back."""
  code = '\n'.join(
    [
      'import sys',
      'from agents.envs import adapters',
      'before = list(sys.path)',
      'for name in ("InvertedPendulum", "HalfCheetah"):',
      '  env = adapters.make(f"{name}BulletEnv-v0")',
      '  print(env.reset().shape)',
      'assert sys.path == before',
    ]
  )
  assert processes.run_python('-c', code).split('\n')[:2] == ['(5,)', '(26,)']


KUKA = """
import random, sys
import numpy as np
from agents.envs import adapters, opengl, spaces
if sys.argv[1] == 'raw':
  import gym
  import pybullet_envs
  envs = [gym.make('KukaBulletEnv-v0', disable_env_checker=True)]
else:
  envs = [adapters.make('KukaBulletEnv-v0') for _ in range(3)]
  del envs[0]
  envs[0].seed(1)
random.seed(1)
rows = [envs[0].reset()]
for env in envs[1:]:
  env.reset()
for _ in range(3):
  rows.append(envs[0].step(np.float32([0.5, -0.5, 0.5]))[0])
print(repr(np.array(rows).tolist()))
"""


@pytest.mark.needs('pybullet')
def test_worlds_of_the_kuka():
  """Another one in the process makes no difference, nor does its end."""
  raw, ours = [
    processes.run_python('-c', KUKA, x).strip().splitlines()[-1]
    for x in ('raw', 'ours')
  ]
  assert raw == ours


def test_first_of_discrete_actions_is_kept():
  """Spaces of gym become those of gymnasium, counted from the same number."""
  old = type('Discrete', (), {'n': 3, 'start': -1})()
  assert spaces.convert(old) == gymnasium.spaces.Discrete(3, start=-1)


class Arm(gymnasium.Wrapper):
  """An environment of a user that renders with MuJoCo."""

  def __init__(self, render_mode=None):
    super().__init__(gymnasium.make('Reacher-v5', render_mode=render_mode))


gymnasium.register('Arm-v0', f'{__name__}:Arm', max_episode_steps=5)


def make_arm():
  return gymnasium.make('Reacher-v5', render_mode='rgb_array')


class Suite(gymnasium.Env):
  """An environment of gymnasium that steps one of dm_control, as shimmy's."""

  observation_space = gymnasium.spaces.Box(-9, 9, (2,), np.float32)
  action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

  def __init__(self, render_mode=None):
    from dm_control import suite

    self.render_mode = render_mode
    self._task = suite.load('cartpole', 'balance')

  def reset(self, *, seed=None, options=None):
    self._task.reset()
    return np.zeros(2, np.float32), {}

  def step(self, action):
    self._task.step(action)
    return np.zeros(2, np.float32), 0.0, False, False, {}

  def render(self):
    return self._task.physics.render(480, 480)


def wrap_suite():
  from dm_control import suite

  return adapters.DeepMindWrapper(suite.load('cartpole', 'balance'), (480, 480))


def wrap_composer():
  from dm_control import composer
  from dm_control.locomotion.arenas import floors

  task = composer.NullTask(floors.Floor())
  return adapters.DeepMindWrapper(composer.Environment(task), (480, 480))


@pytest.mark.render
@pytest.mark.parametrize('name', ['Arm-v0', 'Arm', 'make_arm', 'Suite'])
def test_mujoco_in_an_environment_of_ones_own(name):
  """Renders in a process that has selected no backend."""
  lines = (
    'from agents.envs import adapters',
    f'env = adapters.create("{__name__}:{name}", "rgb_array")',
    'env.reset()',
    'print(env.render().shape)',
  )
  variables = opengl.VARIABLES
  code = f'import os; [os.environ.pop(x, 0) for x in {variables}]\n'
  output = processes.run_python('-c', code + '\n'.join(lines))
  assert output.split('\n')[0] == '(480, 480, 3)'


@pytest.mark.render
@pytest.mark.parametrize('make', [wrap_suite, wrap_composer])
def test_deepmind_wrapper_chooses_opengl(make):
  """Programs of PlaNet use it by itself, after dm_control has chosen."""
  lines = (
    'import os',
    f'[os.environ.pop(x, 0) for x in {opengl.VARIABLES}]',
    f'from {__name__} import {make.__name__}',
    f'env = {make.__name__}()',
    'env.reset()',
    'print(env.render().shape)',
  )
  output = processes.run_python('-c', '\n'.join(lines))
  assert output.split('\n')[0] == '(480, 480, 3)'


def test_platform_of_another_program(monkeypatch):
  """MuJoCo and dm_control accept none but that of the backend."""
  for name in opengl.VARIABLES:
    monkeypatch.setenv(name, '')
  monkeypatch.setenv('PYOPENGL_PLATFORM', 'osmesa')
  monkeypatch.setattr(opengl, '_selected', None)
  monkeypatch.setattr(opengl, 'renderer', lambda backend: 'llvmpipe')
  assert opengl.select_backend() == 'llvmpipe'
  chosen = [os.environ[x] for x in ('MUJOCO_GL', 'PYOPENGL_PLATFORM')]
  assert chosen == ['egl', 'egl']


@pytest.mark.needs('mujoco')
@pytest.mark.parametrize('env', ['Reacher-v5', make_arm])
def test_no_image_beside_tensorflow(env, monkeypatch):
  """A sentence, where OpenGL in software would end the process."""
  monkeypatch.setattr(opengl, 'select_backend', lambda: 'llvmpipe')
  monkeypatch.setitem(sys.modules, 'tensorflow', None)
  created = adapters.create(env, 'rgb_array')
  created.reset()
  with pytest.raises(UsageError, match='in a process of its own'):
    created.render()


def test_render_mode_of_a_class():
  """A constructor that takes it gets it; one that is given may stay."""
  assert adapters.create(PendulumEnv, 'rgb_array').render_mode == 'rgb_array'
  given = {'render_mode': 'human'}
  for env in (PendulumEnv, 'Pendulum-v1'):
    assert adapters.create(env, **given).render_mode == 'human'
    assert adapters.create_rendering(env, **given)[0].render_mode == 'rgb_array'
  assert adapters.create(PendulumEnv).render_mode is None


def make_pendulum():
  import gymnasium

  return gymnasium.make('Pendulum-v1')


def test_environments_of_whatever_kind():
  """Ids, functions, classes, names of functions, environments."""
  env = make_pendulum()
  for given in (
    'Pendulum-v1',
    make_pendulum,
    f'{__name__}:make_pendulum',
    type(env.unwrapped),
    env,
  ):
    made = adapters.create(given)
    made.seed(0)
    assert made.reset().shape == (3,) and len(made.step([0.0])) == 4
  with pytest.raises(EnvError, match='<lambda>.* returns 3'):
    adapters.create(lambda: 3)
  several = gymnasium.make_vec('Pendulum-v1', 2, vectorization_mode='sync')
  with pytest.raises(UsageError, match='SyncVectorEnv steps several'):
    evaluation.to_gymnasium(several)
  with pytest.raises(UsageError, match='pass the object again'):
    adapters.create('<Pendulum-v1>')


MODE = 'rgb_array'


class Old(PendulumEnv):
  """Pendulum whose `render` takes the mode."""

  def render(self, mode='human'):
    return np.zeros((500, 500, 3), np.uint8)


def old_wrapped():
  return gymnasium.wrappers.ClipAction(Old())


class Own(PendulumEnv):
  """Pendulum that is not a class of gymnasium."""


gymnasium.register(
  'Shifted-v0',
  lambda: gymnasium.wrappers.TransformReward(Own(), lambda x: x + 100),
  max_episode_steps=5,
)


@pytest.mark.parametrize(
  'make', [old_wrapped, lambda: gymnasium.make('Pendulum-v1', render_mode=MODE)]
)
def test_functions_in_the_registry_that_render(monkeypatch, make):
  """Without an argument render_mode."""
  spec = gymnasium.envs.registration.EnvSpec('Renders-v0', make)
  monkeypatch.setitem(gymnasium.registry, 'Renders-v0', spec)
  env = adapters.create('Renders-v0', MODE)
  env.reset()
  assert env.render(MODE).shape == (500, 500, 3)


@pytest.mark.parametrize('checked', [True, False])
def test_wrappers_in_an_entry_stay(checked):
  """Those between the checker of gymnasium and an environment of a user."""
  made = gymnasium.make('Shifted-v0', disable_env_checker=not checked)
  env = adapters.create(made)
  env.reset()
  assert env.step(np.zeros(1, np.float32))[1] > 80


@pytest.mark.parametrize('space', [None, lambda agent: spaces.discrete(2)])
@pytest.mark.parametrize('kind', [object, gymnasium.Env])
def test_spaces_that_are_missing(kind, space):
  """Also those of several agents, which are methods."""

  class Mine(kind):
    observation_space = spaces.discrete(2)
    action_space = space

    def step(self, action): ...

  with pytest.raises(EnvError, match='The action_space of Mine is (None|<)'):
    adapters.create(Mine)


class Unfinished(PendulumEnv):
  """Has no space before a reset."""

  observation_space = property(lambda self: 1 / 0)

  def __init__(self):
    pass


class UnfinishedSuite(scripted_envs.FakeSuiteEnv):
  def observation_spec(self):
    return {'number': np.float64(3).no_such_thing}


@pytest.mark.parametrize('make', [Unfinished, UnfinishedSuite])
@pytest.mark.parametrize('use', [lambda make: make, lambda make: make()])
def test_attributes_that_fail(make, use):
  """Named as they are, also where Python would look elsewhere."""
  words = 'read with (ZeroDivision|AttributeError.*no_such_thing)'
  with pytest.raises(EnvError, match=words):
    adapters.create(use(make))


class Levels(PendulumEnv):
  """Cannot be created without a level."""

  def __init__(self, level, *, wind, g=10.0, render_mode=None, **unused):
    super().__init__(render_mode, g)
    self.level = level


def test_constructors_that_need_settings():
  gymnasium.register('Levels-v0', Levels)
  try:
    for env in 'Levels-v0', Levels:
      for mode in None, 'rgb_array':
        with pytest.raises(
          UsageError, match='Levels.* lacks values for wind; give'
        ):
          adapters.create(env, mode, level=3)
      assert adapters.create(env, level=3, wind=0).unwrapped.level == 3
    with pytest.raises(
      UsageError, match='Levels-v0 lacks values for level, wind; give'
    ):
      adapters.create_rendering('Levels-v0')
    bound = functools.wraps(Levels)(lambda: Levels(3, wind=0))
    assert adapters.create(bound).unwrapped.level == 3
  finally:
    gymnasium.registry.pop('Levels-v0')


def test_close_that_fails(caplog):
  """What an environment has already closed harms no training."""

  class Mine(type(make_pendulum().unwrapped)):
    def close(self):
      raise RuntimeError('not connected')

  adapters.create(Mine).close()
  assert 'Environment Mine failed in close with RuntimeError' in caplog.text
