"""Images of the library, and what we make of them."""

import queue

import numpy as np
import pytest

carla = pytest.importorskip('carla')

from planet.envs.carla import sensors  # noqa: E402
from planet.envs.carla.server import sensors as server_sensors  # noqa: E402


@pytest.fixture
def take_image(server):
  """Function that takes an image with a camera, by the name of its kind."""
  client = carla.Client('127.0.0.1', server.port)
  client.set_timeout(10.0)
  world = client.get_world()

  def take(kind):
    library = world.get_blueprint_library()
    camera = world.spawn_actor(
      library.find(f'sensor.camera.{kind}'), carla.Transform()
    )
    images = queue.Queue()
    camera.listen(images.put)
    try:
      return images.get(timeout=10)
    finally:
      camera.stop()
      camera.destroy()

  return take


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
  take_image, name, converter, difference
):
  sensor = sensors.SENSORS[name]
  image = take_image(sensor.camera)
  ours = server_sensors.convert(image, sensor).astype(int)
  theirs = convert(image, getattr(carla.ColorConverter, converter))[..., ::-1]
  if sensor.channels == 1:
    theirs = theirs[..., :1]
  assert abs(ours - theirs).max() <= difference
