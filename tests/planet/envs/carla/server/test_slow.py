"""Servers that start slowly, answer late, or lack something."""

import contextlib
import json
import os
import signal
import time

import numpy as np
import pytest

carla = pytest.importorskip('carla')

from agents.run import errors  # noqa: E402
from planet.envs.carla.env import CarlaEnv  # noqa: E402
from planet.envs.carla.server import isolated  # noqa: E402


def fail_reset(env):
  """Sentence and seconds of a reset that fails."""
  began = time.monotonic()
  with pytest.raises(errors.WorkerDeath) as caught:
    env.reset()
  return str(caught.value), time.monotonic() - began


def test_the_start_may_take_a_while(start_server):
  """The version comes at once, all else with the town."""
  server = start_server(faults={'loading': 5.0})
  CarlaEnv(server.config(timeout=2.0)).close()
  assert not server.look().synchronous


@pytest.mark.slow
def test_a_server_of_ours_is_left_to_load(launcher, monkeypatch, tmp_path):
  """It is started once only."""
  from tests.planet.envs.carla.server.protocol import handle

  monkeypatch.setenv(handle.OPTIONS, json.dumps({'faults': {'loading': 5.0}}))
  config = {'backend': 'server', 'port': 26000, 'timeout': 2.0, 'seed': 0}
  with contextlib.closing(
    CarlaEnv(config | {'server_log': str(tmp_path), 'vehicles': 0})
  ):
    (log,) = tmp_path.iterdir()
    assert log.read_text().count('-quality-level=Epic') == 1


def test_the_start_has_a_limit(start_server):
  server = start_server(faults={'loading': 60.0})
  with pytest.raises(errors.UsageError, match='within 1 s; raise start_t'):
    CarlaEnv(server.config(start_timeout=1.0))


def test_a_client_killed_before_its_first_episode(server):
  """The next run finds a server that waits for ticks, and no actors.

  It misses the first tick, as it does not listen yet.
  """
  env = CarlaEnv(server.config())
  os.kill(env.backend.pid, signal.SIGKILL)
  env.close()
  assert server.look().synchronous
  server.set(subscribe_delay=0.2)
  CarlaEnv(server.config()).close()
  state = server.look()
  assert not state.synchronous
  default = carla.WorldSettings()
  assert state.settings[9] == default.actor_active_distance


@pytest.mark.slow
@pytest.mark.parametrize('vehicles', [0, 3])
def test_clean_up_without_an_answer(server, capfd, vehicles):
  """The server goes on; the traffic manager aborts its process then."""
  env = CarlaEnv(server.config(vehicles=vehicles))
  env.reset()
  server.set(silent=['apply_batch'])
  env.close()
  server.set(silent=[])
  state = server.look()
  assert not state.synchronous and state.actors
  if not vehicles:
    assert 'Could not clean up the CARLA server' in capfd.readouterr().err
  env = CarlaEnv(server.config())
  env.reset()
  env.close()
  state = server.look()
  assert not state.synchronous and not state.actors and not state.managers


@pytest.mark.slow
def test_images_that_begin_late(server, caplog):
  """Cameras listen a while after they are told to."""
  server.set(subscribe_delay=1.5)
  config = server.config(use_sensor='use_2rgb', image_timeout=1.0)
  with contextlib.closing(CarlaEnv(config)) as env:
    env.reset()
    assert 'step_error' not in env.step(np.zeros(2))[3]
  assert not [x for x in caplog.records if x.levelname != 'INFO']
  server.set(subscribe_delay=0.0, lost_images=10**6)
  config.update(image_timeout=0.2, retries=1)
  with contextlib.closing(CarlaEnv(config)) as env:
    sentence, seconds = fail_reset(env)
    assert 'no first image within 2 s; raise image_t' in sentence
    assert seconds < 20


def test_spawning_that_hangs(server):
  """One timeout, not one for each place."""
  with contextlib.closing(
    CarlaEnv(server.config(timeout=2.0, retries=1))
  ) as env:
    server.set(silent=['spawn_actor'])
    sentence, seconds = fail_reset(env)
    assert 'time-out of 2000ms' in sentence and seconds < 20


@pytest.mark.parametrize(
  'missing, sentence',
  [
    ('vehicle.lincoln.mkz_2020', 'vehicle.lincoln.mkz_2020'),
    ('sensor.other.collision:role_name', 'sensor.other.collision.*role_name'),
  ],
)
def test_blueprints_that_do_not_fit(server, missing, sentence):
  server.set(missing=[missing])
  with contextlib.closing(CarlaEnv(server.config(retries=1))) as env:
    with pytest.raises(errors.WorkerDeath, match=f'blueprint {sentence}'):
      env.reset()
  assert not server.look().actors


@pytest.mark.slow
def test_a_library_that_hangs_in_a_reset(server, monkeypatch):
  monkeypatch.setattr(
    isolated.IsolatedBackend, '_find_limit', lambda *unused: 2.0
  )
  with contextlib.closing(
    CarlaEnv(server.config(timeout=60.0, retries=1))
  ) as env:
    server.set(silent=['spawn_actor'])
    sentence, seconds = fail_reset(env)
    assert 'SIGKILL' in sentence and seconds < 20
    monkeypatch.undo()
    server.set(silent=[])
    env.reset()


def test_default_weather_is_a_clear_noon(server):
  """As CARLA has another one for each town."""
  skies = []
  for weather in (0, 1):
    with contextlib.closing(CarlaEnv(server.config(weather=weather))) as env:
      env.reset()
      skies.append(server.look().weather)
  assert skies[0] == skies[1] and skies[0][0] >= 0


def test_collisions_later_than_their_image(server):
  """They count in the step in which they happened, however long they last."""
  server.set(collision_delay=0.02)
  with contextlib.closing(
    CarlaEnv(server.config(vehicles=0, pedestrians=0))
  ) as env:
    env.reset()
    for _ in range(10):
      env.step(np.float32([1, 0]))
    server.hit('wall', 500.0)
    info = env.step(np.zeros(2))[3]
    assert (info['collided'], info['collision_other']) == (1, 500)
    server.set(collision_delay=0.0)
    for _ in range(6):
      assert not env.step(np.zeros(2))[3]['collided']
    server.hit('wall', 500.0, ticks=4)
    infos = [env.step(np.zeros(2))[3] for _ in range(5)]
    assert [x['collided'] for x in infos] == [1, 0, 0, 0, 0]
    assert infos[-1]['collision_other'] == 2500
