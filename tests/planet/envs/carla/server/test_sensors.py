"""Images of the library, and what we make of them."""

import queue
import time

import numpy as np
import pytest

carla = pytest.importorskip('carla')

from planet.envs.carla import sensors  # noqa: E402
from planet.envs.carla.server import sensors as server_sensors  # noqa: E402
from tests import processes  # noqa: E402


@pytest.fixture
def world(server):
  client = carla.Client('127.0.0.1', server.port)
  client.set_timeout(10.0)
  return client.get_world()


def put_camera(world, kind):
  blueprint = world.get_blueprint_library().find(f'sensor.camera.{kind}')
  blueprint.set_attribute('image_size_x', '40')
  blueprint.set_attribute('image_size_y', '30')
  return world.spawn_actor(blueprint, carla.Transform())


def take_image(world, kind):
  camera, images = put_camera(world, kind), queue.Queue()
  camera.listen(images.put)
  try:
    return images.get(timeout=10)
  finally:
    camera.stop()


def convert(image, converter):
  """Pixels that the library makes of an image, as BGR."""
  image.convert(converter)
  pixels = np.frombuffer(image.raw_data, np.uint8)
  return pixels.reshape(image.height, image.width, 4)[..., :3]


@pytest.mark.parametrize(
  'name, converter, difference',
  [
    # The library cuts fractions off, and its logarithms begin at 0.005.
    ('use_depth', 'Depth', 1),
    ('use_logdepth', 'LogarithmicDepth', 1),
    ('use_semantic', 'CityScapesPalette', 0),
    ('use_rgb', 'Raw', 0),
  ],
)
def test_conversions_are_those_of_the_library(
  world, name, converter, difference
):
  sensor = sensors.SENSORS[name]
  image = take_image(world, sensor.camera)
  ours = server_sensors.convert(image, sensor).astype(int)
  theirs = convert(image, getattr(carla.ColorConverter, converter))[..., ::-1]
  if sensor.channels == 1:
    theirs = theirs[..., :1]
  assert abs(ours - theirs).max() <= difference


def test_images_are_matched_by_frame(server, world):
  """Older ones are dropped; missing and newer ones are errors."""
  actor = put_camera(world, 'rgb')
  camera = server_sensors.Camera(actor, sensors.SENSORS['use_rgb'], 5.0)
  # Until it listens, it misses images.
  with processes.time_limit(30):
    while not camera.has_sent():
      time.sleep(0.01)
  number = world.wait_for_tick().frame + 5
  image = camera.read(number)
  assert image.shape == (30, 40, 3) and image[0, 0, 0] == number % 200
  with pytest.raises(RuntimeError, match=f'instead of {number}'):
    camera.read(number)
  actor.stop()
  camera = server_sensors.Camera(actor, sensors.SENSORS['use_rgb'], 0.5)
  server.set(lost_images=10**6)
  with pytest.raises(RuntimeError, match='no image of frame'):
    camera.read(world.wait_for_tick().frame + 5)
  actor.stop()
