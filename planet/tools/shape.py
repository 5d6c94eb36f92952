"""Shapes of tensors with partly unknown dimensions."""

from agents.tools.tf1 import tf


def shape(tensor: tf.Tensor) -> list[int | tf.Tensor]:
  """List known dimensions as ints and unknown ones as scalar tensors."""
  static = tensor.shape.as_list()
  dynamic = tf.unstack(tf.shape(tensor))
  return [y if x is None else x for x, y in zip(static, dynamic)]
