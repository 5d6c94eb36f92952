"""Sensors as parameters of the task."""

import numpy as np
import pytest

from planet.envs.carla import sensors
from tests.planet.envs.carla.test_task import define

pytest.importorskip('carla')


@pytest.mark.parametrize('name', sensors.SENSORS)
def test_sensors_reach_the_environment(name):
  """What the space promises is what comes, and what a decoder predicts."""
  config = define(carla_size=32, carla_map='loop', carla_sensor=name)
  env = config.tasks[0].env_ctor()
  shape = (32, 32, sensors.SENSORS[name].channels)
  assert env.observation_space.spaces['image'].shape == shape
  assert env.reset()['image'].shape == shape
  assert env.step(np.zeros(2, np.float32))[0]['image'].shape == shape


def test_area_resize():
  """Means of blocks, and weights at fractional edges."""
  shrink = sensors.SENSORS['use_rgb'].shrink
  image = np.arange(24, dtype=np.uint8).reshape(4, 6, 1) * 10
  blocks = image.reshape(2, 2, 3, 2).astype(int).sum((1, 3))
  np.testing.assert_array_equal(shrink(image, 3, 2)[..., 0], (blocks + 2) // 4)
  row = np.uint8([[[0], [90], [180]]])
  # Each target pixel is one and a half source pixels wide.
  assert shrink(row, 2, 1).ravel().tolist() == [30, 150]
