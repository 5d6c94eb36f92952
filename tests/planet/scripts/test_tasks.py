"""Tasks of the specification, and environments by their ids."""

import collections
import functools
import pickle
import sys
import threading

import cloudpickle
import gymnasium
import numpy as np
import pytest

from agents.envs import probe
from agents.run import errors
from planet.control import wrappers
from planet.envs import constructors, dummy_env
from planet.scripts import (
  configs,
  environments,
  parameters,
  resume,
  table,
  tasks,
  train,
)
from planet.tools.attr_dict import AttrDict
from planet.tools.bind import bind
from planet.training import utility

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
  pendulum = define('gym_Pendulum-v1', action_repeat=2)
  assert (pendulum.max_length, pendulum.steps_per_action) == (500, 2)
  # Repeats actions itself.
  driving = define('carla', tasks=['carla'], action_repeat=2)
  assert driving.steps_per_action == 1
  assert define('gym_my.envs:A-v0').name == 'gym_my.envs_A-v0'
  # Ids of gymnasium need no version.
  assert define('gym_Own').env_ctor.args[0] == 'Own'


def make_short(repeat, length):
  return wrappers.MaximumDuration(dummy_env.DummyEnv(1000), length)


def test_functions(monkeypatch):
  """Functions that users add to the module, in the form of the original."""

  def mine(config, params):
    # The first has all values, the second those that are given.
    assert config.batch_shape == params.batch_shape == [5, 10]
    assert 'camera_id' in config and 'camera_id' not in params
    repeat = params.get('action_repeat', 2)
    length = 50 // repeat
    make = functools.partial(make_short, repeat, length)
    return tasks.Task('mine', make, length, ['reward'])

  monkeypatch.setattr(tasks, 'mine', mine, raising=False)
  task = define('mine')
  assert (task.max_length, task.state_components) == (25, ['reward'])
  assert task.env_ctor().reset()['image'].shape == (64, 64, 3)
  task = define('mine', action_repeat=5)
  assert (task.max_length, task.action_repeat) == (10, 5)
  assert task.steps_per_action == 5
  params = parameters.build(
    'debug', {'tasks': ['mine'], 'batch_shape': [5, 10]}
  )
  assert tasks.define('mine', params).max_length == 1, 'repeat of the preset'
  params = parameters.build('debug', {'tasks': ['mine'], 'batch_shape': [5, 4]})
  assert table.find_row('mine').domain == 'function'
  monkeypatch.setattr(tasks, 'mine', lambda config, params: None)
  with pytest.raises(errors.UsageError, match='returns None; return a Task'):
    tasks.define_all(params)
  # Functions of the module are no tasks.
  with pytest.raises(errors.UsageError, match='unknown'):
    define('define_all')


def test_driving_is_a_function():
  """With the settings of its environment, under either name."""
  task = tasks.carla({'max_length': 60}, {'carla_size': 64, 'action_repeat': 2})
  assert (task.name, task.max_length) == ('carla', 30)
  assert task.state_components == ['reward', 'state']
  assert task.env_ctor.keywords['settings']['image_size'] == 64
  task = tasks.carla({}, {'env': {'max_length': 60}})
  assert task.max_length == 60
  with pytest.raises(errors.UsageError, match='carla_size.* is 65'):
    tasks.carla({}, {'carla_size': 65})


class Own:
  """Makes tasks of `make_short`; has other names of arguments."""

  def __call__(self, cfg, par, steps=12):
    make = functools.partial(make_short, 1, steps)
    return tasks.Task('own', make, steps, ['reward'])


@pytest.mark.parametrize(
  'function, length',
  [
    (lambda cfg, par: Own()(cfg, par), 12),
    (Own(), 12),
    (functools.partial(Own(), steps=9), 9),
  ],
)
@pytest.mark.parametrize('name', ['cartpole_swingup', 'dummy', 'mine'])
def test_attributes_win(name, function, length, monkeypatch):
  """Of any callable, also under the names of standard tasks."""
  monkeypatch.setattr(tasks, name, function, raising=False)
  assert define(name).name == 'own' and define(name).max_length == length
  assert define('cheetah_run').name == 'cheetah_run'


@pytest.mark.parametrize('value', [3, lambda config: None])
def test_attributes_that_are_no_tasks(value, monkeypatch):
  monkeypatch.setattr(tasks, 'cartpole_swingup', value)
  with pytest.raises(
    errors.UsageError, match='function that takes 2 arguments'
  ):
    define('cartpole_swingup')


