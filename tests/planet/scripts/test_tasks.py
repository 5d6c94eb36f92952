"""Tasks of the specification, and environments by their ids."""

import sys

import gymnasium
import numpy as np
import pytest

from agents.envs import probe
from planet.scripts import configs, parameters, resume, tasks
from planet.tools.attr_dict import AttrDict
from planet.tools.bind import bind

# Name, action repeat, state components after the reward, size of an action.
SUITE = [
  ('cartpole_balance', 8, {'position': 3, 'velocity': 2}, 1),
  ('cartpole_swingup', 8, {'position': 3, 'velocity': 2}, 1),
  ('finger_spin', 2, {'position': 4, 'velocity': 3, 'touch': 2}, 2),
  ('cheetah_run', 4, {'position': 8, 'velocity': 9}, 6),
  ('cup_catch', 4, {'position': 4, 'velocity': 4}, 2),
  ('walker_walk', 2, {'height': None, 'orientations': 14, 'velocity': 9}, 6),
  ('reacher_easy', 4, {'position': 2, 'velocity': 2, 'to_target': 2}, 2),
]


def define(name, **params):
  params = {'batch_shape': [5, 10], **params}
  return tasks.define(name, parameters.build('default', params))


@pytest.mark.parametrize('name, repeat, components, actions', SUITE)
def test_lengths_and_components(name, repeat, components, actions):
  task = define(name)
  assert task.name == name
  assert task.max_length == 1000 // repeat
  assert task.state_components == ['reward'] + list(components)
  assert define(name, action_repeat=50).max_length == 20


def test_other_tasks():
  assert define('dummy').state_components == ['reward']
  assert define('dummy').max_length == 1000
  assert define('gym_cheetah').name == 'gym_cheetah'
  assert define('gym_cheetah').state_components == ['reward', 'state']
  assert define('gym_racecar').name == 'gym_racing'
  assert define('gym_racecar').state_components == ['reward']
  assert define('gym_Pendulum-v1', action_repeat=2).max_length == 500
  assert define('gym_my.envs:A-v0').name == 'gym_my.envs_A-v0'
  # Ids of gymnasium need no version.
  assert define('gym_Own').env_ctor.args[0] == 'Own'


def test_names_of_environments(monkeypatch):
  """The names of packages and functions may begin with gym_, too."""
  for name in ('dummy', 'gym_cheetah', 'gym_Pendulum-v1', 'gym_a:make'):
    assert tasks.name_env(name) == name
  assert tasks.name_env('Pendulum-v1') == 'gym_Pendulum-v1'
  assert tasks.name_env('a:make') == 'gym_a:make'
  monkeypatch.setitem(gymnasium.registry, 'gym_a/B-v0', None)
  assert tasks.name_env('gym_a/B-v0') == 'gym_gym_a/B-v0'
  monkeypatch.setattr(define, '__module__', 'gym_a')
  monkeypatch.setitem(sys.modules, 'gym_a', sys.modules[__name__])
  assert tasks.name_env(define) == 'gym_gym_a:define'


@pytest.mark.render
@pytest.mark.parametrize('name, repeat, components, actions', SUITE)
def test_suite_environments(name, repeat, components, actions):
  """Built in a process of their own, with images of the right size."""
  report = probe.inspect(define(name, image_size=32).env_ctor, tasks._look)
  shapes = report['shapes']
  assert shapes['image'] == (32, 32, 3)
  assert shapes['action'] == (actions,) and shapes['reward'] == ()
  for key, size in components.items():
    assert shapes[key] == (() if size is None else (size,))
  assert report['renderer']


@pytest.mark.parametrize(
  'name, state, actions, message',
  [
    ('gym_cheetah', 17, 6, 'HalfCheetah-v3 no longer exists; using'),
    ('gym_racecar', None, 3, 'CarRacing-v0 no longer exists; using'),
    pytest.param(
      'gym_InvertedPendulumBulletEnv-v0',
      5,
      1,
      None,
      marks=pytest.mark.needs('pybullet'),
    ),
    ('gym_Pendulum-v1', 3, 1, None),
  ],
)
@pytest.mark.render
def test_gym_environments(name, state, actions, message):
  report = probe.inspect(define(name).env_ctor, tasks._look)
  shapes = report['shapes']
  assert shapes['image'] == (64, 64, 3) and shapes['action'] == (actions,)
  assert shapes.get('state') == (None if state is None else (state,))
  lines = [message] if message else []
  assert [x for x in report['messages'] if 'no longer exists' in x] == [
    x for x in report['messages'] if any(x.startswith(y) for y in lines)
  ]
  assert len(report['messages']) == len(lines)


