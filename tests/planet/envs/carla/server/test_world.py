"""How sessions and episodes are driven, against a pretended server."""

import os

import numpy as np
import pytest

pytest.importorskip('carla')

from agents.run import errors  # noqa: E402
from planet.envs.carla import (
  env_config,  # noqa: E402
  sensors,  # noqa: E402
  task_env,  # noqa: E402
)
from planet.envs.carla.env import CarlaEnv  # noqa: E402
from planet.envs.carla.server import isolated  # noqa: E402
from planet.envs.carla.server import sensors as server_sensors  # noqa: E402
from planet.envs.collect_dataset import CollectGymDataset  # noqa: E402
from planet.scripts import carla_smoke  # noqa: E402
from tests.planet.envs.carla.server import (
  fake_carla,  # noqa: E402
  fake_town,  # noqa: E402
)

CONFIG = fake_carla.CONFIG


def kinds(simulator):
  return sorted(x.type_id.split('.')[0] for x in simulator.actors.values())


def test_session_and_episode(simulator):
  """Synchronous while we drive, everything as before when we have left."""
  env = CarlaEnv(CONFIG)
  assert ('settings', True) in simulator.log
  assert simulator.settings.fixed_delta_seconds == pytest.approx(0.1)
  env.reset()
  assert kinds(simulator) == ['controller'] * 2 + ['sensor'] * 2 + (
    ['vehicle'] * 4 + ['walker'] * 2
  )
  # The next run finds what a killed one has left by its role.
  names = {x.attributes['role_name'] for x in simulator.actors.values()}
  roles = 'ego', 'traffic', 'walker', 'controller', 'camera', 'collision'
  assert names == {f'reference_agents_{x}' for x in roles}
  _, reward, done, info = env.step(np.float32([0.5, 0.2]))
  assert reward == pytest.approx(2.5 * 3.6 / 10, rel=1e-4) and not done
  assert info['control'] == pytest.approx((0.5, 0.2, 0.0))
  # The image is the one of this tick, in the order RGB.
  image = env.render()
  assert image.shape == (32, 32, 3)
  assert image[0, 0].tolist() == [simulator.frame % 200, 20, 40]
  env.close()
  assert not simulator.actors
  assert simulator.settings.synchronous_mode is False
  assert ('manager', False) in simulator.log
  ends = [x for x in simulator.log if x[0] in ('stop', 'destroy')]
  assert [x[0] for x in ends[:4]] == ['stop', 'destroy'] * 2


def test_traffic_manager_exists_only_with_traffic(simulator):
  env = CarlaEnv({**CONFIG, 'vehicles': 0})
  env.reset()
  env.close()
  assert not [x for x in simulator.log if 'manager' in x[0]]


def test_traffic_manager_is_shut_down(simulator):
  env = CarlaEnv(CONFIG)
  for _ in range(2):
    env.reset()
  assert len(simulator.managers) == 1
  env.close()
  assert not simulator.managers


def play(env, steps=5):
  """Infos of the steps of a new episode."""
  env.reset()
  return [env.step(np.float32([0.5, 0]))[3] for _ in range(steps)]


def test_a_server_is_for_one_environment(simulator):
  """Another one is told how to have its own, and may come afterwards."""
  env = CarlaEnv(CONFIG)
  words = '127.0.0.1:2000.*-carla-rpc-port=2010.*carla_servers: .host:po'
  with pytest.raises(errors.UsageError, match=words):
    CarlaEnv(CONFIG)
  assert 'step_error' not in play(env)[-1]
  env.close()
  CarlaEnv(CONFIG).close()


def test_each_environment_has_its_server(simulators):
  config = {**CONFIG, 'servers': ['127.0.0.1:2000', 'localhost:2010']}
  first, second = CarlaEnv(config), CarlaEnv(config)
  play(first)
  play(second)
  assert 'step_error' not in first.step(np.zeros(2))[3]
  assert {len(x.actors) for x in simulators.values()} == {10}
  ports = [list(x.managers) for x in simulators.values()]
  assert len(ports[0]) == len(ports[1]) == 1 and ports[0] != ports[1]
  first.close()
  second.close()
  assert not any(x.settings.synchronous_mode for x in simulators.values())


def test_resets_do_not_pile_up_actors(simulator):
  env = CarlaEnv(CONFIG)
  for _ in range(4):
    env.reset()
    env.step(np.zeros(2))
    assert len(simulator.actors) == 10


