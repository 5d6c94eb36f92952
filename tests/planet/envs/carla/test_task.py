"""The carla task: parameters, wrappers, processes, and training runs."""

import functools
import glob
import os

import numpy as np
import pytest

from agents.envs import spaces
from agents.envs.external import Async
from agents.run import errors
from planet.control import random_episodes
from planet.envs.carla import env_config, sensors, settings
from planet.envs.carla.backend import Collision
from planet.scripts import parameters
from tests.planet.envs.carla.recorded_world import (
  QUIET,
  RecordedBackend,
  constructor,
  frame,
)
from tests.planet.scripts import training_runs
from tests.scripted_envs import LoadedModules

pytest.importorskip('carla')

OFFLINE = {'tasks': ['carla'], 'carla_backend': 'offline'}


REPORT = {
  'messages': [],
  'renderer': None,
  'action_space': np.zeros(2),
  'shapes': {'image': (), 'action': (2,), 'reward': (), 'state': (1,)},
  'time_limit': None,
  'interface': None,
}


def define(config='debug', logdir='unused', evaluates=False, **params):
  from planet.scripts import environments, resume, train

  args = train.Arguments(config=config, params={**OFFLINE, **params})
  result = resume.define_config(logdir, args)
  assert not result.unused
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(environments.probe, 'inspect', lambda *unused: REPORT)
    result, _ = environments.prepare(result, logdir, evaluates)
  return result


def find_config(task):
  """Settings of `CarlaEnv`."""
  own = dict(task.settings)
  assert own.pop('action_repeat') == task.action_repeat
  return env_config.complete(settings.define_config(own, own.pop('logdir')))


def test_lengths_and_sizes():
  config = define('default')
  (task,) = config.tasks
  assert task.name == 'carla' and task.max_length == 100
  assert task.state_components == ['reward', 'state']
  assert config.image_size == 128 and config.isolate_envs == 'process'
  assert define('default', action_repeat=2).tasks[0].max_length == 50
  assert define(max_length=30).tasks[0].max_length == 30
  for size in (32, 64, 96, 128):
    assert define(carla_size=size).image_size == size
    assert define(image_size=size).image_size == size
  config = define(carla_size=32, tasks=['carla', 'dummy'])
  assert config.image_size == 32


@pytest.mark.parametrize(
  'params, message',
  [
    ({'carla_reward': 'custom9'}, 'carla_reward'),
    ({'carla_rewrad': 'custom'}, 'Did you mean carla_reward'),
    ({'carla_size': 100}, 'carla_size'),
    ({'carla_size': 64, 'image_size': 32}, 'give one of them'),
    ({'carla_backend': 'online'}, 'server'),
    ({'carla_scenario': 'TOWN3'}, 'Scenario .TOWN3. is unknown'),
    ({'carla_scenario': 3}, 'give a name, a mapping, or a list of'),
    ({'carla_scenario': {'town': 3}}, 'Key .town. of a scenario is unknown'),
    ({'carla_weather': 1.5}, 'carla_weather'),
    ({'carla_weather': 'Snow'}, 'Snow.*0 to 14 or one of Default'),
    ({'carla_termination': 'never'}, 'carla_termination'),
    ({'carla_vehicles': -1}, 'carla_vehicles'),
    ({'carla_port': 70000}, 'carla_port'),
    ({'carla_dt': 1}, 'carla_dt'),
    ({'carla_sensor': 'depth'}, 'carla_sensor'),
    ({'carla_random_throttle': [1, 0]}, 'lower limit first'),
    ({'carla_random_throttle': [0]}, 'carla_random_throttle'),
    ({'env': {'map': ['loop', 3]}}, "Setting 'map' of the driving env.* is"),
    ({'env': {'rewrad_scale': 1}}, 'unknown. Did you mean reward_scale'),
    ({'env': {'termination': 'never'}}, "'fork', 'rllib' or 'time'"),
    ({'env': {'image_size': 64}, 'image_size': 32}, 'give one of them'),
    ({'env': {'map': 'loop'}, 'carla_map': 'grid'}, 'the same; give one of'),
    (
      {'env': {'action_repeat': 2}},
      "'action_repeat' of the driving .* unknown",
    ),
    ({'action_repeat': 200}, 'lower batch_shape or action_repeat'),
    ({'max_length': 5}, 'too few'),
    (
      {'planner_bias': [0.6, 0], 'planner_warm_start': True},
      'give one of them',
    ),
  ],
)
def test_bad_parameters(params, message):
  with pytest.raises(errors.UsageError, match=message):
    define(**params)


