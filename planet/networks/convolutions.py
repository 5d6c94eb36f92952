"""Convolutional stacks from images to 1024 features and back."""

import math
from collections.abc import Callable, Sequence

from tensorflow_probability import distributions as tfd

from agents.tools import layers
from agents.tools.tf1 import tf
from planet.tools.shape import shape

EMBED_SIZE = 1024
# Filters, kernel size and stride of each convolution.
Spec = Sequence[tuple[int, int, int]]


def encode(
  image: tf.Tensor,
  spec: Spec,
  activation: Callable,
  last_activation: bool = True,
) -> tf.Tensor:
  """Encode each image as a vector.

  Args:
    image: Float32 tensor [batch, time, height, width, channels].
    spec: Filters, kernel size and stride of each convolution.
    activation: Activation of the convolutions.
    last_activation: Whether to apply it to the last convolution.

  Returns:
    Float32 tensor [batch, time, 1024].
  """
  sizes = shape(image)
  hidden = tf.reshape(image, [-1] + image.shape.as_list()[2:])
  for index, (filters, kernel, stride) in enumerate(spec):
    last = index == len(spec) - 1
    function = activation if last_activation or not last else None
    hidden = layers.conv2d(hidden, filters, kernel, stride, function)
  size = math.prod(hidden.shape.as_list()[1:])
  assert size == EMBED_SIZE, (hidden.shape, image.shape)
  embedded = tf.reshape(hidden, tf.stack(sizes[:2] + [size]))
  embedded.set_shape(image.shape.as_list()[:2] + [size])
  return embedded


def decode(
  state: tf.Tensor,
  data_shape: Sequence[int],
  spec: Spec,
  output: tuple[int, int],
  activation: Callable,
) -> tfd.Distribution:
  """Decode images from features, starting with one pixel of 1024 channels.

  Args:
    state: Features float32 [..., features].
    data_shape: Shape of one image.
    spec: Filters, kernel size and stride of each transposed convolution except
      the last, which has one filter per image channel.
    output: Kernel size and stride of the last layer, which is linear.
    activation: Activation of the other layers.

  Returns:
    Distribution with batch shape [...] and event shape `data_shape`.
  """
  hidden = layers.dense(state, EMBED_SIZE)
  hidden = tf.reshape(hidden, [-1, 1, 1, EMBED_SIZE])
  for filters, kernel, stride in spec:
    hidden = layers.conv2d_transpose(
      hidden, filters, kernel, stride, activation
    )
  mean = layers.conv2d_transpose(hidden, data_shape[-1], *output)
  assert mean.shape.as_list()[1:] == list(data_shape), (mean.shape, data_shape)
  mean = tf.reshape(mean, tf.stack(shape(state)[:-1] + list(data_shape)))
  mean.set_shape(state.shape.as_list()[:-1] + list(data_shape))
  return tfd.Independent(tfd.Normal(mean, 1.0), len(data_shape))
