"""Environment of random images, to try the program without a simulator."""

import numpy as np

from agents.envs import spaces
from agents.tools import wrappers


class DummyEnv:
  """Random images and rewards, whatever the actions are.

  Observations are `{'image': uint8 [64, 64, 3]}`. (Those of the original are
  floats in [0, 1], which its own preprocessing does not expect.)

  Args:
    length: Number of steps per episode.
    size: Height and width of the images.
  """

  def __init__(self, length=1000, size=(64, 64)):
    self._random = np.random.RandomState(seed=0)
    self._length = length
    self._step = None
    shape = tuple(size) + (3,)
    self.observation_space = spaces.dictionary(
      {'image': spaces.box(np.zeros(shape), np.full(shape, 255), np.uint8)}
    )
    low = -np.ones(5, np.float32)
    self.action_space = spaces.box(low, -low)

  def seed(self, seed):
    self._random.seed(seed)

  def reset(self):
    self._step = 0
    return self._observe()

  def step(self, unused_action):
    self._step += 1
    reward = self._random.uniform(0, 1)
    return self._observe(), reward, self._step >= self._length, {}

  def render(self, *unused_args, **unused_kwargs):
    return self._observe()['image']

  def close(self):
    pass

  def _observe(self):
    shape = self.observation_space.spaces['image'].shape
    image = self._random.randint(0, 256, shape, dtype=np.uint8)
    return {'image': image}


def make(action_repeat, max_length, image_size=64):
  """Create the environment with the wrappers of a task.

  Args:
    action_repeat: Number of steps with the same action.
    max_length: Number of decisions per episode.
    image_size: Height and width of the images.
  """
  env = DummyEnv(size=(image_size, image_size))
  env = wrappers.ActionRepeat(env, action_repeat)
  env = wrappers.MaximumDuration(env, max_length)
  return wrappers.ConvertTo32Bit(env)