def test_parameters_reach_the_environment():
  config = define(
    carla_size=32,
    state_diagnostics=True,
    carla_reward='speed_tracking',
    carla_map='loop',
    carla_vehicles=2,
    carla_pedestrians=0,
    carla_weather='WetNoon',
    carla_dt=0.05,
    carla_state='zero',
    carla_fov=90,
    carla_termination='time',
    carla_scenario='LANE_KEEP',
    carla_reward_scale=0.5,
    carla_seed=3,
  )
  env = config.tasks[0].env_ctor()
  observ = env.reset()
  assert observ['image'].shape == (32, 32, 3)
  assert observ['state'].tolist() == [0]
  _, reward, _, info = env.step(np.float32([0, 0]))
  assert info['weather'] == 'WetNoon' and info['map'] == 'loop'
  assert info['num_vehicles'] == 2 and info['num_pedestrians'] == 0
  assert reward == pytest.approx(-0.05) and reward.dtype == np.float32


LIMITS = {
  'port': (1, 65533),
  'tm_port': (1, 65535),
  'timeout': (0.1, None),
  'dt': (0.005, 0.5),
  'fov': (10, 170),
  'vehicles': (0, None),
  'pedestrians': (0, None),
  'reward_scale': (0, None),
}


@pytest.mark.parametrize('key', LIMITS)
def test_limits_have_one_home(key):
  """Parameters and settings accept the same numbers."""
  name = f'carla_{key}'
  low, high = LIMITS[key]
  for value in (low, high):
    if value is not None:
      assert env_config.complete({key: value})[key] == value
      for given in ({name: value}, {'env': {key: value}}):
        params = parameters.build('default', {'tasks': ['carla'], **given})
        assert params.env[key] == value
  for value in (low - 1, None if high is None else high + 1, 'x', True):
    if value is not None:
      with pytest.raises(errors.UsageError):
        env_config.complete({key: value})
      with pytest.raises(errors.UsageError):
        parameters.build('default', {name: value})


def test_own_scenarios_reach_the_environment():
  """As a mapping in a list, besides names."""
  mine = {'name': 'mine', 'start_pose': [0, 31.75, 0, 0], 'num_vehicles': 1}
  config = define(carla_size=32, carla_map='loop', carla_scenario=[mine])
  env = config.tasks[0].env_ctor()
  env.reset()
  _, _, _, info = env.step(np.float32([0, 0]))
  assert info['current_scenario'] == 'mine' and info['num_vehicles'] == 1
  assert info['start_coord'] == (0.0, 31.75)


MAKE = constructor(60, 50, **QUIET)


def test_in_a_process_of_its_own():
  """Spawned, without TensorFlow, the same episode as here."""
  remote, local = Async(MAKE, 'process'), MAKE()
  try:
    assert remote.action_space == local.action_space
    remote.seed(5)
    local.seed(5)
    np.testing.assert_equal(remote.reset(), local.reset())
    for _ in range(5):
      here = local.step(np.float32([1, 0.1]))
      there = remote.step(np.float32([1, 0.1]))
      np.testing.assert_equal(there[:3], here[:3])
      assert there[3] == here[3]
  finally:
    remote.close()


def test_process_is_free_of_tensorflow():
  probe = Async(functools.partial(LoadedModules, MAKE), 'process')
  try:
    assert 'carla' in probe.names and 'tensorflow' not in probe.names
  finally:
    probe.close()


def test_episodes_last_for_a_chunk(monkeypatch):
  """The fork wants to end at step 90; a collision of `rllib` at once."""
  frames = [frame(0), frame(1, collisions=[Collision('other', 1.0)])]
  backend = RecordedBackend(frames, repeat=True)
  monkeypatch.setattr(
    'planet.envs.carla.env.make_backend', lambda name: backend
  )
  env = constructor(100, 50, 1, False, map='loop', termination='rllib')()
  env.reset()
  count, done = 0, False
  while not done:
    _, _, done, _ = env.step(np.zeros(2))
    count += 1
  assert count == 50
  env = constructor(30, 50, 1, False, map='loop')()
  env.reset()
  assert [env.step(np.zeros(2))[2] for _ in range(30)] == [False] * 29 + [True]


