"""Precision of products: what is refused, and what the rewriters do."""

import functools

import numpy as np
import pytest

from agents.run.errors import UsageError
from agents.tools import devices
from agents.tools.tf1 import tf
from planet.networks import conv_ha
from planet.tools.custom_optimizer import CustomOptimizer
from planet.training import precision
from tests import graphs

ADAM = functools.partial(tf.train.AdamOptimizer, 0.01, epsilon=1e-12)


def put_gpu(monkeypatch, capability):
  monkeypatch.setattr(devices, 'compute_capability', lambda: capability)


def put_processor(monkeypatch, *flags):
  monkeypatch.setattr(precision, 'processor_flags', lambda: {*flags})


def test_processor_without_bfloat16(monkeypatch):
  put_gpu(monkeypatch, None)
  monkeypatch.setenv('TF_ENABLE_ONEDNN_OPTS', '1')
  put_processor(monkeypatch, 'avx512f', 'avx512_bf16')
  with pytest.raises(UsageError, match='needs .* with AMX; .* is faster'):
    precision.check('bfloat16')
  put_processor(monkeypatch, 'avx512_bf16', 'amx_bf16')
  precision.check('bfloat16')
  monkeypatch.setenv('TF_ENABLE_ONEDNN_OPTS', '0')
  with pytest.raises(UsageError, match='unset TF_ENABLE_ONEDNN_OPTS'):
    precision.check('bfloat16')


def test_bfloat16_is_not_for_gpus(monkeypatch):
  put_gpu(monkeypatch, (9, 0))
  put_processor(monkeypatch, 'amx_bf16')
  with pytest.raises(UsageError, match='uses the GPU. Use float16'):
    precision.check('bfloat16')


def test_float16_needs_a_gpu(monkeypatch):
  put_gpu(monkeypatch, None)
  with pytest.raises(UsageError, match='needs a GPU: Computing on the '):
    precision.check('float16')
  put_gpu(monkeypatch, (6, 1))
  with pytest.raises(UsageError, match='this one has 6.1'):
    precision.check('float16')
  put_gpu(monkeypatch, (7, 0))
  precision.check('float16')


def test_flags_of_the_processor(tmp_path):
  path = tmp_path / 'cpuinfo'
  assert precision.processor_flags(str(path)) == set()
  path.write_text('model name\t: X flags\nflags\t\t: fpu amx_bf16\n\n' * 2)
  assert precision.processor_flags(str(path)) == {'fpu', 'amx_bf16'}


def train(optimizer, session):
  """Gradient and weights after updates of a single layer, [64, 64] each."""
  tf.reset_default_graph()
  random = np.random.RandomState(0)
  x = tf.placeholder(tf.float32, [64, 64])
  start = random.uniform(-1, 1, (64, 64)).astype(np.float32)
  weights = tf.get_variable('weights', initializer=start)
  # Its gradient is smaller than what float16 can hold.
  loss = 1e-6 * tf.reduce_mean(tf.square(tf.matmul(x, weights)))
  optimizer = optimizer()
  pairs = optimizer.compute_gradients(loss, [weights])
  update = optimizer.apply_gradients(pairs)
  feed = {x: random.uniform(-1, 1, (64, 64))}
  with tf.Session(config=session) as sess:
    sess.run(tf.global_variables_initializer())
    gradient = sess.run(pairs[0][0], feed)
    for _ in range(5):
      sess.run(update, feed)
    return gradient, sess.run(weights)


def distance(values, others):
  return np.abs(values - others).max() / np.abs(others).max()


@pytest.fixture(autouse=True)
def environ(monkeypatch):
  """Undo what `enable` sets."""
  for name in ('INFERLIST_REMOVE', 'DENYLIST_ADD'):
    name = f'TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_{name}'
    monkeypatch.setenv(name, '')
    monkeypatch.delenv(name)


def rewritten(name):
  session = tf.ConfigProto()
  precision.enable(name, session)
  return session


needs_bfloat16 = pytest.mark.skipif(
  not precision.processor_flags() & {'avx512_bf16', 'amx_bf16'},
  reason='the processor has no products of bfloat16',
)


@needs_bfloat16
def test_bfloat16():
  """Products have 8 bits, and weights all of theirs."""
  expected = train(ADAM, rewritten('float32'))
  gradient, weights = train(ADAM, rewritten('bfloat16'))
  assert 1e-4 < distance(gradient, expected[0]) < 1e-2
  assert distance(weights, expected[1]) < 2e-2
  assert weights.dtype == np.float32
  rounded = weights.view(np.uint32) & 0xFFFF == 0
  assert not rounded.all()


def test_float16_needs_scaled_losses():
  """With the rewriter that pretends to be a GPU's on any processor."""
  session = tf.ConfigProto()
  session.graph_options.rewrite_options.auto_mixed_precision_cpu = 1
  expected = train(ADAM, tf.ConfigProto())
  assert not train(ADAM, session)[0].any()
  scaled = functools.partial(precision.scaled, ADAM)
  gradient, weights = train(scaled, session)
  assert 1e-5 < distance(gradient, expected[0]) < 2e-3
  assert distance(weights, expected[1]) < 5e-3
  np.testing.assert_array_equal(train(scaled, tf.ConfigProto()), expected)


def test_float32_rewrites_nothing():
  assert rewritten('float32') == rewritten(None) == tf.ConfigProto()
  assert rewritten('float16') != tf.ConfigProto()


@pytest.mark.parametrize('start, moves', [(1e-3, True), (1e30, False)])
def test_scaled_updates_of_the_model(start, moves):
  """In the optimizer of the run; what overflows changes nothing."""
  weights = tf.get_variable('weights', initializer=np.float32([start]))
  optimizer = CustomOptimizer(
    functools.partial(precision.scaled, tf.train.AdamOptimizer, epsilon=1e-4),
    tf.constant(0),
    tf.constant(True),
    learning_rate=1e-3,
    clipping=1000.0,
  )
  loss = tf.reduce_sum(tf.square(weights))
  summary, norm = optimizer.maybe_minimize(tf.constant(True), loss)
  with graphs.session() as sess:
    _, norm = sess.run([summary, norm])
    assert np.isfinite(norm) == moves
    assert (sess.run(weights)[0] != np.float32(start)) == moves


@needs_bfloat16
def test_losses_are_sums_of_float32():
  """And of differences that are; gradients lose the last digits only.

  A value of bfloat16 between 8192 and 16384 is a multiple of 64.
  """
  random = np.random.RandomState(0)
  images = tf.constant(random.uniform(-0.5, 0.5, (2, 1, 64, 64, 3)))
  head = conv_ha.decoder(tf.ones([2, 1, 8]), [64, 64, 3])
  log_prob = head.log_prob(tf.cast(images, tf.float32))
  loss = -tf.reduce_mean(log_prob)
  gradient = tf.global_norm(tf.gradients(loss, tf.trainable_variables()))
  values = []
  for name in ('float32', 'bfloat16'):
    with tf.Session(config=rewritten(name)) as sess:
      tf.set_random_seed(0)
      sess.run([x.initializer for x in tf.trainable_variables()])
      values.append(sess.run([loss, gradient]))
  expected, found = np.array(values)
  assert 0 < abs(found[1] / expected[1] - 1) < 2e-3
  assert abs(found[0] - expected[0]) < 0.01
