"""Animations for TensorBoard."""

from agents.envs import video
from agents.tools.tf1 import tf
from planet.tools.show_channels import show_channels


def gif_summary(
  name: str,
  tensor: tf.Tensor,
  max_outputs: int,
  fps: float,
  collections: list[str] | None = None,
  family: str | None = None,
) -> tf.Tensor:
  """Summarize videos as animated GIFs.

  Args:
    name: Name of the summary. Its tag ends with `/gif`, and a number if there
      are several videos.
    tensor: Videos [batch, time, height, width, channels], uint8 or in [0, 1];
      see `show_channels`.
    max_outputs: Maximum number of videos.
    fps: Frames per second.
    collections: Collections to add the summary to.
    family: Prefix of the tag.

  Returns:
    Serialized summary.
  """
  tensor = show_channels(tensor)
  if tensor.dtype != tf.uint8:
    tensor = tf.cast(tf.clip_by_value(tensor, 0.0, 1.0) * 255, tf.uint8)
  with tf.name_scope(f'{family}/{name}' if family else name) as scope:
    tag = scope.rstrip('/')
    summary = tf.py_func(
      lambda videos: _encode(tag, videos, max_outputs, fps),
      [tensor[:max_outputs]],
      tf.string,
      stateful=False,
      name='gif',
    )
    summary.set_shape(())
  for key in collections or [tf.GraphKeys.SUMMARIES]:
    tf.add_to_collection(key, summary)
  return summary


def _encode(tag, videos, max_outputs, fps):
  summary = tf.Summary()
  for index, frames in enumerate(videos):
    suffix = '/gif' if max_outputs == 1 else f'/gif/{index}'
    image = tf.Summary.Image(
      height=frames.shape[1],
      width=frames.shape[2],
      colorspace=frames.shape[3],
      encoded_image_string=video.encode_gif(frames, fps),
    )
    summary.value.add(tag=tag + suffix, image=image)
  return summary.SerializeToString()