def test_time_to_close(monkeypatch):
  """What the world says reaches the host, through all wrappers."""
  backend = RecordedBackend([frame(0)], repeat=True)
  backend.seconds_to_close = 7.0
  monkeypatch.setattr(
    'planet.envs.carla.env.make_backend', lambda name: backend
  )
  assert MAKE().seconds_to_close == 7


def test_throttle_of_random_episodes():
  """Mapped from the full range; steering stays what it was."""
  plain = play_randomly()
  limited = play_randomly(initial=True, random_throttle=[-0.2, 1.0])
  np.testing.assert_allclose(
    limited['action'][1:, 0], -0.2 + 0.6 * (plain['action'][1:, 0] + 1), 1e-4
  )
  assert limited['action'].dtype == np.float32
  np.testing.assert_array_equal(limited['action'][:, 1], plain['action'][:, 1])
  speed = [x['state'][:, 0].mean() for x in (plain, limited)]
  assert speed[1] > 2 * speed[0]


def play_randomly(**settings):
  def make():
    env = constructor(60, 50, **QUIET, **settings)()
    env.action_space.seed(0)
    return env

  (episode,) = random_episodes(make, 1)
  return episode


def test_failed_random_episodes_are_played_again():
  class Failing:
    action_space = spaces.box(-np.ones(2), np.ones(2))
    observation_space = spaces.dictionary({'state': spaces.box([0], [0])})
    episodes = 0

    def reset(self):
      self.episodes += 1
      return {'state': np.zeros(1)}

    def step(self, action):
      info = {'step_error': True} if self.episodes < 3 else {}
      return {'state': np.zeros(1)}, 0.0, True, info

  env = Failing()
  assert len(random_episodes(lambda: env, 2)) == 2
  assert env.episodes == 4


def test_plans_begin_at_the_bias():
  """Without iterations, the plan is the bias itself."""
  from agents.tools.tf1 import tf
  from planet.control import planning

  def plan(**kwargs):
    return planning.cross_entropy_method(
      None,
      None,
      {'x': tf.zeros([1, 2])},
      [3],
      [2],
      4,
      None,
      iterations=0,
      **kwargs,
    )

  with tf.Session() as sess:
    result = sess.run(plan(bias=[0.6, 0.0]))
    assert not sess.run(plan()).any()
  np.testing.assert_allclose(result, np.tile([0.6, 0.0], (1, 4, 1)))


def test_servers_of_an_evaluation():
  """Its environments take turns; those of a training need one each."""
  params = dict(carla_backend='server', carla_servers=['127.0.0.1:2000'])
  with pytest.raises(errors.UsageError, match='each needs its own'):
    define(**params)
  chosen = define(**params, evaluates=True).source.chosen
  assert chosen == {'backend': 'server'}


@pytest.mark.parametrize(
  'params, message',
  [
    ({'carla_fov': 100}, "'fov' belongs to the trained model"),
    ({'env': {'fov': 100}}, "'fov' belongs to the trained model"),
    ({'env': {'fow': 100}}, "'fow' .* unknown. Did you mean fov"),
    ({'env': {'port': 'x'}}, "'port' .* is 'x'"),
    ({'batch_shape': [3, 4]}, "'batch_shape' belongs to the trained model"),
  ],
)
def test_parameters_of_an_evaluation(tmp_path, monkeypatch, params, message):
  """Those of the server; others belong to the model."""
  from planet.scripts import resume

  path = tmp_path / 'config.yaml'
  path.write_text('version: 1\nconfig: carla_cpu\nparams: {}\nseed: null\n')
  monkeypatch.setattr(
    resume.checkpoint, 'find_variables', lambda *unused: 'model.ckpt-1'
  )
  with pytest.raises(errors.UsageError, match=message):
    resume.restore(str(tmp_path), params=params)


def test_worlds_do_not_mix(tmp_path):
  """What a run has begun with is kept by `auto`, and must not change."""
  (tmp_path / 'config.yaml').write_text(
    'version: 1\nconfig: debug\nparams: {tasks: [carla]}\nseed: null\n'
    'carla_backend: server\n'
  )
  logdir = str(tmp_path)
  with pytest.raises(errors.UsageError, match='started with backend: server'):
    define(logdir=logdir)
  auto = {'carla_backend': 'auto', 'carla_servers': ['a:1', 'b:1']}
  config = define(logdir=logdir, **auto)
  assert config.source.chosen == {'backend': 'server'}
  assert config.source['values']['env']['backend'] == 'auto'
  config = define(logdir=logdir, carla_allow_backend_change=True)
  assert config.source.chosen == {'backend': 'offline'}


