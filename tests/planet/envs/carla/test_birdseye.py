"""The picture from above as an image of agents."""

import numpy as np
import pytest

from planet.envs.carla import birdseye, policies
from planet.envs.carla.env import CarlaEnv
from tests.planet.envs.carla.recorded_world import constructor

pytest.importorskip('carla')

CONFIG = dict(
  map='grid',
  vehicles=10,
  pedestrians=0,
  x_res=64,
  y_res=64,
  seed=0,
  reward_function='custom',
)


def find(image, color):
  """Rows and columns of a color."""
  return np.argwhere((image == color).all(-1))


def test_alone_or_beside_the_camera():
  """The camera sees what it sees without, to the bit."""
  envs = [
    CarlaEnv({**CONFIG, 'use_sensor': x})
    for x in ('use_rgb', 'use_birdseye', 'use_rgb_birdseye')
  ]
  driver = policies.PurePursuit()
  for env in envs:
    env.reset()
  for _ in range(20):
    action = driver(envs[0])
    for env in envs:
      env.step(action)
    camera, above, joined = (x.render() for x in envs)
    assert above.shape == (64, 64, 3) and above.dtype == np.uint8
    assert (joined == np.concatenate([camera, above], -1)).all()
  assert [x.image_channels for x in envs] == [3, 3, 6]


def test_the_car_looks_up():
  """Whichever way it drives; its way begins in front of it."""
  env = CarlaEnv({**CONFIG, 'use_sensor': 'use_birdseye', 'vehicles': 0})
  headings = set()
  for _ in range(10):
    env.reset()
    headings.add(round(env.frame.yaw))
    image = env.render()
    rows, columns = find(image, birdseye.OWN).mean(0)
    assert rows == pytest.approx(48, abs=1.5)
    assert columns == pytest.approx(32, abs=1.5)
    way = find(image, birdseye.WAY)
    nearest = way[way[:, 0].argmax()]
    assert way[:, 0].max() < 48 and abs(nearest[1] - 32) <= 2
  assert len(headings) > 3


def test_vehicles_are_where_they_are():
  """One that is ahead, to the right, is drawn above, to the right."""
  env = CarlaEnv({**CONFIG, 'map': 'loop', 'vehicles': 0})
  view = birdseye.View(env.backend.lanes, 48, 48)
  for yaw, place in ((0.0, (10.0, 41.75)), (90.0, (-10.0, 41.75))):
    image = view.draw((0.0, 31.75), yaw, np.zeros((0, 2)), [place])
    row, column = find(image, birdseye.OTHERS).mean(0)
    assert row == pytest.approx(26, abs=1) and column == pytest.approx(
      34, abs=1
    )


def test_it_reaches_the_model():
  env = constructor(20, 20, use_sensor='use_rgb_birdseye', map='loop')()
  assert env.observation_space.spaces['image'].shape == (32, 32, 6)
  assert env.reset()['image'].shape == (32, 32, 6)
