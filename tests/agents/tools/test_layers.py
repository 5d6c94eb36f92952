"""Layers without Keras."""

import numpy as np
import pytest

from agents.tools import layers
from agents.tools.tf1 import tf
from tests import golden, graphs


def plain_gru(x, h, w_ru, b_ru, w_c, b_c):
  """The equations of the cell as single operations."""
  gates = tf.sigmoid(tf.matmul(tf.concat([x, h], 1), w_ru) + b_ru)
  reset, update = tf.split(gates, 2, 1)
  candidate = tf.tanh(tf.matmul(tf.concat([x, reset * h], 1), w_c) + b_c)
  return update * h + (1 - update) * candidate


def gru_weights():
  return {x.op.name.split('/')[-1]: x for x in tf.trainable_variables()}


def test_recorded_gru():
  """`planet/gru`: one step and gradients of sum(h * grad_out), MODEL."""
  data = golden.load('planet/gru')
  x, h = tf.constant(data['in/x']), tf.constant(data['in/h_prev'])
  output = layers.gru_cell(x, h)
  weights = gru_weights()
  sources = dict(weights, x=x, h_prev=h)
  grads = tf.gradients(
    output, list(sources.values()), tf.constant(data['in/grad_out'])
  )
  with graphs.session() as sess:
    graphs.load_weights(sess, data, weights)
    output, grads = sess.run([output, dict(zip(sources, grads))])
  golden.assert_close(output, data['out/h'], **golden.MODEL)
  golden.assert_all_close(grads, data.below('grad'), **golden.MODEL)


def test_gru_gradient_equals_that_of_plain_operations():
  """The registered gradient, through two steps in a row, to 1e-5."""
  random = np.random.RandomState(0)
  x, y = [tf.constant(random.normal(size=(5, 3)), tf.float32) for _ in 'xy']
  start = tf.constant(random.normal(size=(5, 4)), tf.float32)
  cell = tf.make_template('cell', layers.gru_cell)
  fused = cell(y, cell(x, start))
  weights = gru_weights()
  plain = plain_gru(y, plain_gru(x, start, **weights), **weights)
  factor = tf.constant(random.normal(size=(5, 4)), tf.float32)
  sources = [x, y, start] + list(weights.values())
  results = [
    [output] + tf.gradients(output * factor, sources)
    for output in (fused, plain)
  ]
  with graphs.session() as sess:
    for weight in weights.values():
      value = random.normal(size=weight.shape.as_list())
      weight.load(value.astype(np.float32), sess)
    fused, plain = sess.run(results)
  assert len(fused) == 8
  for one, two in zip(fused, plain):
    assert np.abs(two).max() > 0.1
    golden.assert_close(one, two, rtol=1e-5, atol=1e-5)


def test_two_cells_of_a_template_have_their_own_weights():
  """They share them between calls, but not with each other."""

  def two_cells(x):
    h = layers.gru_cell(x, tf.zeros([2, 4]))
    return layers.gru_cell(h, tf.zeros([2, 4]))

  template = tf.make_template('cells', two_cells)
  template(tf.zeros([2, 3]))
  template(tf.zeros([2, 3]))
  scopes = [x.op.name.rsplit('/', 1)[0] for x in tf.trainable_variables()]
  assert sorted(set(scopes)) == ['cells/gru_cell', 'cells/gru_cell_1']
  assert len(scopes) == 8


