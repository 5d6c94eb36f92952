"""Encoders and decoders of images."""

import numpy as np
import pytest

from agents.tools.tf1 import tf
from planet import networks
from tests import golden, graphs


def test_recorded_images():
  """`planet/conv_ha`: embedding and mean by CONV, log-probability to 1e-5.

  Images are bytes / 255 - 0.5. The decoder is also run with one batch
  dimension instead of two.
  """
  data = golden.load('planet/conv_ha')
  image = data['in/image_uint8'] / data['cfg/image_divisor']
  image = tf.constant(image + data['cfg/image_offset'], tf.float32)
  state = data['in/state']
  encoder = tf.make_template('encoder', networks.conv_ha.encoder)
  decoder = tf.make_template(
    'head_image', networks.conv_ha.decoder, data_shape=[64, 64, 3]
  )
  dist = decoder(tf.constant(state))
  outputs = dict(
    encoder=encoder({'image': image}),
    decoder_mean=dist.mean(),
    decoder_log_prob=dist.log_prob(image),
    merged=decoder(tf.constant(state.reshape(-1, state.shape[-1]))).mean(),
    stddev=dist.stddev(),
  )
  pairs = graphs.pair_weights(graphs.IMAGE_ROLES)
  with graphs.session() as sess:
    graphs.load_weights(sess, data, pairs)
    values = sess.run(outputs)
  mean = data['out/decoder_mean']
  golden.assert_close(values['encoder'], data['out/encoder'], **golden.CONV)
  golden.assert_close(values['decoder_mean'], mean, **golden.CONV)
  merged = mean.reshape((-1,) + mean.shape[2:])
  golden.assert_close(values['merged'], merged, **golden.CONV)
  golden.assert_close(values['decoder_log_prob'], data['out/decoder_log_prob'])
  assert (values['stddev'] == 1).all() and values['stddev'].shape == mean.shape


@pytest.mark.parametrize(
  'name, size',
  [
    ('conv_32', 32),
    ('conv_32_small', 32),
    ('conv_ha', 64),
    ('conv_small', 64),
    ('conv_96', 96),
    ('conv_128', 128),
    ('conv_128_deep', 128),
  ],
)
@pytest.mark.parametrize('channels', [3, 1, 6])
def test_sizes(name, size, channels):
  """Every network goes from images to 1024 features and back."""
  network = getattr(networks, name)
  shape = [size, size, channels]
  obs = tf.placeholder(tf.float32, [None, None] + shape)
  embedded = network.encoder({'image': obs})
  dist = network.decoder(embedded[..., :7], data_shape=shape)
  assert embedded.shape.as_list()[2] == 1024
  assert dist.event_shape.as_list() == shape
  values = graphs.evaluate(
    [embedded, dist.mean()], {obs: np.zeros([2, 1] + shape)}
  )
  assert values[0].shape == (2, 1, 1024)
  assert values[1].shape == (2, 1, size, size, channels)


@pytest.mark.parametrize(
  'name, encoder, decoder',
  [
    (
      'conv_128',
      [(63, 16), (30, 32), (14, 64), (6, 128), (2, 256)],
      [(5, 256), (13, 128), (29, 64), (62, 32), (128, 3)],
    ),
    (
      'conv_128_deep',
      [
        (63, 32),
        (61, 32),
        (30, 64),
        (28, 64),
        (13, 128),
        (11, 128),
        (5, 256),
        (2, 256),
      ],
      [
        (4, 256),
        (7, 256),
        (10, 128),
        (12, 128),
        (26, 64),
        (29, 64),
        (60, 32),
        (63, 32),
        (128, 3),
      ],
    ),
  ],
)
def test_layers_of_both_forks_at_128_pixels(name, encoder, decoder):
  """Sizes and channels after each layer, as recorded for either."""
  network = getattr(networks, name)
  embedded = network.encoder({'image': tf.zeros([1, 1, 128, 128, 3])})
  network.decoder(embedded, data_shape=[128, 128, 3])
  layers = [
    x.outputs[0].shape.as_list()
    for x in tf.get_default_graph().get_operations()
    if x.type == 'BiasAdd'
  ]
  layers = [tuple(x[2:]) for x in layers if len(x) == 4 and x[1] == x[2]]
  assert layers == encoder + decoder


def test_other_sizes_are_noticed():
  with pytest.raises(AssertionError):
    networks.conv_ha.encoder({'image': tf.zeros([1, 1, 96, 96, 3])})
