"""How sessions and episodes are driven, against a pretended server."""

import os

import pytest

pytest.importorskip('carla')

from planet.envs.carla import (
  env_config,  # noqa: E402
  sensors,  # noqa: E402
)
from planet.envs.carla.server import isolated  # noqa: E402
from planet.envs.carla.server import sensors as server_sensors  # noqa: E402
from planet.scripts import carla_smoke  # noqa: E402
from tests.planet.envs.carla.server import (
  fake_carla,  # noqa: E402
  fake_town,  # noqa: E402
)

CONFIG = fake_carla.CONFIG


def test_a_restart_may_take_a_minute():
  config = env_config.complete({})
  assert config['retries'] * config['retry_pause'] == 60


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