REPORT = {'messages': [], 'renderer': None, 'action_space': None, 'shapes': {}}


@pytest.mark.parametrize('names', [['carla'], ['dummy', 'cheetah_run']])
def test_configurations_are_built_without_effects(names, monkeypatch):
  """Neither servers nor environments are asked before `prepare`."""
  asked = []
  monkeypatch.setattr(
    tasks.probe, 'inspect', lambda *x: asked.append(x) or REPORT
  )
  monkeypatch.setattr(
    'planet.envs.carla.settings.find_world',
    lambda *x: asked.append(x) or 'offline',
  )
  args = AttrDict(config='default', params=dict(tasks=names))
  config = resume.define_config('unused', args)
  assert not asked
  if names == ['carla']:
    tasks.prepare(config, 'unused')
    assert asked and config.source.chosen == {'backend': 'offline'}
    (collect,) = config.test_collects.values()
    assert collect.task is config.tasks[0]
    settings = collect.task.env_ctor.keywords['settings']
    assert settings['backend'] == 'offline'


@pytest.mark.render
def test_two_tasks_share_actions_and_images():
  """Padded to the longer action, and nothing but images is left."""
  config = configs.debug(
    AttrDict(), dict(tasks=['cartpole_balance', 'reacher_easy'])
  )
  found = tasks.prepare(config, 'unused')
  assert [x.state_components for x in config.tasks] == [['reward']] * 2
  for task in config.tasks:
    shapes = probe.inspect(task.env_ctor, tasks._look)['shapes']
    assert shapes == {'image': (64, 64, 3), 'action': (2,), 'reward': ()}
    assert shapes == found
  assert list(config.train_collects) == [
    'train_main_cartpole_balance',
    'train_main_reacher_easy',
  ]


def play(env, actions):
  observs, rewards = [env.reset()], []
  for action in actions:
    observ, reward, done, _ = env.step(action)
    observs.append(observ)
    rewards.append(reward)
    if done:
      break
  return observs, rewards


@pytest.mark.needs('pybullet')
def test_episodes_of_gym_environments_have_a_minimum_length():
  """The pendulum falls early, but chunks need `batch_shape[1]` steps."""
  from planet.envs import gym_pixels

  env = gym_pixels.make(
    'InvertedPendulumBulletEnv-v0', 1, 30, min_length=25, pixels=False
  )
  env.seed(0)
  observs, rewards = play(env, np.ones((40, 1), np.float32))
  assert 25 <= len(rewards) <= 30
  assert observs[0]['state'].dtype == np.float32
  env.close()


def test_equal_seeds_give_equal_episodes():
  from planet.envs import gym_pixels
  from planet.envs.seeding import seeded_constructor

  make = bind(gym_pixels.make, 'Pendulum-v1', 1, 20, pixels=False)
  first, second, third = [
    play(seeded_constructor(make, seed), np.zeros((20, 1), np.float32))
    for seed in (1, 1, 2)
  ]
  assert np.array_equal(first[0][-1]['state'], second[0][-1]['state'])
  assert not np.array_equal(first[0][-1]['state'], third[0][-1]['state'])


@pytest.mark.parametrize(
  'name, params',
  [
    pytest.param(
      'gym_InvertedPendulumBulletEnv-v0',
      {},
      marks=pytest.mark.needs('pybullet'),
    ),
    pytest.param(
      'carla',
      dict(carla_backend='offline', carla_termination='time'),
      marks=pytest.mark.needs('carla'),
    ),
  ],
)
def test_episodes_are_long_enough_for_all_chunks(name, params):
  """Also those that end early; two chunks of 15 need 30 observations."""
  params = dict(
    params,
    tasks=[name],
    batch_shape=[5, 15],
    num_chunks=2,
    observations='vector',
    logdir='unused',
  )
  task = configs.default(AttrDict(), params).tasks[0]
  assert task.env_ctor.keywords['min_length'] == 30
  if name == 'carla':
    return
  env = task.env_ctor()
  observs, rewards = play(env, np.ones((40, 1), np.float32))
  assert len(rewards) == 30 and len(observs) >= 30
  env.close()
