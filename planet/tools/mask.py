"""Replace the padding of sequences."""

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
    mask: Bool tensor of some leading dimensions of the tensor, True for what
      stays.
    length: Integer tensor [batch] with the number of steps that stay, instead
      of a mask.
    value: What to write everywhere else.
    debug: Check that the result is finite.

  Returns:
    Tensor like the input.

  Raises:
    KeyError: Unless exactly one of `mask` and `length` is given.
  """
  if (mask is None) == (length is None):
    raise KeyError('Specify either a mask or lengths, and not both.')
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
