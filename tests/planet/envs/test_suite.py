"""Images of the control suite, drawn in a process without TensorFlow."""

import numpy as np
import pytest

from planet.control import wrappers
from planet.envs import suite
from tests import processes

COMPARE = """
import numpy as np
from agents.envs import opengl
from agents.run import errors
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
for camera in (-2, 2):
  try:
    suite.make('cheetah', 'run', 4, 250, camera_id=camera)
  except errors.UsageError as error:
    assert f'{camera}, but cheetah run has cameras 0 to 1;' in str(error)
  else:
    raise AssertionError(camera)
print('same')
"""


@pytest.mark.render
@pytest.mark.slow
def test_small_framebuffer_draws_the_same_picture():
  """With one of the cameras that there are."""
  assert processes.run_python('-c', COMPARE).split() == ['same']


def test_numbers_among_vectors():
  env = suite.make('walker', 'walk', 2, 500, pixels=False)
  keys = ['height', 'orientations', 'velocity']
  env = wrappers.ConcatObservation(env, keys)
  assert env.observation_space.shape == (24,)
  assert env.reset().shape == env.step(np.zeros(6))[0].shape == (24,)
