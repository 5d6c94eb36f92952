"""How episodes are driven on a server."""

import numpy as np
import pytest

from planet.envs.carla.env import CarlaEnv


def test_session_and_episode(server):
  """Synchronous while we drive, everything as before when we have left."""
  env = CarlaEnv(server.config())
  state = server.look()
  assert state.synchronous and state.dt == pytest.approx(0.1)
  env.reset()
  actors = server.look().actors
  kinds = sorted(x.type.split('.')[0] for x in actors)
  assert kinds == ['controller'] * 2 + ['sensor'] * 2 + (
    ['vehicle'] * 4 + ['walker'] * 2
  )
  # The next run finds what a killed one has left by its role.
  roles = 'ego', 'traffic', 'walker', 'controller', 'camera', 'collision'
  assert {x.role for x in actors} == {f'reference_agents_{x}' for x in roles}
  _, _, done, info = env.step(np.float32([0.5, 0.2]))
  assert not done and 0 < info['forward_speed'] < 1
  assert info['control'] == pytest.approx((0.5, 0.2, 0.0))
  # The image is the one of this tick, in the order RGB.
  image = env.render()
  assert image.shape == (32, 32, 3)
  assert image[0, 0, :2].tolist() == [server.look().frame % 200, 20]
  env.close()
  state = server.look()
  assert not state.actors and not state.managers and not state.synchronous
  assert not state.unknown
