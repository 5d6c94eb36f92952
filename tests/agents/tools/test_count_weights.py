"""Numbers of trainable parameters."""

import pytest

from agents.tools import count_weights
from agents.tools.tf1 import tf


@pytest.fixture
def variables():
  """22 weights: 6 outside, 10 in foo, 2 in foo/bar, 4 in foobar."""
  tf.get_variable('a', (3, 2))
  with tf.variable_scope('foo'):
    tf.get_variable('b', (5, 2))
    with tf.variable_scope('bar'):
      tf.get_variable('c', (1, 2))
  with tf.variable_scope('foobar'):
    tf.get_variable('d', (4,))
  tf.get_variable('fixed', (9,), trainable=False)


@pytest.mark.parametrize(
  'kwargs, expected',
  [
    (dict(), 22),
    (dict(scope='foo'), 12),
    (dict(scope='foo/'), 12),
    (dict(scope='foo/bar'), 2),
    (dict(scope='bar'), 0),
    (dict(exclude='.*'), 0),
    (dict(exclude='foo'), 6),
    (dict(exclude='.*/bar/.*'), 20),
  ],
)
def test_counts(variables, kwargs, expected):
  """Scopes need their whole path; `foo` is not `foobar`."""
  assert count_weights(**kwargs) == expected


def test_other_graph(variables):
  graph = tf.get_default_graph()
  with tf.Graph().as_default():
    assert count_weights() == 0
    assert count_weights(graph=graph) == 22
