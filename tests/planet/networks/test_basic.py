"""Heads of dense layers, against `planet/feed_forward`."""

import pytest

from agents.tools.tf1 import tf
from planet.networks import feed_forward, vector
from tests import golden, graphs

META = golden.load('planet/feed_forward').meta


def define(name):
  """Head for the settings of a recorded case."""
  meta = META[name]
  kwargs = {
    key: meta[key]
    for key in ('data_shape', 'num_layers', 'units', 'std', 'dist')
    if key in meta
  }
  for key in ('activation', 'mean_activation'):
    if key in meta:
      kwargs[key] = getattr(tf.nn, meta[key])
  head = tf.make_template('head', feed_forward, **kwargs)
  return head(tf.constant(golden.load('planet/feed_forward')['in/state']))


@pytest.mark.parametrize('name', META)
def test_recorded_heads(name):
  """Mean, mode, deviation and log-probability, where they exist; MODEL."""
  data = golden.load('planet/feed_forward')
  dist = define(name)
  assert str(tuple(dist.batch_shape.as_list())) == META[name]['batch_shape']
  assert str(tuple(dist.event_shape.as_list())) == META[name]['event_shape']
  target = tf.constant(data['in/target/' + name])
  expected = data.below('out/' + name)
  outputs = {'log_prob': dist.log_prob(target)}
  for key in ('mean', 'mode', 'stddev'):
    if key in expected:
      outputs[key] = getattr(dist, key)()
    else:
      assert META[name][key + '_error'] == 'NotImplementedError'
      with pytest.raises(NotImplementedError):
        getattr(dist, key)()
  roles = [f'hidden{x}' for x in range(META[name]['num_layers'])] + ['mean']
  roles += ['std'] if META[name].get('std') == 'learned' else []
  pairs = graphs.pair_weights({'head': roles})
  with graphs.session() as sess:
    graphs.load_weights(sess, data, pairs, name + '/')
    values = sess.run(outputs)
  golden.assert_all_close(values, expected, **golden.MODEL)


def test_unknown_distribution():
  with pytest.raises(NotImplementedError, match='other'):
    feed_forward(tf.zeros([2, 3]), [2], dist='other')


def test_gradient_may_stop_at_the_features():
  state = tf.ones([2, 3])
  for stop in (True, False):
    dist = feed_forward(state, [], stop_gradient=stop)
    (gradient,) = tf.gradients(dist.mean(), state)
    assert (gradient is None) == stop
  assert tf.gradients(dist.mean(), tf.trainable_variables()[-1])[0] is not None


def test_output_layers_may_be_fixed():
  """Hidden layers stay trainable, as in the original."""
  feed_forward(
    tf.ones([2, 3]), [], num_layers=1, trainable=False, std='learned'
  )
  assert len(tf.trainable_variables()) == 2
  assert len(tf.global_variables()) == 6


def test_vector_encoder():
  obs = {'vector': tf.ones([2, 5, 3])}
  embedded = vector.encoder(obs, num_layers=2, units=7)
  assert embedded.shape.as_list() == [2, 5, 7]
  assert graphs.evaluate(embedded).min() >= 0
