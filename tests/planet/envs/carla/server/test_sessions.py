"""How environments find servers, and how they leave them."""

import contextlib
import os
import signal

import numpy as np
import pytest

carla = pytest.importorskip('carla')

from agents.run import errors  # noqa: E402
from planet.envs.carla.env import CarlaEnv  # noqa: E402


def play(env, steps=5):
  """Infos of the steps of a new episode."""
  env.reset()
  return [env.step(np.float32([0.5, 0]))[3] for _ in range(steps)]


def test_a_server_is_for_one_environment(server):
  """Another one is told how to have its own, and may come afterwards."""
  with contextlib.closing(CarlaEnv(server.config())) as env:
    words = (
      f'127.0.0.1:{server.port}.*-carla-rpc-port={server.port + 10}'
      '.*servers: .host:po'
    )
    with pytest.raises(errors.UsageError, match=words):
      CarlaEnv(server.config())
    assert 'step_error' not in play(env)[-1]
  CarlaEnv(server.config()).close()


def test_each_environment_has_its_server(start_server):
  servers = [start_server(), start_server()]
  addresses = [
    f'{host}:{x.port}' for host, x in zip(('127.0.0.1', 'localhost'), servers)
  ]
  config = servers[0].config(servers=addresses)
  with contextlib.ExitStack() as stack:
    envs = [
      stack.enter_context(contextlib.closing(CarlaEnv(config))) for _ in servers
    ]
    for env in envs:
      play(env)
    assert 'step_error' not in envs[0].step(np.zeros(2))[3]
    states = [x.look() for x in servers]
    assert [len(x.actors) for x in states] == [10, 10]
    ports = [x.managers for x in states]
    assert len(ports[0]) == len(ports[1]) == 1 and ports[0] != ports[1]
  assert not any(x.look().synchronous for x in servers)


def spawn_as(server, role):
  """Put a vehicle with a camera there as another user."""
  client = carla.Client('127.0.0.1', server.port)
  client.set_timeout(10.0)
  world = client.get_world()
  library = world.get_blueprint_library()
  vehicle = library.find('vehicle.audi.tt')
  vehicle.set_attribute('role_name', role)
  place = world.get_map().get_spawn_points()[0]
  parent = world.spawn_actor(vehicle, place)
  camera = library.find('sensor.camera.rgb')
  camera.set_attribute('role_name', role)
  world.spawn_actor(camera, carla.Transform(), attach_to=parent)
  return world


@pytest.mark.parametrize('town', ['Town02', 'Town01'])
def test_leftovers_of_a_killed_run_are_removed(server, town):
  """Only our own: other users' actors stay. Its settings go, too."""
  spawn_as(server, 'hero')
  env = CarlaEnv(server.config())
  play(env)
  os.kill(env.backend.pid, signal.SIGKILL)
  assert 'step_error' in env.step(np.zeros(2))[3]
  env.close()
  state = server.look()
  assert state.synchronous and len(state.actors) > 2
  with contextlib.closing(CarlaEnv(server.config(server_map=town))):
    state = server.look()
    assert state.town == town and state.synchronous
    if town == 'Town02':
      assert [x.role for x in state.actors] == ['hero', 'hero']
  assert not server.look().synchronous


def test_settings_of_others_are_kept(server):
  """A synchronous server that we have never used is as somebody wants it."""
  world = spawn_as(server, 'hero')
  settings = world.get_settings()
  settings.synchronous_mode, settings.fixed_delta_seconds = True, 0.02
  world.apply_settings(settings)
  with contextlib.closing(CarlaEnv(server.config())) as env:
    play(env)
    assert server.look().dt == pytest.approx(0.1)
  state = server.look()
  assert state.synchronous and state.dt == pytest.approx(0.02)
  assert len(state.actors) == 2


def test_map_is_loaded_or_missing(server):
  with contextlib.closing(
    CarlaEnv(server.config(server_map='/Game/Maps/Town01'))
  ) as env:
    assert server.look().town == 'Town01'
    assert play(env)[-1]['map'].endswith('Town01')
  with pytest.raises(errors.UsageError, match="no map 'Town07'.*additional"):
    CarlaEnv(server.config(server_map='Town07'))


def test_map_is_loaded_only_if_allowed(server):
  config = server.config(load_map=False)
  CarlaEnv(config).close()
  with pytest.raises(
    errors.UsageError, match='has loaded Town02, but .* Town01.*load_map'
  ):
    CarlaEnv({**config, 'scenarios': 'TOWN1_STRAIGHT'})
  state = server.look()
  assert state.town == 'Town02' and not state.synchronous


def test_variants_of_towns_have_the_same_roads(start_server):
  """Those whose layers can be switched off."""
  config = start_server(town='Town01_Opt').config(load_map=False)
  CarlaEnv({**config, 'scenarios': 'TOWN1_STRAIGHT'}).close()
