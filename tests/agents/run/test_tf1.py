"""What networks of others use of TensorFlow 1."""

import gc
import subprocess
import sys

import numpy as np
import pytest

from agents.tools import layers
from agents.tools.tf1 import tf
from tests import golden


def network(images):
  """Layers and cells that networks around the originals consist of."""
  hidden = tf.layers.conv2d(images, 4, 3, activation=tf.nn.relu, name='first')
  hidden = tf.layers.max_pooling2d(hidden, 2, 2)
  hidden = tf.layers.conv2d_transpose(hidden, 4, 3)
  hidden = tf.layers.flatten(hidden)
  hidden = tf.layers.dropout(hidden, training=True)
  hidden = tf.layers.batch_normalization(hidden, training=True)
  cell = tf.nn.rnn_cell.GRUCell(5)
  state = cell.zero_state(tf.shape(hidden)[0], tf.float32)
  output, _ = cell(hidden, state)
  return tf.layers.Dense(2)(output)


def test_layers():
  """`tf.layers` and `tf.nn.rnn_cell` work, with their usual names."""
  template = tf.make_template('net', network)
  images = tf.placeholder(tf.float32, (None, 8, 8, 3))
  outputs = [template(images), template(images)]
  names = {x.op.name for x in tf.trainable_variables()}
  assert {'net/first/kernel', 'net/gru_cell/gates/kernel'} <= names
  assert len(names) == 12
  with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for value in sess.run(outputs, {images: np.ones((3, 8, 8, 3))}):
      assert value.shape == (3, 2) and np.isfinite(value).all()


def test_layers_are_ours():
  """`tf.layers.dense` has the names and the numbers of `layers.dense`."""
  inputs = tf.constant(np.arange(12, dtype=np.float32).reshape(2, 2, 3))
  found = []
  for module in (tf.layers, layers):
    with tf.variable_scope(None, 'net'):
      tf.set_random_seed(0)
      hidden = module.dense(inputs, 4, tf.nn.relu)
      found.append(module.dense(hidden, 2))
  names = [x.name.split('/', 1)[1] for x in tf.trainable_variables()]
  assert names[:4] == names[4:]
  assert names[:3] == ['dense/kernel:0', 'dense/bias:0', 'dense_1/kernel:0']
  theirs, own = tf.trainable_variables()[:4], tf.trainable_variables()[4:]
  with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    sess.run([x.assign(y) for x, y in zip(own, theirs)])
    np.testing.assert_allclose(*sess.run(found), rtol=1e-6)


@pytest.mark.parametrize('name', ['Dense', 'Conv2D'])
def test_keras(name):
  """Layers of Keras work in graph mode."""
  kwargs = {'kernel_size': 1} if name == 'Conv2D' else {}
  layer = getattr(tf.keras.layers, name)(3, **kwargs)
  with tf.Session() as sess:
    output = layer(tf.ones((1, 2, 2, 2)))
    sess.run(tf.global_variables_initializer())
    assert sess.run(output).shape == (1, 2, 2, 3)


def test_collector():
  """It passes over TensorFlow's own objects, and works on all others."""
  assert gc.isenabled()
  assert gc.get_freeze_count() > 100_000


def test_warnings_that_are_errors():
  """TensorFlow Probability compares versions in a way that warns."""
  code = 'from agents.tools.tf1 import tf; import tensorflow_probability'
  command = [sys.executable, '-W', 'error', '-c', code]
  subprocess.run(command, cwd=golden.ROOT, check=True)
