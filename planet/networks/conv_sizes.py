"""Convolutional encoders and decoders for other image sizes and widths."""

import functools

from agents.tools.tf1 import tf
from planet.networks import convolutions
from planet.tools.attr_dict import AttrDict


def _define_network(
  image_size, encoder, decoder, output, activation, last_activation=True
):
  """Define an encoder and a decoder with the signatures of `conv_ha`.

  Args:
    image_size: Height and width of the images.
    encoder: Filters, kernel size and stride of each convolution.
    decoder: The same for each transposed convolution except the last.
    output: Kernel size and stride of the last transposed convolution.
    activation: Name of a function in `tf.nn`.
    last_activation: Whether to apply it to the last convolution of the encoder.
  """
  function = getattr(tf.nn, activation)
  encode = functools.partial(
    _encode, spec=encoder, activation=function, last_activation=last_activation
  )
  decode = functools.partial(
    convolutions.decode, spec=decoder, output=output, activation=function
  )
  return AttrDict(encoder=encode, decoder=decode, image_size=image_size)


def _encode(obs, spec, activation, last_activation):
  return convolutions.encode(obs['image'], spec, activation, last_activation)


conv_32 = _define_network(
  image_size=32,
  encoder=((32, 4, 2), (64, 4, 1), (128, 4, 2), (256, 4, 1)),
  decoder=((128, 5, 1), (64, 4, 2), (32, 4, 1)),
  output=(4, 2),
  activation='relu',
)

# Needs a sixth of the computation of `conv_32`, for CPUs.
conv_32_small = _define_network(
  image_size=32,
  encoder=((16, 4, 2), (32, 4, 2), (256, 4, 2)),
  decoder=((64, 5, 2), (16, 6, 2)),
  output=(6, 2),
  activation='relu',
)

# `conv_ha` with half the filters; trains twice as fast on CPUs.
conv_small = _define_network(
  image_size=64,
  encoder=((16, 4, 2), (32, 4, 2), (64, 4, 2), (256, 4, 2)),
  decoder=((64, 5, 2), (32, 5, 2), (16, 6, 2)),
  output=(6, 2),
  activation='relu',
)

conv_96 = _define_network(
  image_size=96,
  encoder=((32, 8, 2), (64, 5, 2), (72, 5, 2), (128, 5, 2), (1024, 3, 1)),
  decoder=((128, 3, 2), (64, 5, 2), (48, 6, 2), (32, 5, 2)),
  output=(4, 2),
  activation='elu',
  last_activation=False,
)

conv_128 = _define_network(
  image_size=128,
  encoder=((16, 4, 2), (32, 4, 2), (64, 4, 2), (128, 4, 2), (256, 4, 2)),
  decoder=((256, 5, 2), (128, 5, 2), (64, 5, 2), (32, 6, 2)),
  output=(6, 2),
  activation='relu',
)

# Larger network of a fork: eight layers each, and the output.
conv_128_deep = _define_network(
  image_size=128,
  encoder=(
    (32, 4, 2),
    (32, 3, 1),
    (64, 3, 2),
    (64, 3, 1),
    (128, 3, 2),
    (128, 3, 1),
    (256, 3, 2),
    (256, 3, 2),
  ),
  decoder=(
    (256, 4, 1),
    (256, 4, 1),
    (128, 4, 1),
    (128, 3, 1),
    (64, 4, 2),
    (64, 4, 1),
    (32, 4, 2),
    (32, 4, 1),
  ),
  output=(4, 2),
  activation='relu',
)
