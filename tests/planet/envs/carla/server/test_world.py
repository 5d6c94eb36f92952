"""How sessions and episodes are driven, against a pretended server."""

import pytest

pytest.importorskip('carla')

from planet.envs.carla import (
  env_config,  # noqa: E402
  sensors,  # noqa: E402
)
from planet.envs.carla.server import sensors as server_sensors  # noqa: E402
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
