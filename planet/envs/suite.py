"""Environments of the DeepMind Control Suite with image observations."""

from typing import Any

import numpy as np

from agents.envs import adapters, opengl
from agents.envs.wrappers import VectorObservations
from agents.run import errors
from planet.control import wrappers


def make(
  domain: str,
  task: str,
  action_repeat: int,
  max_length: int,
  image_size: int = 64,
  camera_id: int = 0,
  pixels: bool = True,
) -> Any:
  """Create an environment of the control suite.

  Args:
    domain: Name of the domain.
    task: Name of the task.
    action_repeat: Number of steps with the same action.
    max_length: Number of actions per episode.
    image_size: Height and width of the images.
    camera_id: Index of the camera, -1 for the free one.
    pixels: Whether to add images to the observations.

  Returns:
    Environment with dict observations: `image` uint8 and the float32 arrays of
    the suite; without pixels, all of these are vectors.

  Raises:
    UsageError: If dm_control is not installed, OpenGL cannot render, or there
      is no such camera.
  """
  if pixels:
    opengl.select_backend()
  size = (image_size, image_size)
  env = _load(domain, task)
  if pixels:
    _check_camera(env.physics.model.ncam, domain, task, camera_id)
    _fit_framebuffer(env.physics, size)
  env = adapters.DeepMindWrapper(env, size, camera_id)
  env = wrappers.ActionRepeat(env, action_repeat)
  env = wrappers.MaximumDuration(env, max_length)
  if pixels:
    env = wrappers.PixelObservations(env, size, np.uint8, 'image')
  else:
    env = VectorObservations(env)
  return wrappers.ConvertTo32Bit(env)


def _load(domain, task):
  try:
    from dm_control import suite
  except ImportError as error:
    raise errors.UsageError(
      'Control suite tasks need dm_control, which cannot be imported '
      f'({error}): {errors.how_to_install("dmc")}.'
    ) from None
  return suite.load(domain, task)


def _check_camera(count, domain, task, camera_id):
  if not -1 <= camera_id < count:
    raise errors.UsageError(
      f'Parameter camera_id is {camera_id}, but {domain} {task} has cameras 0 '
      f'to {count - 1}; give one of them, or -1 for the free camera.'
    )


def _fit_framebuffer(physics, size):
  """Render to a buffer of the image size instead of MuJoCo's 640 x 480.

  Images stay the same. With software rendering, this saves 5 to 10 % of the
  time per frame. The rest is mostly spent on shadows and multisampling, which
  affect the images.
  """
  settings = physics.model.vis.global_
  settings.offheight, settings.offwidth = size
