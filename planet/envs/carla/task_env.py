"""Driving environment with the wrappers of a task."""

from typing import Any

import numpy as np

from agents.envs import wrappers
from planet.envs.carla import env as env_lib
from planet.envs.carla import policies


def make(
  action_repeat: int,
  max_length: int,
  image_size: int = 128,
  min_length: int = 50,
  pixels: bool = True,
  settings: dict[str, Any] | None = None,
  expert: str | None = None,
) -> wrappers.ConvertTo32Bit:
  """Create the environment.

  Args:
    action_repeat: Number of steps with the same action.
    max_length: Maximum number of actions per episode.
    image_size: Height and width of the images.
    min_length: Minimum number of actions per episode, as training requires; at
      most `max_length`.
    pixels: Whether to add images to the observations.
    settings: Dict with other keys of `env_config.ENV_CONFIG`.
    expert: Driver that replaces the given actions, see `ExpertDriver`, or None.

  Returns:
    Environment with dict observations: `image` uint8 and `state` float32.

  Raises:
    UsageError: If the settings are wrong or the world is not available.
  """
  config = {'x_res': image_size, 'y_res': image_size, **(settings or {})}
  env: Any = env_lib.CarlaEnv({**config, 'expert': expert})
  repeat = ExpertDriver if expert else wrappers.ActionRepeat
  env = repeat(env, action_repeat)
  env = wrappers.MinimumDuration(env, min(min_length, max_length))
  env = wrappers.MaximumDuration(env, max_length)
  if pixels:
    size, channels = (image_size, image_size), env.image_channels
    env = wrappers.PixelObservations(env, size, np.uint8, 'image', channels)
  return wrappers.ConvertTo32Bit(env)


class ExpertDriver(wrappers.Wrapper):
  """Replace the given actions with those of an expert.

  On a server, the traffic manager acts at every step; offline, a scripted
  driver acts once per action. The info contains the `applied_action`, float32
  [2], averaged over the steps.

  Args:
    env: Environment with the setting `expert`.
    amount: Number of steps per action, as in `ActionRepeat`.
  """

  def __init__(self, env: env_lib.CarlaEnv, amount: int):
    super().__init__(env)
    self._amount = amount
    self._is_scripted = env.backend.name == 'offline'
    self._policy = policies.PurePursuit()

  def step(self, unused_action: Any) -> tuple:
    action = np.zeros(2, np.float32)
    if self._is_scripted:
      action = self._policy(self._env)
    total, applied = 0.0, []
    for _ in range(self._amount):
      observ, reward, done, info = self._env.step(action)
      total += reward
      if 'control' in info:
        throttle, steer, brake = info['control']
        applied.append((throttle - brake, steer))
      if done:
        break
    if applied:
      info['applied_action'] = np.mean(applied, 0, dtype=np.float32)
    return observ, total, done, info