def test_blocked_starts(simulator):
  """The route begins where the car has found a place."""
  env = CarlaEnv({**CONFIG, 'reward_function': 'custom'})
  for blocked in range(4):
    simulator.blocked = blocked
    env.reset()
    x, y, _ = env.location
    now = env.measurements
    assert now['start_coord'] == pytest.approx((x, y), abs=1)
    assert 80 <= now['distance_to_goal'] <= 600
    lane, arc = env.backend.lanes.locate(env.surroundings.nearest(env.location))
    assert now['distance_to_goal'] == env.route.distance(lane, arc)
  simulator.blocked = 1000
  with pytest.raises(errors.UsageError, match='was free for the ego vehicle'):
    env.reset()


def test_traffic_keeps_away_from_the_start(simulator):
  """Though clients do not know where a new car is until the next tick."""
  env = CarlaEnv({**CONFIG, 'vehicles': 100})
  env.reset()
  cars = [x for x in simulator.actors.values() if 'vehicle' in x.type_id]
  (own,) = [x for x in cars if x.attributes['role_name'].endswith('_ego')]
  others = [x for x in cars if x is not own]
  distances = [x.get_location().distance(own.get_location()) for x in others]
  # There are 18 places; the neighbours of the start stay free.
  assert len(others) in (15, 16) and min(distances) > 12


def leave_behind(simulator, *roles):
  """Vehicles with cameras, in a world that waits for ticks."""
  simulator.settings.synchronous_mode = True
  simulator.settings.fixed_delta_seconds = 0.1
  pretended = fake_carla.World(simulator)
  for role in roles:
    blueprint = fake_town.Blueprint('vehicle.audi.tt')
    blueprint.set_attribute('role_name', role)
    parent = pretended.spawn_actor(blueprint, None)
    sensor = fake_town.Blueprint('sensor.camera.rgb')
    sensor.set_attribute('role_name', role)
    pretended.spawn_actor(sensor, None, attach_to=parent)


@pytest.mark.parametrize('town', ['Town02', 'Town01'])
def test_leftovers_of_a_killed_run_are_removed(simulator, town):
  """Only our own: other users' actors stay. Its settings go, too."""
  leave_behind(simulator, 'reference_agents_ego', 'hero')
  env = CarlaEnv({**CONFIG, 'server_map': town})
  left = [x.attributes.get('role_name') for x in simulator.actors.values()]
  assert left == ['hero', 'hero']
  assert simulator.settings.synchronous_mode is True
  env.close()
  assert simulator.settings.synchronous_mode is False
  assert not simulator.settings.fixed_delta_seconds


def test_settings_of_others_are_kept(simulator):
  """A synchronous server without actors of ours is as somebody wants it."""
  leave_behind(simulator, 'hero')
  CarlaEnv(CONFIG).close()
  assert simulator.settings.synchronous_mode is True


def test_map_is_loaded_or_missing(simulator):
  CarlaEnv({**CONFIG, 'server_map': '/Game/Maps/Town01'}).close()
  assert ('load', 'Town01') in simulator.log
  with pytest.raises(errors.UsageError, match="no map 'Town07'.*additional"):
    CarlaEnv({**CONFIG, 'server_map': 'Town07'})


def test_map_is_loaded_only_if_allowed(simulator):
  config = {**CONFIG, 'load_map': False}
  CarlaEnv(config).close()
  with pytest.raises(
    errors.UsageError, match='shows Town02, not Town01.*carla_load_map'
  ):
    CarlaEnv({**config, 'scenarios': 'TOWN1_STRAIGHT'})
  assert simulator.town == 'Town02' and not simulator.settings.synchronous_mode
  # Variants whose layers can be switched off have the same roads.
  simulator.town = 'Town01_Opt'
  CarlaEnv({**config, 'scenarios': 'TOWN1_STRAIGHT'}).close()


@pytest.mark.parametrize('dt', [0.02, 0.05, 0.1, 0.16, 0.3, 0.5])
def test_physics_keep_the_limits_of_the_library(simulator, dt, caplog):
  env = CarlaEnv({**CONFIG, 'dt': dt})
  assert simulator.settings.fixed_delta_seconds == pytest.approx(dt)
  assert ('physics' in caplog.text) == (dt > 0.27)
  env.close()


def test_a_restart_may_take_a_minute():
  config = env_config.complete({})
  assert config['retries'] * config['retry_pause'] == 60


def test_collisions_of_a_tick(simulator):
  env = CarlaEnv(CONFIG)
  env.reset()
  simulator.events = [
    ('vehicle.audi.tt', (300.0, 400.0, 0.0)),
    ('static.wall', (0.0, 0.0, 7.0)),
  ]
  _, reward, _, info = env.step(np.zeros(2))
  assert reward == -300
  assert info['collision_vehicles'] == 500 and info['collision_other'] == 7
  assert env.step(np.zeros(2))[3]['collided'] == 0


