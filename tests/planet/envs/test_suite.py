"""Images of the control suite, drawn in a process without TensorFlow."""

import numpy as np
import pytest

from agents.envs import wrappers
from planet.envs import suite
from tests import processes

COMPARE = """
import numpy as np
from agents.envs import opengl
from planet.envs import suite

opengl.select_backend()
env = suite.make('cheetah', 'run', 4, 250, image_size=48)
images = []
for size in (None, (480, 640)):
  inner = suite._load('cheetah', 'run')
  inner.reset()
  with inner.physics.reset_context():
    inner.physics.data.qpos[:] = 0.1
  if size is None:
    suite._fit_framebuffer(inner.physics, (48, 48))
  settings = inner.physics.model.vis.global_
  assert (settings.offheight, settings.offwidth) == (size or (48, 48))
  images.append(inner.physics.render(48, 48, camera_id=0))
assert images[0].std() > 10
assert (images[0] == images[1]).all()
assert env.reset()['image'].shape == (48, 48, 3)
print('same')
"""


@pytest.mark.render
def test_small_framebuffer_draws_the_same_picture():
  assert processes.run_python('-c', COMPARE).split() == ['same']


def test_numbers_among_vectors():
  env = suite.make('walker', 'walk', 2, 500, pixels=False)
  keys = ['height', 'orientations', 'velocity']
  env = wrappers.ConcatObservation(env, keys)
  assert env.observation_space.shape == (24,)
  assert env.reset().shape == env.step(np.zeros(6))[0].shape == (24,)