@pytest.mark.parametrize('strides', [1, 2])
def test_transposed_convolution_of_one_pixel(strides):
  """The matrix product equals the convolution, with gradients, to 1e-5."""
  random = np.random.RandomState(0)
  inputs = tf.constant(random.normal(size=(3, 1, 1, 8)), tf.float32)
  factor = tf.constant(random.normal(size=(3, 4, 4, 5)), tf.float32)
  fast = layers.conv2d_transpose(inputs, 5, 4, strides)
  kernel, bias = tf.trainable_variables()
  assert kernel.shape.as_list() == [4, 4, 5, 8]
  slow = bias + tf.nn.conv2d_transpose(
    inputs, kernel, [3, 4, 4, 5], strides, 'VALID'
  )
  results = [
    [x] + tf.gradients(x * factor, [inputs, kernel, bias]) for x in (fast, slow)
  ]
  with graphs.session() as sess:
    bias.load(random.normal(size=5).astype(np.float32), sess)
    fast, slow = sess.run(results)
  for one, two in zip(fast, slow):
    assert np.abs(two).max() > 0.1
    golden.assert_close(one, two, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize('size, strides', [(6, 2), (4, 2), (3, 3)])
def test_transposed_convolution_to_few_channels(size, strides):
  """The rearranged one equals the general one, with gradients, to 1e-5."""
  random = np.random.RandomState(0)
  filters = 16 // strides**2
  shape = [3, 4 * strides + size, 5 * strides + size, filters]
  inputs = tf.constant(random.normal(size=(3, 5, 6, 8)), tf.float32)
  factor = tf.constant(random.normal(size=shape), tf.float32)
  fast = layers.conv2d_transpose(inputs, filters, size, strides)
  assert fast.shape.as_list() == shape
  names = {x.type for x in fast.graph.get_operations()}
  assert 'DepthToSpace' in names and 'Conv2DBackpropInput' not in names
  kernel, bias = tf.trainable_variables()
  slow = bias + tf.nn.conv2d_transpose(inputs, kernel, shape, strides, 'VALID')
  results = [
    [x] + tf.gradients(x * factor, [inputs, kernel, bias]) for x in (fast, slow)
  ]
  with graphs.session() as sess:
    fast, slow = sess.run(results)
  for one, two in zip(fast, slow):
    assert np.abs(two).max() > 0.1
    golden.assert_close(one, two, rtol=1e-5, atol=1e-5)


def test_transposed_convolution_of_several_pixels():
  """Static shapes are known, also with an unknown batch size."""
  inputs = tf.placeholder(tf.float32, [None, 2, 3, 4])
  output = layers.conv2d_transpose(inputs, 5, 4, 2)
  assert output.shape.as_list() == [None, 6, 8, 5]
  value = graphs.evaluate(output, {inputs: np.ones((7, 2, 3, 4))})
  assert value.shape == (7, 6, 8, 5)
  output = layers.conv2d_transpose(inputs, 2, 3, 1)
  assert output.shape.as_list() == [None, 4, 5, 2]


def test_dense():
  """All leading dimensions are batch dimensions, also unknown ones."""
  inputs = tf.placeholder(tf.float32, [None, 2, 3])
  output = layers.dense(inputs, 4, tf.nn.relu)
  kernel, bias = tf.trainable_variables()
  assert output.shape.as_list() == [None, 2, 4]
  value = np.random.RandomState(0).normal(size=(5, 2, 3)).astype(np.float32)
  with graphs.session() as sess:
    actual, kernel, bias = sess.run([output, kernel, bias], {inputs: value})
  golden.assert_close(actual, np.maximum(value @ kernel + bias, 0))


def test_initial_values():
  """Kernels are Glorot uniform, biases zero, but one for the gates."""
  layers.dense(tf.zeros([2, 100]), 200)
  layers.gru_cell(tf.zeros([2, 30]), tf.zeros([2, 40]))
  variables = graphs.evaluate(tf.trainable_variables())
  kernel, bias, w_ru, b_ru, w_c, b_c = variables
  for value, fans in ((kernel, 300), (w_ru, 150), (w_c, 110)):
    limit = np.sqrt(6 / fans)
    assert 0.99 * limit < np.abs(value).max() <= limit
    golden.assert_close(value.std(), np.float32(limit / 3**0.5), rtol=0.03)
  assert (bias == 0).all() and (b_c == 0).all() and (b_ru == 1).all()
