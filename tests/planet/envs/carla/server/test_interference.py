"""Servers that others use as well, or that are not what they seem."""

import contextlib
import re
import socket
import time

import numpy as np
import pytest

carla = pytest.importorskip('carla')

from agents.run import errors  # noqa: E402
from planet.envs.carla import backend as backend_lib  # noqa: E402
from planet.envs.carla import env_config  # noqa: E402
from planet.envs.carla.env import CarlaEnv  # noqa: E402
from planet.envs.carla.server import connect  # noqa: E402
from planet.envs.carla.server import world as world_lib  # noqa: E402


@pytest.fixture
def env(server):
  config = server.config(vehicles=0, pedestrians=0, timeout=5.0)
  with contextlib.closing(CarlaEnv(config)) as env:
    env.reset()
    env.step(np.zeros(2))
    yield env


def find_world(server):
  """World of another client."""
  client = carla.Client('127.0.0.1', server.port)
  client.set_timeout(10.0)
  return client.get_world()


def change(server, **settings):
  world = find_world(server)
  values = world.get_settings()
  for name, value in settings.items():
    setattr(values, name, value)
  world.apply_settings(values)


def cloud(server):
  world = find_world(server)
  # No preset: the scenario may have drawn any of them.
  world.set_weather(carla.WeatherParameters(cloudiness=12.5))
  # `set_weather` waits for no answer: a client that ends at once may never
  # send it.
  world.get_weather()


CASES = {
  'asynchronous': (
    lambda x: change(x, synchronous_mode=False),
    'synchronous_mode True to False',
  ),
  'free': (lambda x: x.set(free=True), 'also ticks'),
  'ticks': (lambda x: x.set(foreign_ticks=1), 'also ticks.*frame'),
  'delta': (
    lambda x: change(x, fixed_delta_seconds=0.02),
    'fixed_delta_seconds 0.1',
  ),
  'other delta': (
    lambda x: x.set(other_dt=0.02),
    'a step of 0.02 s instead of 0.1 s',
  ),
  'no images': (
    lambda x: change(x, no_rendering_mode=True),
    'no_rendering_mode False to True',
  ),
  'physics': (lambda x: change(x, max_substeps=2), 'max_substeps 16 to 2'),
  'town': (
    lambda x: carla.Client('127.0.0.1', x.port).load_world('Town01'),
    'has loaded a town|has changed the settings',
  ),
  'weather': (cloud, 'has changed the weather'),
  'collision sensor': (
    lambda x: x.destroy('sensor.other.collision'),
    'has destroyed the sensor other.collision',
  ),
  'camera': (
    lambda x: x.destroy('sensor.camera'),
    'has destroyed the sensor camera.rgb',
  ),
  'car': (lambda x: x.destroy('vehicle'), 'has destroyed the car'),
  'no ground': (lambda x: x.set(no_ground=True), 'The car falls.*no ground'),
  'nan': (lambda x: x.set(nan=True), 'reports a car at .nan'),
  'short image': (lambda x: x.set(image_rows=1), 'image of 40 x 36 with 1400'),
  'small image': (
    lambda x: x.set(image_rows=1, honest_rows=True),
    'image of 40 x 35',
  ),
  'impulse': (
    lambda x: x.hit('wall', float('nan')),
    'an impulse of nan',
  ),
}


# What notices these notices another case, too.
ALIKE = 'delta', 'no images', 'physics', 'camera', 'small image', 'ticks'


@pytest.mark.parametrize(
  'name',
  [pytest.param(x, marks=pytest.mark.slow) if x in ALIKE else x for x in CASES],
)
def test_interference_is_noticed_and_named(server, env, caplog, name):
  """The episode fails within two seconds; the next one is as ever."""
  interfere, sentence = CASES[name]
  interfere(server)
  for _ in range(20):
    # A server that is free is faster than an environment that waits.
    time.sleep(0.1 * (name == 'free'))
    _, reward, done, info = env.step(np.float32([0.5, 0]))
    if done:
      break
  assert info == {'step_error': True} and reward == 0
  assert re.search(sentence, caplog.text), caplog.text
  assert 'image_timeout' not in caplog.text
  server.set(
    free=False,
    foreign_ticks=0,
    other_dt=0.0,
    no_ground=False,
    nan=False,
    image_rows=0,
    honest_rows=False,
  )
  env.reset()
  for _ in range(5):
    assert 'step_error' not in env.step(np.float32([0.5, 0]))[3]
  state = server.look()
  assert state.synchronous and state.dt == pytest.approx(0.1)
  assert not state.unknown


