"""The driving environment with the wrappers of a task."""

from typing import Any

import numpy as np

from agents.envs import wrappers
from planet.envs.carla import env as env_lib
from planet.envs.carla import expert as expert_lib


def make(
  action_repeat: int,
  max_length: int,
  name: str = 'carla',
  image_size: int = 128,
  min_length: int = 50,
  pixels: bool = True,
  settings: dict[str, Any] | None = None,
  expert: str | None = None,
) -> wrappers.ConvertTo32Bit:
  """Create the environment, within its own process.

  Args:
    action_repeat: Number of steps with the same action.
    max_length: Number of decisions of the longest episode.
    name: Name of the environment, always `carla`.
    image_size: Height and width of the images.
    min_length: Number of decisions of the shortest episode, at most
      `max_length`, so that it is long enough for training.
    pixels: Whether to add images to the observations.
    settings: Dict of further keys of `env_config.ENV_CONFIG`.
    expert: Who drives instead of the actions that are given, see
      `expert.ExpertDriver`; None for nobody.

  Returns:
    Environment with dictionaries as observations: `image` uint8 and `state`
    float32.

  Raises:
    UsageError: If the settings are wrong or the world cannot be had.
  """
  assert name == 'carla', name
  config = {'x_res': image_size, 'y_res': image_size, **(settings or {})}
  env: Any = env_lib.CarlaEnv({**config, 'expert': expert})
  repeat = expert_lib.ExpertDriver if expert else wrappers.ActionRepeat
  env = repeat(env, action_repeat)
  env = wrappers.MinimumDuration(env, min(min_length, max_length))
  env = wrappers.MaximumDuration(env, max_length)
  if pixels:
    size = (image_size, image_size)
    channels = env.image_channels
    env = wrappers.PixelObservations(env, size, np.uint8, 'image', channels)
  return wrappers.ConvertTo32Bit(env)
