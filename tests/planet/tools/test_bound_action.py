"""Bounded actions and their gradients."""

import pytest

from agents.tools.tf1 import tf
from planet.tools.bound_action import bound_action
from tests import golden, graphs


@pytest.mark.parametrize('strategy', ['none', 'clip', 'tanh'])
def test_recorded_values_and_gradients(strategy):
  """`planet/bound_action`: gradients pass clipping unchanged; rtol 1e-5."""
  data = golden.load('planet/bound_action')
  action = tf.constant(data['in/action'])
  value = bound_action(action, strategy)
  grad = tf.gradients(value, action, tf.constant(data['in/grad_out']))[0]
  outputs = graphs.evaluate(dict(value=value, grad=grad))
  golden.assert_all_close(outputs, data.below('out/' + strategy))


def test_other_strategies_are_refused():
  with pytest.raises(NotImplementedError, match='other'):
    bound_action(tf.zeros([1]), 'other')
