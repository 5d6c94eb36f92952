"""Shapes of which only a part may be known."""

from agents.tools.tf1 import tf


def shape(tensor):
  """List of static dimensions as ints, with scalars where unknown."""
  static = tensor.shape.as_list()
  dynamic = tf.unstack(tf.shape(tensor))
  return [y if x is None else x for x, y in zip(static, dynamic)]