def test_changes_between_episodes_are_undone(server, caplog):
  """Each reset applies the settings again, and says so."""
  config = server.config(vehicles=0, pedestrians=0)
  wanted = backend_lib.Episode((0.0, 31.75, 0.5, 0.0), 1, 0, 0, 0)
  with contextlib.closing(world_lib.ServerBackend()) as backend:
    backend.open(env_config.complete(config))
    backend.reset(wanted)
    change(server, fixed_delta_seconds=0.02, synchronous_mode=False)
    assert not caplog.text
    backend.reset(wanted)
    assert 'fixed_delta_seconds 0.1' in caplog.text
    for _ in range(5):
      backend.tick(backend_lib.Control())
    state = server.look()
    assert state.synchronous and state.dt == pytest.approx(0.1)


def test_a_client_that_never_stops_ends_the_run(server, env):
  """With the cause in the last sentence."""
  with pytest.raises(errors.WorkerDeath, match='5 episodes.*also ticks'):
    while True:
      server.set(foreign_ticks=1)
      while not env.step(np.zeros(2))[2]:
        pass
      server.set(foreign_ticks=0)
      env.reset()


def fail(server, **config):
  """Sentence that an environment ends with."""
  with pytest.raises((errors.UsageError, errors.WorkerDeath)) as caught:
    with contextlib.closing(CarlaEnv(server.config(**config))) as env:
      env.reset()
  return str(caught.value)


def test_spawn_points_beside_the_road(start_server, caplog):
  """They are not used; without any other, the town is of no use."""
  on = [[x, 31.75, 0.5] for x in (-30.0, 0.0, 30.0)]
  off = [[x, 200.0, 0.5] for x in (-30.0, 0.0, 30.0)]
  poses = [[x, [0.0, 0.0, 0.0]] for x in on + off]
  server = start_server(points=poses)
  with contextlib.closing(CarlaEnv(server.config(vehicles=6))) as env:
    assert len(env.backend.spawn_points()) == 3
    env.reset()
    ys = [x.position[1] for x in server.look().actors if 'vehicle' in x.type]
    assert max(ys) < 100
  for points, words in ((poses[3:], '3 of 3'), ([], '0 of 0')):
    message = fail(start_server(points=points))
    assert f'no spawn points on its roads ({words} spawn points' in message


def test_towns_without_ground_for_pedestrians(start_server):
  server = start_server(ground=None)
  assert 'no ground for the 2 ped' in fail(server)
  config = server.config(pedestrians=0)
  with contextlib.closing(CarlaEnv(config)) as env:
    env.reset()


@pytest.mark.parametrize('kind', ['vehicle', 'walker'])
def test_libraries_without_blueprints(start_server, kind):
  """Whatever is wanted of them; cars of ours are found by name."""
  server = start_server(faults={'missing': [f'{kind}.']})
  message = fail(server)
  assert 'blueprint' in message and 'reinstall' in message


def test_a_home_that_is_not_writable(server, tmp_path, monkeypatch):
  """The client writes a cache there."""
  home = tmp_path / 'file'
  home.write_text('')
  monkeypatch.setenv('HOME', str(home))
  message = fail(server)
  assert 'cannot write its cache' in message
  assert 'has not loaded' not in message


def test_a_port_that_is_bound_but_silent(start_server):
  """Nothing can start there, so no server is told to."""
  with socket.socket() as holder:
    holder.bind(('127.0.0.1', 0))
    port = holder.getsockname()[1]
    reason = connect.why_unreachable('127.0.0.1', port)
    assert reason == 'a program holds the port but does not listen'
    claim = connect.claim_ports(port, 1, 1)
    claim.lock.release()
    assert claim.port != port
