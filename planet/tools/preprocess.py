"""Convert images to network inputs and back."""

from agents.tools.tf1 import tf


def preprocess(image: tf.Tensor, bits: int) -> tf.Tensor:
  """Quantize an image, scale it to [-0.5, 0.5), and add uniform noise.

  The noise spans one quantization step, so that continuous densities can model
  the values (Theis et al., 2016).

  Args:
    image: Tensor of values from 0 to 255.
    bits: Number of bits to keep, at most eight.

  Returns:
    Float32 tensor of the same shape, with new noise at every execution.
  """
  bins = 2**bits
  image = tf.cast(image, tf.float32)
  if bits < 8:
    image = tf.floor(image / 2 ** (8 - bits))
  image = image / bins
  noise = tf.random_uniform(tf.shape(image), 0, 1.0 / bins)
  return image + noise - 0.5


def postprocess(
  image: tf.Tensor, bits: int, dtype: tf.DType = tf.float32
) -> tf.Tensor:
  """Invert `preprocess`, except for the noise and the dropped bits.

  Args:
    image: Float tensor, usually within [-0.5, 0.5].
    bits: Number of bits that `preprocess` kept.
    dtype: Type of the result: float32 for values in [0, 1], not clipped, or
      uint8 for values clipped to [0, 255].

  Returns:
    Tensor of the same shape.

  Raises:
    NotImplementedError: For other types.
  """
  bins = 2**bits
  levels = tf.floor(bins * (image + 0.5))
  if dtype == tf.float32:
    return levels / bins
  if dtype == tf.uint8:
    return tf.cast(tf.clip_by_value(levels * (256.0 / bins), 0, 255), dtype)
  raise NotImplementedError(
    f'Cannot postprocess to {dtype}; use float32 or uint8.'
  )
