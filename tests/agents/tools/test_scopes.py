"""Variables that are read afresh within loops."""

from agents.tools import scopes
from agents.tools.tf1 import tf
from tests import graphs


def count_in_loop(scope):
  """Read a variable, created within a scan, after each of three additions."""

  def body(unused_last, unused_index):
    with scope:
      count = tf.get_variable('count', (), initializer=tf.zeros_initializer())
    with tf.control_dependencies([count.assign_add(1.0)]):
      return tf.identity(count)

  return tf.scan(body, tf.range(3), tf.constant(0.0), parallel_iterations=1)


def test_uncached_scope_sees_assignments():
  """Regression: loops cache variables, so that policies stay stale.

  The same with a usual scope shows that the trap is real.
  """
  fresh = count_in_loop(scopes.uncached_scope('fresh'))
  stale = count_in_loop(tf.variable_scope('stale', use_resource=True))
  with graphs.session() as sess:
    assert sess.run([fresh, stale])[0].tolist() == [1, 2, 3]
    fresh, stale = sess.run([fresh, stale])
  assert fresh.tolist() == [4, 5, 6]
  assert stale.tolist() == [3, 3, 3]


def test_default_name_is_made_unique():
  for _ in range(2):
    with scopes.uncached_scope(None, 'mean'):
      tf.get_variable('x', ())
  assert [x.op.name for x in tf.global_variables()] == ['mean/x', 'mean_1/x']
