"""Environment with random images, for tests without a simulator."""

from typing import Any

import numpy as np

from agents.envs import spaces
from agents.tools import wrappers


class DummyEnv:
  """Environment with random images and rewards that ignores actions.

  Observations are `{'image': uint8 [64, 64, 3]}`. (The original returns floats
  in [0, 1], which do not suit its own preprocessing.)

  Args:
    length: Number of steps per episode.
    size: Height and width of the images.
  """

  def __init__(
    self, length: int = 1000, size: tuple[int, int] = (64, 64)
  ) -> None:
    self._random = np.random.RandomState(seed=0)
    self._length = length
    self._step = 0
    self._shape = (*size, 3)
    black, white = np.zeros(self._shape), np.full(self._shape, 255)
    image = spaces.box(black, white, np.uint8)
    self.observation_space = spaces.dictionary({'image': image})
    low = -np.ones(5, np.float32)
    self.action_space = spaces.box(low, -low)

  def seed(self, seed: int) -> None:
    self._random.seed(seed)

  def reset(self) -> dict[str, np.ndarray]:
    self._step = 0
    return self._observe()

  def step(
    self, unused_action: np.ndarray
  ) -> tuple[dict[str, np.ndarray], float, bool, dict]:
    self._step += 1
    reward = self._random.uniform(0, 1)
    return self._observe(), reward, self._step >= self._length, {}

  def render(self, *unused_args: Any, **unused_kwargs: Any) -> np.ndarray:
    return self._observe()['image']

  def close(self) -> None:
    pass

  def _observe(self):
    return {'image': self._random.randint(0, 256, self._shape, dtype=np.uint8)}


def make(
  action_repeat: int, max_length: int, image_size: int = 64
) -> wrappers.ConvertTo32Bit:
  """Create the environment with the wrappers of a task.

  Args:
    action_repeat: Number of steps with the same action.
    max_length: Number of actions per episode.
    image_size: Height and width of the images.
  """
  env: Any = DummyEnv(size=(image_size, image_size))
  env = wrappers.ActionRepeat(env, action_repeat)
  env = wrappers.LimitDuration(env, max_length)
  return wrappers.ConvertTo32Bit(env)
