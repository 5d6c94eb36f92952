"""Reshape tensors like other tensors; not used by this project."""

from typing import Any

from agents.tools import nested
from agents.tools.tf1 import tf
from planet.tools.shape import shape


def reshape_as(tensor: Any, reference: tf.Tensor) -> Any:
  """Reshape a tensor, or each tensor of a structure, like a reference.

  Args:
    tensor: Tensor or nested structure of tensors.
    reference: Tensor of the wanted shape.

  Returns:
    Structure like `tensor`.
  """
  return nested.map(lambda x: _reshape(x, reference), tensor)


def _reshape(tensor, reference):
  reshaped = tf.reshape(tensor, tf.stack(shape(reference)))
  reshaped.set_shape(reference.shape)
  return reshaped
