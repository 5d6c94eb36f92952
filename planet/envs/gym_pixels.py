"""Environments of gymnasium and PyBullet with image observations."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from agents.envs import adapters, check, spaces, wrappers


def make(
  env: Any,
  action_repeat: int,
  max_length: int,
  min_length: int = 0,
  image_size: int = 64,
  observation_is_image: bool = False,
  pixels: bool = True,
  settings: Mapping[str, Any] | None = None,
) -> Any:
  """Create a gymnasium or PyBullet environment.

  Args:
    env: Argument of `adapters.create`, such as an id.
    action_repeat: Number of steps with the same action.
    max_length: Maximum number of actions per episode.
    min_length: Minimum number of actions per episode, as training requires.
    image_size: Height and width of the images.
    observation_is_image: Whether the observation is the image; otherwise,
      render the environment.
    pixels: Whether to add images to the observations.
    settings: Keyword arguments of the environment, if `env` is an id.

  Returns:
    Environment with dict observations: `image` uint8, and `state` unless the
    observation is the image; without pixels, `state` is a float32 vector.

  Raises:
    UsageError: If the id is unknown, a dependency is missing, actions are
      neither vectors nor discrete or have one bound, or observations are not a
      box.
    EnvError: If the constructor fails.
  """
  render_mode = 'rgb_array' if pixels and not observation_is_image else None
  name = adapters.name_of(env)
  env = adapters.create(env, render_mode, **(settings or {}))
  env = wrappers.Guard(env, name)
  check.check_spaces(env, name, 'planet')
  if spaces.is_discrete(env.action_space):
    # As the author of PlaNet advises: choose the largest planned value.
    env = wrappers.OneHotAction(env)
  env = wrappers.ActionRepeat(env, action_repeat)
  if not getattr(env, 'normalized_actions', False):
    env = wrappers.NormalizeActions(env)
  env = wrappers.MinimumDuration(env, min_length)
  env = wrappers.MaximumDuration(env, max_length)
  if observation_is_image:
    env = wrappers.ObservationDict(env, 'image')
    env = wrappers.ObservationToRender(env)
  else:
    env = wrappers.ObservationDict(env, 'state')
  if pixels:
    size, channels = (image_size, image_size), getattr(env, 'image_channels', 3)
    env = wrappers.PixelObservations(env, size, np.uint8, 'image', channels)
  elif not observation_is_image:
    env = wrappers.VectorObservations(env)
  return wrappers.ConvertTo32Bit(env)