@pytest.mark.parametrize('name', sorted(set(table.TABLE) - {'carla'}))
def test_standard_tasks_are_functions(name, monkeypatch):
  """Alone, and where a user's task is based on one."""
  task = getattr(tasks, name)(AttrDict(), AttrDict(action_repeat=5))
  given = define(name, action_repeat=5, batch_shape=[50, 50])
  assert task[:1] + task[2:] == given[:1] + given[2:]
  assert task.env_ctor.args == given.env_ctor.args
  assert task.env_ctor.keywords == given.env_ctor.keywords

  def mine(config, params):
    return getattr(tasks, name)(config, params)._replace(name='mine')

  monkeypatch.setattr(tasks, 'mine', mine, raising=False)
  task, usual = define('mine', image_size=32), define(name, image_size=32)
  assert task.name == 'mine' and task[2:] == usual[2:]
  assert task.env_ctor.args[0].keywords == usual.env_ctor.keywords


def test_runs_know_whose_task_it_was(tmp_path, monkeypatch):
  """A standard task is not played in place of a user's, nor the reverse."""
  args = train.Arguments(config='debug', params={'tasks': ['dummy']})
  own, usual = str(tmp_path / 'own'), str(tmp_path / 'usual')
  utility.save_config(resume.define_config(usual, args), usual)
  with monkeypatch.context() as patch:
    patch.setattr(tasks, 'dummy', Own())
    args = train.Arguments(config='debug', params={'tasks': ['dummy']})
    utility.save_config(resume.define_config(own, args), own)
    assert resume.define_config(own, args).tasks[0].name == 'own'
    with pytest.raises(errors.UsageError, match='the standard task dummy'):
      resume.define_config(usual, args)
  assert resume.define_config(usual, args).tasks[0].name == 'dummy'
  with pytest.raises(errors.UsageError, match='a function dummy of its own'):
    resume.define_config(own, args)


def test_task_of_a_fork(monkeypatch):
  """Which defines the named tuple, and wraps what gymnasium made."""
  names = 'name, env_ctor, max_length, state_components'
  own = collections.namedtuple('Task', names)

  def make():
    env = wrappers.ActionRepeat(gymnasium.make('Pendulum-v1'), 2)
    return wrappers.MaximumDuration(env, 3)

  monkeypatch.setattr(
    tasks,
    'mine',
    lambda config, params: own('mine', make, 3, ['reward']),
    raising=False,
  )
  env = define('mine').env_ctor()
  assert env.reset().shape == (3,)
  steps = [env.step(env.action_space.sample()) for _ in range(3)]
  assert [x[2] for x in steps] == [False, False, True]


@pytest.mark.needs('gym')
def test_spaces_of_old_gym():
  """A wrapper of the user may declare them; they reach this process."""
  import gym

  def make():
    env = dummy_env.DummyEnv(5)
    env.action_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    env.action_space.sample()
    return env

  env = constructors.create(make)
  assert isinstance(env.action_space, gymnasium.spaces.Box)
  assert env.action_space.shape == (2,)
  assert env.reset()['image'].shape == (64, 64, 3)


def test_arguments_of_the_original():
  """`main` takes any object with some of them."""
  given = AttrDict(logdir='a', config='debug', params={'tasks': ['dummy']})
  args = train.Arguments.of(given)
  assert args == train.Arguments('a', 'debug', {'tasks': ['dummy']})
  assert train.Arguments.of(args) is args


def test_packages_can_be_pickled():
  """Environments of scripts may use them."""
  from planet import control

  assert pickle.loads(cloudpickle.dumps(control)) is control


def test_names_of_environments(monkeypatch):
  """The names of packages and functions may begin with gym_, too."""
  for name in ('dummy', 'gym_cheetah', 'gym_Pendulum-v1', 'gym_a:make'):
    assert table.name_env(name) == name
  assert table.name_env('Pendulum-v1') == 'gym_Pendulum-v1'
  assert table.name_env('a:make') == 'gym_a:make'
  given = {'tasks': ['Pendulum-v1', 'gym_Pendulum-v1', 'a:make', 'cup_catch']}
  assert parameters.check(given)['tasks'] == [
    'gym_Pendulum-v1',
    'gym_Pendulum-v1',
    'gym_a:make',
    'cup_catch',
  ]
  monkeypatch.setitem(gymnasium.registry, 'gym_a/B-v0', None)
  assert table.name_env('gym_a/B-v0') == 'gym_gym_a/B-v0'
  monkeypatch.setattr(define, '__module__', 'gym_a')
  monkeypatch.setitem(sys.modules, 'gym_a', sys.modules[__name__])
  assert table.name_env(define) == 'gym_gym_a:define'


