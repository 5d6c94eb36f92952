"""Policies and values, against recorded weights and outputs."""

import numpy as np
import pytest

from agents.tools.tf1 import tf
from tests import golden, graphs
from tests.agents.ppo import recorded

both = pytest.mark.parametrize('name', ['feed_forward', 'recurrent'])


def build(name, **settings):
  data = golden.load(f'ppo/{name}_gaussian')
  network = recorded.define_network(data, name == 'recurrent', **settings)
  return data, network, tf.constant(data['observations'])


@both
def test_outputs(name):
  """`ppo/<name>_gaussian`: mean, logstd, value, density; atol 5e-6."""
  data, network, observ = build(name)
  output = network(observ, tf.constant(data['length']))
  fetches = {
    'mean': output.mean,
    'logstd': output.logstd,
    'value': output.value,
    'log_prob': output.policy.log_prob(tf.constant(data['action'])),
    'policy_mean': output.policy.mean(),
    'policy_std': output.policy.stddev(),
  }
  if name == 'recurrent':
    fetches['final_state_from_zero'] = output.state
    again = network(
      observ, tf.constant(data['length']), tf.constant(data['initial_state'])
    )
    fetches.update(
      mean_with_state=again.mean,
      final_state_with_state=again.state,
      value_with_state=again.value,
    )
  else:
    assert output.state is None
    assert network(observ, None, 'as it is').state == 'as it is'
  with graphs.session() as sess:
    recorded.load(sess, recorded.pair_weights(recorded.below(data, 'weight_')))
    for key, value in sess.run(fetches).items():
      golden.assert_close(value, data[key], name=key, **recorded.NETWORK)


def test_lengths_as_floats():
  """As the algorithm passes them for single steps."""
  data, network, observ = build('recurrent')
  length = tf.constant(data['length'])
  means = [network(observ, x).mean for x in (length, tf.to_float(length))]
  one, two = graphs.evaluate(means)
  np.testing.assert_array_equal(one, two)


@both
def test_samples(name):
  """Standardised samples have mean 0 and deviation 1, to 5 sigma."""
  data, network, observ = build(name)
  output = network(observ, tf.constant(data['length']))
  noise = (output.policy.sample() - output.mean) / tf.exp(output.logstd)
  with graphs.session() as sess:
    noise = np.array([sess.run(noise) for _ in range(300)])
  error = 5 / np.sqrt(noise.size)
  assert abs(noise.mean()) < error and abs(noise.std() - 1) < error


@both
def test_initial_weights(name):
  """Glorot uniform weights, small means, given logstd, gates that keep."""
  sizes = dict(
    policy_layers=np.array([200, 100]),
    value_layers=np.array([200, 100]),
    action_size=np.array(40),
  )
  network = recorded.define_network(
    sizes, name == 'recurrent', init_mean_factor=0.2, init_logstd=-0.7
  )
  network(tf.zeros([2, 3, 26]), tf.ones([2]))
  with graphs.session() as sess:
    values = {x.op.name: sess.run(x) for x in tf.trainable_variables()}
  sigma = np.sqrt(1.3 * 0.2 / 100)
  for key, value in values.items():
    if key.endswith('logstd'):
      golden.assert_close(value, np.float32([-0.7] * 40))
    elif value.ndim == 1:
      assert np.all(value == (1 if key.endswith('b_ru') else 0)), key
    elif value.shape == (100, 40):
      assert np.abs(value).max() <= 2.001 * sigma
      # Deviation of a normal that is cut at two sigma.
      assert value.std() == pytest.approx(0.8796 * sigma, rel=0.05)
    else:
      limit = np.sqrt(6 / sum(value.shape))
      assert 0.9 * limit < np.abs(value).max() <= 1.0001 * limit
      rel = 0.05 if value.size > 1000 else 0.3
      assert value.std() == pytest.approx(limit / np.sqrt(3), rel=rel)


def test_images_are_flattened():
  _, network, _ = build('feed_forward')
  output = network(tf.zeros([2, 3, 4, 5]), None)
  assert output.mean.shape.as_list() == [2, 3, 2]
  assert tf.trainable_variables()[0].shape.as_list() == [20, 6]
