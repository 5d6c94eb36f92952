"""Mask the padding of sequences."""

from agents.tools.tf1 import tf


def mask(
  tensor: tf.Tensor,
  mask: tf.Tensor | None = None,
  length: tf.Tensor | None = None,
  value: float = 0,
  debug: bool = False,
) -> tf.Tensor:
  """Set entries outside of a mask to a constant.

  Args:
    tensor: Tensor [batch, time, ...].
    mask: Bool tensor with some leading dimensions of the tensor; True keeps an
      entry.
    length: Integer tensor [batch], number of steps to keep, instead of a mask.
    value: Value of all other entries.
    debug: Whether to check that the result is finite.

  Returns:
    Tensor like the input.

  Raises:
    KeyError: Unless exactly one of `mask` and `length` is given.
  """
  if (mask is None) == (length is None):
    raise KeyError('Give either mask or length, not both.')
  with tf.name_scope('mask'):
    if mask is None:
      mask = tf.sequence_mask(length, tf.shape(tensor)[1])
    trailing = tensor.shape.ndims - mask.shape.ndims
    mask = tf.reshape(mask, tf.concat([tf.shape(mask), [1] * trailing], 0))
    filler = tf.fill(tf.shape(tensor), tf.cast(value, tensor.dtype))
    mask = tf.broadcast_to(mask, tf.shape(tensor))
    masked = tf.where(mask, tensor, filler)
    masked.set_shape(tensor.shape)
    if debug:
      masked = tf.check_numerics(masked, 'masked')
    return masked