def test_settings_of_the_environment_are_parameters():
  """Also those that no parameter was named after."""
  given = {
    'ego_filter': 'vehicle.audi.tt',
    'camera': [1.0, 0.0, 2.0],
    'early_terminate_on_collision': False,
    'reward_weights': {'progress': 1.0},
  }
  (task,) = define(env=given).tasks
  config = find_config(task)
  assert config['camera'] == (1, 0, 2) and config['enable_planner']
  assert all(config[x] == given[x] for x in given if x != 'camera')


SERVERS = {'servers': ['a:2000', 'b:2000']}


def test_preset_for_servers():
  """One command drives in a town, begins with the expert, and is not short."""
  (task,) = define('carla_server', env=SERVERS, carla_backend='server').tasks
  config = find_config(task)
  assert (config['backend'], config['server_map']) == ('server', 'Town02')
  assert config['reward_scale'] == 0.2 and task.settings['max_length'] == 1000
  assert task.settings['random_throttle'] == [-0.2, 1.0]
  assert task.settings['expert'] == 'autopilot'


def test_offline_preset_on_servers(caplog):
  """Servers have no map `loop`; they show the town of the scenario."""
  (task,) = define('carla_cpu', env=SERVERS, carla_backend='server').tasks
  assert find_config(task)['server_map'] == 'Town02'
  assert 'loop exists only offline; the server shows Town02' in caplog.text
  with pytest.raises(errors.UsageError, match='servers have no map loop'):
    more = {**SERVERS, 'map': ['loop', 'grid']}
    define('carla_cpu', env=more, carla_backend='server')


def test_towns_offline():
  """They become a map that has the routes of the scenario."""
  for name in ('Town02', '/Game/Maps/Town02_Opt', None):
    params = {'carla_map': name} if name else {}
    config = define(**params, carla_size=32)
    assert find_config(config.tasks[0])['map'] == 'grid'


def test_maps_are_installed():
  """Every file of the maps belongs to the package data."""
  import planet.envs.carla

  folder = os.path.dirname(planet.envs.carla.__file__)
  names = {os.path.basename(x) for x in glob.glob(folder + '/maps/*')}
  assert names == {'loop.xodr', 'grid.xodr.gz'}
  with open('setup.py') as file_:
    assert "'planet.envs.carla': ['maps/*']" in file_.read()


@pytest.mark.slow
@pytest.mark.parametrize(
  'size, sensor',
  [
    (32, 'use_rgb'),
    (64, 'use_rgb'),
    (96, 'use_rgb'),
    (128, 'use_rgb'),
    (32, 'use_logdepth'),
    (32, 'use_2rgb'),
  ],
)
def test_training(tmp_path, size, sensor):
  """Two phases with collection; files hold whole episodes."""
  params = {'image_size': size, 'max_steps': 40, 'carla_sensor': sensor}
  result = training_runs.train(
    tmp_path, {**OFFLINE, **params, 'carla_termination': 'time'}
  )
  assert result.code == 0, result.output
  assert 'Epoch 2: train return' in result.output
  names = training_runs.episodes(tmp_path)
  assert len(names) >= 2
  for name in names:
    path = os.path.join(training_runs.run_dir(tmp_path), 'train_episodes', name)
    with np.load(path) as episode:
      channels = sensors.SENSORS[sensor].channels
      assert episode['image'].shape == (101, size, size, channels)
      assert episode['image'].dtype == np.uint8


def test_quality_of_images_is_stored():
  """A run keeps how its servers render, also the default."""
  for given, expected in (({}, 'Epic'), ({'carla_quality': 'Low'}, 'Low')):
    assert define(**given).source['values']['env']['quality'] == expected


@pytest.mark.slow
def test_no_leak_over_200_episodes():
  """Resident memory and time per episode stay within 5 and 30 percent."""
  import resource
  import time

  env = MAKE()
  memory, times = [], []
  for number in range(200):
    began = time.process_time()
    env.reset()
    for _ in range(60):
      env.step(np.float32([0.4, 0.0]))
    times.append(time.process_time() - began)
    if number in (20, 199):
      memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
  assert memory[1] < 1.05 * memory[0]
  assert np.median(times[-50:]) < 1.3 * np.median(times[20:70])
