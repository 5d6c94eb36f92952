"""Images of any number of channels as pictures, within the graph."""

from agents.envs import video
from agents.tools.tf1 import tf


def show_channels(images: tf.Tensor) -> tf.Tensor:
  """Put pictures side by side, where images consist of several.

  Args:
    images: Tensor [..., height, width, channels]; see `video.channel_groups`.

  Returns:
    Tensor [..., height, width of all pictures, 1 or 3].
  """
  groups = video.channel_groups(images.shape[-1].value)
  if len(groups) == 1:
    return images
  return tf.concat([images[..., x] for x in groups], -2)
