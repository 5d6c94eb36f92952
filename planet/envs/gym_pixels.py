"""Environments of gymnasium and PyBullet, seen by a camera."""

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
) -> Any:
  """Create an environment of gymnasium or PyBullet.

  Args:
    env: What `adapters.create` takes, such as an id.
    action_repeat: Number of steps with the same action.
    max_length: Number of decisions of the longest episode.
    min_length: Number of decisions of the shortest episode, so that it is
      long enough for training.
    image_size: Height and width of the images.
    observation_is_image: Whether the observation is the image. Otherwise the
      environment is rendered.
    pixels: Whether to add images to the observations.

  Returns:
    Environment with dictionaries as observations: `image` uint8, and `state`
    float32 unless the observation is the image.

  Raises:
    UsageError: If the id is unknown, lacks what it needs, has actions that
      are neither vectors nor discrete, or observations that are not a box.
    EnvError: If its constructor fails.
  """
  render_mode = 'rgb_array' if pixels and not observation_is_image else None
  name = adapters.name_of(env)
  env = wrappers.Guard(adapters.create(env, render_mode), name)
  check.check_spaces(env, name, 'planet')
  if spaces.is_discrete(env.action_space):
    # What the author of PlaNet advises: take the largest planned number.
    env = wrappers.OneHotAction(env)
  env = wrappers.ActionRepeat(env, action_repeat)
  env = wrappers.NormalizeActions(env)
  env = wrappers.MinimumDuration(env, min_length)
  env = wrappers.MaximumDuration(env, max_length)
  if observation_is_image:
    env = wrappers.ObservationDict(env, 'image')
    env = wrappers.ObservationToRender(env)
  else:
    env = wrappers.ObservationDict(env, 'state')
  if pixels:
    env = wrappers.PixelObservations(
      env, (image_size, image_size), np.uint8, 'image'
    )
  return wrappers.ConvertTo32Bit(env)