@pytest.mark.parametrize('error', ['lost', 'late', 'newer'])
def test_errors_in_the_middle(simulator, tmp_path, error, capsys, caplog):
  """No half-written episode; the next reset connects anew."""
  settings = {k: v for k, v in CONFIG.items() if k not in ('x_res', 'y_res')}
  env = task_env.make(1, 20, 32, 10, settings=settings)
  env = CollectGymDataset(env, str(tmp_path))
  env.reset()
  env.step(np.zeros(2))
  setattr(simulator, error, True)
  done, count = False, 1
  while not done:
    _, reward, done, info = env.step(np.zeros(2))
    count += 1
    assert reward == 0 and info['step_error']
  # The shortest episode has ten steps.
  assert count == 10
  assert not list(tmp_path.iterdir())
  assert 'Dropped an episode' in capsys.readouterr().out
  setattr(simulator, error, False)
  simulator.actors.clear()
  env.reset()
  done = False
  while not done:
    _, _, done, info = env.step(np.float32([0.5, 0]))
  assert 'step_error' not in info
  assert len(list(tmp_path.iterdir())) == 1
  env.close()


def test_server_that_stays_away(simulator, caplog):
  """Five attempts, then a sentence."""
  # The attempts must not take longer than the pauses, however busy we are.
  env = CarlaEnv({**CONFIG, 'retry_pause': 0.3})
  env.reset()
  simulator.lost = True
  assert env.step(np.zeros(2))[3] == {'step_error': True}
  with pytest.raises(errors.UsageError, match='does not work after 5 attempts'):
    env.reset()
  assert len([x for x in caplog.records if 'Attempt' in x.getMessage()]) == 5
  env.close()


@pytest.mark.parametrize(
  'name, cameras, pixel',
  [
    ('use_rgb', ['rgb'], [None, 20, 40]),
    # 25 m: 2.5 percent of what is seen, or 1 - ln(40) / ln(300) of the scale.
    ('use_depth', ['depth'], [6]),
    ('use_logdepth', ['depth'], [90]),
    ('use_semantic', ['semantic_segmentation'], [157, 234, 50]),
    ('use_2rgb', ['rgb', 'rgb'], [None, 10, 40, None, 30, 40]),
  ],
)
def test_sensors(simulator, name, cameras, pixel):
  """Each has its blueprint and its bytes; two see from the left and right."""
  env = CarlaEnv(CONFIG | {'use_sensor': name})
  env.reset()
  env.step(np.zeros(2))
  found = [x for x in simulator.actors.values() if '.camera.' in x.type_id]
  assert [x.type_id for x in found] == [f'sensor.camera.{x}' for x in cameras]
  sides = [x.transform.location.y for x in found]
  assert sides == ([0.0] if len(cameras) == 1 else [-0.25, 0.25])
  pixel = [simulator.frame % 200 if x is None else x for x in pixel]
  expected = np.tile(np.uint8(pixel), (32, 32, 1))
  np.testing.assert_array_equal(env.render(), expected)
  env.close()
  assert not simulator.actors


def test_images_are_matched_by_frame():
  """Older ones are dropped; the bytes are BGRA."""
  simulator = fake_carla.Simulator()
  actor = simulator.make(fake_town.Blueprint('sensor.camera.rgb'), None)
  actor.attributes = {'image_size_x': 2, 'image_size_y': 1}
  camera = server_sensors.Camera(actor, sensors.SENSORS['use_rgb'], 0.05)
  pretended = fake_carla.World(simulator)
  number = pretended.tick()
  image = camera.read(number)
  assert image.tolist() == [[[number, 20, 40]] * 2]
  with pytest.raises(RuntimeError, match='no image of frame'):
    camera.read(number + 1)


def test_smoke_script(simulator, tmp_path, monkeypatch, capsys):
  """Each check passes here, and notices what is wrong."""
  monkeypatch.setattr(os, 'kill', lambda *args: setattr(simulator, 'late', 1))
  start = isolated.IsolatedBackend._start
  monkeypatch.setattr(
    isolated.IsolatedBackend,
    '_start',
    lambda self: (setattr(simulator, 'late', False), start(self)),
  )
  args = ['--episodes', '1', '--steps', '5', '--size', '32']
  carla_smoke.main([*args, '--out', str(tmp_path)])
  lines = (tmp_path / 'report.txt').read_text().splitlines()
  assert 'Server 0.9.16, package 0.9.16, map Carla/Maps/Town02' in lines
  failed = [x for x in lines if x.startswith('FAIL')]
  # Traffic stands in the pretended world.
  assert failed == ['FAIL traffic moves']
  for line in (
    'PASS free start',
    'PASS a killed client ends the episode',
    'PASS the episode after a killed client runs',
    'PASS nothing is left 0 actors',
    'PASS the server is asynchronous again',
  ):
    assert any(x.startswith(line) for x in lines), line
  assert 'Please report' in capsys.readouterr().out
