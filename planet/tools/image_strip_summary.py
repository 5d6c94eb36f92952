"""Image strips of sequences for TensorBoard."""

from agents.envs import video
from agents.tools.tf1 import tf
from planet.tools.show_channels import show_channels


def image_strip_summary(
  name: str,
  images: tf.Tensor,
  max_length: int = 100,
  max_batch: int = 10,
  gap: int = 0,
) -> tf.Tensor:
  """Summarize image sequences as one image: time to the right, batch down.

  Args:
    name: Name of the summary.
    images: Tensor [batch, time, height, width, channels], uint8 or in [0, 1];
      see `show_channels`.
    max_length: Maximum number of steps, 0 for no limit.
    max_batch: Maximum number of sequences, 0 for no limit.
    gap: Pixels of white between the frames; the original has none.

  Returns:
    Serialized summary.
  """
  images = show_channels(images)
  if images.dtype == tf.uint8:
    images = tf.cast(images, tf.float32) / 255.0
  images = images[: max_batch or None, : max_length or None]
  images = tf.clip_by_value(images, 0.0, 1.0)
  images = add_gaps(images, gap)
  _, _, _, width, channels = images.shape.as_list()
  sizes = tf.shape(images)
  rows = tf.transpose(images, [0, 2, 1, 3, 4])
  strip = tf.reshape(
    rows, tf.stack([1, sizes[0] * sizes[2], sizes[1] * width, channels])
  )
  # None after the last frame.
  strip = strip[:, : tf.shape(strip)[1] - gap, : tf.shape(strip)[2] - gap]
  return tf.summary.image(name, strip)


def add_gaps(images: tf.Tensor, gap: int = video.GAP) -> tf.Tensor:
  """Add white at the bottom and to the right of images.

  Args:
    images: Float tensor [batch, time, height, width, channels] in [0, 1].
    gap: Number of pixels.

  Returns:
    Tensor [batch, time, height + gap, width + gap, channels].
  """
  sides = [[0, 0], [0, 0], [0, gap], [0, gap], [0, 0]]
  return tf.pad(images, sides, constant_values=1.0) if gap else images