@pytest.mark.render
@pytest.mark.parametrize('name, repeat, components, actions', SUITE)
def test_suite_environments(name, repeat, components, actions):
  """Built in a process of their own, with images of the right size."""
  report = probe.inspect(
    define(name, image_size=32).env_ctor, environments._look
  )
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
  task = define(name, state_diagnostics=True)
  report = probe.inspect(task.env_ctor, environments._look)
  shapes = report['shapes']
  assert shapes['image'] == (64, 64, 3) and shapes['action'] == (actions,)
  assert shapes.get('state') == (None if state is None else (state,))
  lines = [message] if message else []
  assert [x for x in report['messages'] if 'no longer exists' in x] == [
    x for x in report['messages'] if any(x.startswith(y) for y in lines)
  ]
  assert len(report['messages']) == len(lines)


@pytest.mark.render
@pytest.mark.parametrize('kind', ['image', 'vector', 'both'])
def test_what_the_model_observes_is_recorded(kind, tmp_path):
  """Also if the state is not predicted on its own."""
  params = {'tasks': ['gym_Pendulum-v1'], 'observations': kind}
  args = train.Arguments(config='debug', params=params)
  config = resume.define_config(str(tmp_path), args)
  config = resume.check(config, str(tmp_path))
  assert set(config.recorded_keys) <= set(config.source.shapes)


REPORT = {
  'messages': [],
  'renderer': None,
  'action_space': None,
  'shapes': {},
  'time_limit': None,
  'interface': None,
}


@pytest.mark.parametrize('names', [['carla'], ['dummy', 'cheetah_run']])
def test_configurations_are_built_without_effects(names, monkeypatch):
  """Neither servers nor environments are asked before `prepare`."""
  asked = []
  monkeypatch.setattr(
    environments.probe, 'inspect', lambda *x: asked.append(x) or REPORT
  )
  monkeypatch.setattr(
    'planet.envs.carla.settings.find_world',
    lambda *x: asked.append(x) or 'offline',
  )
  args = train.Arguments(params=dict(tasks=names))
  config = resume.define_config('unused', args)
  assert not asked
  if names == ['carla']:
    config, _ = environments.prepare(config, 'unused')
    assert asked and config.source.chosen == {'backend': 'offline'}
    (collect,) = config.test_collects.values()
    assert collect.task is config.tasks[0]
    settings = collect.task.env_ctor.keywords['settings']
    assert settings['backend'] == 'offline'


@pytest.mark.parametrize('kind', ['none', 'thread', 'process'])
def test_constructors_that_stay_in_this_process(kind, monkeypatch):
  """They hold what cannot be pickled, such as a lock."""
  lock = threading.Lock()
  made = []

  class Locked(dummy_env.DummyEnv):
    def __init__(self):
      with lock:
        super().__init__(1000)
      made.append(self)
      self.closed = False

    def close(self):
      self.closed = True

  def mine(config, params):
    return tasks.Task('mine', Locked, 20, ['reward'])

  monkeypatch.setattr(tasks, 'mine', mine, raising=False)
  params = {'tasks': ['mine'], 'isolate_envs': kind}
  config = configs.make('debug', params)
  if kind == 'process':
    message = 'cannot be sent to a process, TypeError: .*lock.*; create what'
    with pytest.raises(errors.UsageError, match=message):
      environments.prepare(config, 'unused')
    return
  _, shapes = environments.prepare(config, 'unused')
  assert shapes['image'] == (64, 64, 3) and shapes['action'] == (5,)
  (env,) = made
  assert env.closed


@pytest.mark.render
def test_two_tasks_share_actions_and_images():
  """Padded to the longer action, and nothing but images is left."""
  config = configs.make(
    'debug', dict(tasks=['cartpole_balance', 'reacher_easy'])
  )
  config, found = environments.prepare(config, 'unused')
  assert [x.state_components for x in config.tasks] == [['reward']] * 2
  for task in config.tasks:
    shapes = probe.inspect(task.env_ctor, environments._look)['shapes']
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


def test_length_of_episodes():
  """Longer than those of the original, and shorter."""
  task = define('gym_Pendulum-v1', episode_length=3000, action_repeat=2)
  assert task.max_length == 1500 and task.env_ctor.args[2] == 1500
  assert define('cheetah_run', episode_length=100).max_length == 25
  with pytest.raises(errors.UsageError, match='set env: {max_length'):
    define('carla', episode_length=100)


@pytest.mark.parametrize('length, told', [(None, True), (200, False)])
def test_several_episodes_per_collection(length, told):
  """A sentence says so before the training."""
  params = {'tasks': ['gym_Pendulum-v1'], 'observations': 'vector'}
  params |= {'episode_length': length, 'action_repeat': 10}
  config = configs.make('debug', params)
  config, _ = environments.prepare(config, 'unused')
  sentences = [x for x in config.report if 'records several' in x]
  assert len(sentences) == told
  if told:
    assert (
      'at most 200 environment steps. A collection plays 1000' in (sentences[0])
    )
