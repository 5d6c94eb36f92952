"""Functions of the graph, and what is run in sessions of one's own."""

import collections

import numpy as np
import pytest

from agents.tools.tf1 import tf
from baselines_her import ddpg, normalizer, rollout, tf_util
from tests.baselines_her import toy


def test_function_of_placeholders():
  """By place or by name; what is given counts where nothing is passed."""
  with tf.Graph().as_default():
    x = tf.placeholder(tf.int32, [], 'x')
    with tf.variable_scope('inner'):
      y = tf.placeholder(tf.int32, [], 'y')
    # Defined before there is a session, as in the original.
    function = tf_util.function([x, y], 3 * x + 2 * y, givens={y: 0})
    with toy.session():
      assert function(2) == 6
      assert function(2, 2) == function(2, y=2) == function(x=2, y=2) == 10
      with pytest.raises(AssertionError, match='3 arguments'):
        function(1, 2, 3)
      with pytest.raises(KeyError, match='z'):
        function(1, z=2)


def test_function_keeps_the_form_of_its_outputs():
  x = tf.placeholder(tf.float32, [None], 'x')
  outputs = collections.OrderedDict(double=2 * x, triple=3 * x)
  with toy.session():
    both = tf_util.function([x], list(outputs.values()))([1, 2])
    named = tf_util.function([x], outputs)([1, 2])
  assert isinstance(both, list) and isinstance(named, collections.OrderedDict)
  np.testing.assert_array_equal(both, [[2, 4], [3, 6]])
  np.testing.assert_array_equal(named['triple'], [3, 6])


def test_function_with_updates():
  count = tf.get_variable('count', initializer=0)
  change = tf.placeholder(tf.int32, [], 'change')
  add = tf_util.function([change], [], updates=[tf.assign_add(count, change)])
  with toy.session() as sess:
    tf_util.initialize()
    assert add(3) == [] and add(4) == []
    assert sess.run(count) == 7


def test_initialize_leaves_the_rest_alone():
  """Only variables without a value get their first one."""
  first = tf.get_variable('first', initializer=1.0)
  with toy.session() as sess:
    tf_util.initialize()
    first.load(5.0, sess)
    second = tf.get_variable('second', initializer=2.0)
    tf_util.initialize()
    assert sess.run([first, second]) == [5, 2]
  # Another session holds none of these values.
  with toy.session() as sess:
    tf_util.initialize()
    assert sess.run([first, second]) == [1, 2]


def test_in_session():
  """The session is there for the call and gone after it."""

  @tf_util.in_session
  def add(a, b=0):
    """Add two numbers."""
    assert tf_util.get_session() is tf.get_default_session()
    return tf_util.get_session().run(tf.constant(a) + b)

  # Programs that other tests have run in this process leave one of their own.
  before = tf.get_default_session()
  assert add(1, b=2) == 3 and add.__doc__ == 'Add two numbers.'
  assert tf.get_default_session() is before


def test_arguments_of_the_original(tmp_path):
  """Their names and order are those of Baselines."""
  path = str(tmp_path / 'weights')
  with toy.session() as sess:
    x = tf.get_variable('x', initializer=[3.0, 4.0])
    sess.run(x.initializer)
    tf_util.save_variables(save_path=path)
    x.load([0.0, 0.0], sess)
    tf_util.load_variables(load_path=path)
    place = tf.placeholder(tf.float32, [])
    assert tf_util.function([place], 2 * place, None, {})(3) == 6
    loss = tf.reduce_sum(x**2) / 2
    gradient = sess.run(tf_util.flatgrad(loss, [x], clip_norm=1.0))
    np.testing.assert_allclose(gradient, [0.6, 0.8], 1e-6)
    scaled = normalizer.IdentityNormalizer(2, std=2).normalize(x=x)
    np.testing.assert_allclose(sess.run(scaled), [1.5, 2])
  assert ddpg.dims_to_shapes({'o': 3, 'info_x': 1}) == {
    'o': (3,),
    'info_x': (1,),
  }
  env = toy.vec_env(3, [0])
  dims = {'o': 4, 'u': 2, 'g': 2}
  switches = True, False, False, 0, 0, 100
  # The last two are `render` and `monitor`.
  rollout.RolloutWorker(env, None, dims, None, 3, 1, *switches, False, True)


def test_flat_vectors():
  """The original's arguments: variables and their dtype."""
  with toy.session():
    parts = [tf.get_variable(x, [2], tf.float64) for x in 'ab']
    tf_util.SetFromFlat(parts, tf.float64)(np.arange(4.0))
    np.testing.assert_array_equal(tf_util.GetFlat(parts)(), np.arange(4.0))
