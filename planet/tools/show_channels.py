"""Display images with any number of channels."""

from agents.envs import video
from agents.tools.tf1 import tf


def show_channels(images: tf.Tensor) -> tf.Tensor:
  """Split images into groups of 1 or 3 channels and place them side by side.

  Args:
    images: Tensor [..., height, width, channels]; see `video.channel_groups`.

  Returns:
    Tensor [..., height, total width, 1 or 3].
  """
  groups = video.channel_groups(images.shape[-1].value)
  if len(groups) == 1:
    return images
  return tf.concat([images[..., x] for x in groups], -2)
