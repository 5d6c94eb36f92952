"""Updates with clipping and filters, against `planet/optimizer`."""

import functools

import numpy as np
import pytest

from agents.tools.tf1 import tf
from planet.tools.custom_optimizer import CustomOptimizer
from planet.tools.filter_variables import filter_variables
from tests import golden, graphs


def define(name, **kwargs):
  """Variables, loss and settings of a recorded case.

  The loss is sum((a - ta)^2) + 2 sum(|b - tb|), plus a sum over a variable
  that does not match the filter.
  """
  data = golden.load('planet/optimizer')
  inputs = data.below('in/' + name)
  with tf.variable_scope('graph'):
    variables = [
      tf.get_variable(x, initializer=tf.constant(inputs[x[-1] + '0']))
      for x in ('main/a', 'main/b', 'other/b')
    ]
  a, b, other = variables
  loss = tf.reduce_sum((a - inputs['target_a']) ** 2)
  loss += 2 * tf.reduce_sum(tf.abs(b - inputs['target_b']))
  loss += tf.reduce_sum(other)
  epsilon = float(data['cfg/adam_epsilon'])
  settings = dict(
    learning_rate=float(data['cfg/learning_rate']),
    include=r'.*/main/.*',
    clipping=float(data[f'cfg/{name}/clipping']),
    name='main',
  )
  optimizer = CustomOptimizer(
    functools.partial(tf.train.AdamOptimizer, epsilon=epsilon),
    step=kwargs.pop('step', tf.constant(0)),
    log=kwargs.pop('log', tf.constant(True)),
    **{**settings, **kwargs},
  )
  return variables, loss, optimizer


@pytest.mark.parametrize('name', ['clipped', 'unclipped'])
def test_recorded_steps(name):
  """Three steps of Adam, and none while the condition is False; MODEL.

  The norm is that before clipping, rtol 1e-5. What the filter leaves out
  stays as it is.
  """
  data = golden.load('planet/optimizer')
  inputs, expected = data.below('in/' + name), data.below('out/' + name)
  variables, loss, optimizer = define(name)
  condition = tf.placeholder(tf.bool, ())
  update = optimizer.maybe_minimize(condition, loss)
  with graphs.session() as sess:
    summary, norm = sess.run(update, {condition: False})
    assert summary == b'' and norm == expected['grad_norm_condition_false']
    rows = []
    for _ in expected['grad_norms']:
      summary, norm = sess.run(update, {condition: True})
      a, b, other = sess.run(variables)
      rows.append((norm, a, b))
      np.testing.assert_array_equal(other, inputs['b0'])
  norms, a, b = [np.stack(x) for x in zip(*rows)]
  golden.assert_close(norms, expected['grad_norms'])
  golden.assert_close(a, expected['a'], **golden.MODEL)
  golden.assert_close(b, expected['b'], **golden.MODEL)
  values = tf.Summary.FromString(summary).value
  assert [x.tag.split('/')[-1] for x in values] == list(
    expected['summary_names']
  )
  golden.assert_close(
    [x.simple_value for x in values], expected['summary_values']
  )
  assert all('optimizer_main' in x.tag for x in values)


def test_nothing_is_done_while_the_condition_is_false():
  variables, loss, optimizer = define('clipped')
  before = golden.load('planet/optimizer')['in/clipped/a0']
  update = optimizer.maybe_minimize(tf.constant(False), loss)
  with graphs.session() as sess:
    sess.run(update)
    np.testing.assert_array_equal(sess.run(variables[0]), before)


@pytest.mark.parametrize('clipping', [None, 0])
def test_without_log_and_clipping(clipping):
  """No summary unless logged; no limit (the original fails on None)."""
  log = tf.placeholder(tf.bool, ())
  variables, loss, optimizer = define('clipped', log=log, clipping=clipping)
  update = optimizer.maybe_minimize(tf.constant(True), loss)
  with graphs.session() as sess:
    before = sess.run(variables[0])
    assert sess.run(update, {log: False})[0] == b''
    assert (sess.run(variables[0]) != before).any()
    summary = tf.Summary.FromString(sess.run(update, {log: True})[0])
  names = [x.tag.split('/')[-1] for x in summary.value]
  assert names == ['learning_rate', 'grad_norm']


def test_schedule_scales_the_learning_rate():
  """A factor of zero changes nothing; the summary shows the product."""
  step = tf.placeholder(tf.int32, ())
  variables, loss, optimizer = define(
    'clipped', step=step, schedule=lambda x: tf.cast(x, tf.float32)
  )
  update = optimizer.maybe_minimize(tf.constant(True), loss)
  with graphs.session() as sess:
    before = sess.run(variables[0])
    sess.run(update, {step: 0})
    np.testing.assert_array_equal(sess.run(variables[0]), before)
    summary = tf.Summary.FromString(sess.run(update, {step: 3})[0])
    assert (sess.run(variables[0]) != before).any()
  np.testing.assert_allclose(summary.value[0].simple_value, 0.03, 1e-6)


def test_debug_finds_what_is_not_finite():
  variables, _, optimizer = define('clipped', debug=True)
  loss = tf.reduce_sum(tf.log(variables[0] - variables[0]))
  update = optimizer.maybe_minimize(tf.constant(True), loss)
  with pytest.raises(tf.errors.InvalidArgumentError):
    graphs.evaluate(update)


def test_filter_variables():
  """Expressions match from the start of the names; errors name them."""
  with pytest.raises(RuntimeError, match='matches none'):
    filter_variables()
  for name in ('a', 'scope/a', 'scope/b'):
    tf.get_variable(name, ())
  names = lambda *args: [x.op.name for x in filter_variables(*args)]
  assert names() == ['a', 'scope/a', 'scope/b']
  assert names('a') == ['a']
  assert names(['a', '.*/b']) == ['a', 'scope/b']
  assert names(None, 'scope') == ['a']
  assert names('scope', ['.*a']) == ['scope/b']
  with pytest.raises(RuntimeError, match="'other'"):
    filter_variables(['a', 'other'])
  with pytest.raises(RuntimeError, match='left'):
    filter_variables('a', '.*')
