"""Convolutional encoder and decoder for 64 x 64 images.

Source: Ha and Schmidhuber (2018), World Models, arXiv:1803.10122.
"""

from collections.abc import Sequence

from tensorflow_probability import distributions as tfd

from agents.tools.tf1 import tf
from planet.networks import convolutions

# Height and width of the images.
image_size = 64

_ENCODER = ((32, 4, 2), (64, 4, 2), (128, 4, 2), (256, 4, 2))
_DECODER = ((128, 5, 2), (64, 5, 2), (32, 6, 2))
_OUTPUT = (6, 2)


def encoder(obs: dict[str, tf.Tensor]) -> tf.Tensor:
  """Encode the observed images.

  Args:
    obs: Dict whose entry `image` is float32 [batch, time, 64, 64,
      channels].

  Returns:
    Float32 tensor [batch, time, 1024], flattened from 2 x 2 x 256 in the order
    height, width, channel.
  """
  return convolutions.encode(obs['image'], _ENCODER, tf.nn.relu)


def decoder(state: tf.Tensor, data_shape: Sequence[int]) -> tfd.Distribution:
  """Predict a distribution of images from features.

  Args:
    state: Features float32 [..., features].
    data_shape: Shape of one image, [64, 64, channels].

  Returns:
    Normal distribution with standard deviation one, batch shape [...] and
    event shape `data_shape`.
  """
  return convolutions.decode(state, data_shape, _DECODER, _OUTPUT, tf.nn.relu)
