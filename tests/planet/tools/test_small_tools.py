"""Partial calls, shapes, counting of files, and copies of networks."""

import pickle
import types

import numpy as np
import pytest

from agents.tools.tf1 import tf
from planet.tools.bind import bind
from planet.tools.copy_weights import soft_copy_weights
from planet.tools.count_dataset import count_dataset
from planet.tools.reshape_as import reshape_as
from planet.tools.shape import shape
from planet.tools.target_network import track_network
from tests import graphs


def collect(*args, **kwargs):
  return args, kwargs


def test_bind():
  """Later arguments follow, later keywords win; it can be pickled."""
  bound = pickle.loads(pickle.dumps(bind(collect, 1, a=2, b=3)))
  assert bound(4, b=5, c=6) == ((1, 4), dict(a=2, b=5, c=6))
  assert bound() == ((1,), dict(a=2, b=3))


def test_bound_functions_reach_processes_of_environments():
  """Where importing `planet.tools` would load TensorFlow."""
  assert b'planet' not in pickle.dumps(bind(bind(len), [1]))


def test_bind_has_a_name():
  """Also if it binds what is bound already (the original failed)."""
  bound = bind(bind(collect, 1), b='x')
  assert bound.__name__ == 'collect'
  assert bound() == ((1,), dict(b='x'))
  assert 'collect' in repr(bound)


def test_shape_and_reshape_as():
  """Numbers where known, tensors where not; nested structures as well."""
  reference = tf.placeholder(tf.float32, [None, 3])
  rows, columns = shape(reference)
  assert isinstance(rows, tf.Tensor) and columns == 3
  flat = tf.placeholder(tf.int32, [None])
  structure = reshape_as({'a': flat, 'b': (flat,)}, reference)
  assert structure['a'].shape.as_list() == [None, 3]
  feed = {reference: np.zeros((2, 3)), flat: np.arange(6)}
  rows, structure = graphs.evaluate([rows, structure], feed)
  assert rows == 2
  assert structure['b'][0].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_count_dataset(tmp_path):
  """Files are counted at the time of execution."""
  count = count_dataset(str(tmp_path))
  with graphs.session() as sess:
    assert sess.run(count) == 0
    for name in ('a.npz', 'b.npz', 'c.npz.damaged'):
      (tmp_path / name).touch()
    assert sess.run(count) == 2
  with pytest.raises(ValueError, match='does not exist'):
    count_dataset(str(tmp_path / 'missing'))


def make_networks():
  for scope, value in (('one', 0.0), ('two', 8.0)):
    with tf.variable_scope(scope):
      tf.get_variable('x', initializer=tf.fill([2], value))
  return tf.trainable_variables()


def test_soft_copy():
  """The target moves by a fraction of the distance."""
  variables = make_networks()
  with graphs.session() as sess:
    sess.run(soft_copy_weights('two/', 'one/', 0.25))
    assert [x.tolist() for x in sess.run(variables)] == [[2, 2], [8, 8]]
  tf.get_variable('one/y', (3,))
  with pytest.raises(ValueError, match='differ in number or shape'):
    soft_copy_weights('two/', 'one/', 0.25)


@pytest.mark.parametrize('patterns', [('tow/', 'one/'), ('two/', 'ono/')])
def test_soft_copy_of_nothing(patterns):
  """A pattern that matches nothing is an error, also if both do not."""
  make_networks()
  wrong = 'tow/' if 'tow/' in patterns else 'ono/'
  with pytest.raises(ValueError, match=f'Pattern {wrong!r} matches none of'):
    soft_copy_weights(*patterns, 0.25)
  with pytest.raises(ValueError, match='matches none of'):
    soft_copy_weights('three/', 'four/', 0.25)


def test_track_network():
  """Whole at global step 0, then now and then in the training phase."""
  variables = make_networks()
  trainer = types.SimpleNamespace(
    global_step=tf.placeholder(tf.int64, ()),
    step=tf.placeholder(tf.int32, ()),
    phase=tf.placeholder(tf.string, ()),
  )
  update = track_network(trainer, 5, 'two/', 'one/', every=10, amount=0.5)
  keys = (trainer.global_step, trainer.step, trainer.phase)
  with graphs.session() as sess:
    for row, expected in (
      ((15, 5, 'train'), 0),
      ((20, 10, 'test'), 0),
      ((20, 10, 'train'), 4),
      ((30, 20, 'train'), 6),
      ((0, 0, 'test'), 8),
    ):
      sess.run(update, dict(zip(keys, row)))
      assert sess.run(variables[0]).tolist() == [expected] * 2, row
