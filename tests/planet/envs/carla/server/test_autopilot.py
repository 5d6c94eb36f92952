"""Episodes that the traffic manager drives."""

import numpy as np
import pytest

from planet.envs.carla import task_env
from planet.envs.collect_dataset import CollectGymDataset
from tests.planet.envs.carla.server.fake_carla import CONFIG

pytest.importorskip('carla')


def test_autopilot(simulator):
  """The traffic manager drives, also without traffic; we record what it did."""
  config = {**CONFIG, 'vehicles': 0, 'pedestrians': 0}
  env = task_env.make(2, 5, 32, 5, settings=config, expert='autopilot')
  env = CollectGymDataset(env, None)
  env.reset()
  for _ in range(5):
    info = env.step(np.ones(2, np.float32))[3]
  ports = [x[1] for x in simulator.log if x[0] == 'autopilot']
  assert ports == list(simulator.managers)
  assert ('lights', 'vehicle.lincoln.mkz_2020', 100.0) in simulator.log
  action = info['episode']['action']
  last = (simulator.frame + np.arange(-9, 1)) % 10 / 100
  expected = last.reshape(5, 2).mean(1)
  np.testing.assert_allclose(action[1:, 0], 0.4, 1e-6)
  np.testing.assert_allclose(action[1:, 1], expected, 1e-5)
  env.close()
  assert not simulator.managers
