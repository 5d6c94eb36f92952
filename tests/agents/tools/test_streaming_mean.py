"""Running means inside of the graph."""

import pytest

from agents.tools.streaming_mean import StreamingMean
from agents.tools.tf1 import tf
from tests import golden, graphs


def test_recorded_vectors():
  """`planet/streaming_mean`: value and count after each submit, rtol 1e-5.

  Submits are a batch, a single value, an empty batch and a batch. Clearing
  when empty gives NaN.
  """
  data = golden.load('planet/streaming_mean')
  mean = StreamingMean((2,), tf.float32, 'mean')
  submits = [mean.submit(data[f'in/submit{x}']) for x in range(4)]
  clear, value, count = mean.clear(), mean.value, mean.count
  with graphs.session() as sess:
    for index, submit in enumerate(submits):
      sess.run(submit)
      expected = data.below(f'out/after{index}')
      golden.assert_close(sess.run(value), expected['value'])
      assert sess.run(count) == expected['count']
    golden.assert_close(sess.run(clear), data['out/clear'])
    assert sess.run(count) == 0
    golden.assert_close(sess.run(clear), data['out/clear_when_empty'])


def test_recorded_scalars():
  """`ppo/streaming_mean`: three batches, a scalar, and clear, rtol 1e-5."""
  data = golden.load('ppo/streaming_mean')
  mean = StreamingMean((), tf.float32)
  submits = [mean.submit(data[f'in{x}']) for x in range(4)]
  clear, value, count = mean.clear(), mean.value, mean.count
  with graphs.session() as sess:
    for index in range(3):
      sess.run(submits[index])
      golden.assert_close(sess.run(value), data[f'value{index}'])
      assert sess.run(count) == data[f'count{index}']
    sess.run(submits[3])
    golden.assert_close(sess.run(clear), data['clear'])
    golden.assert_close(sess.run(value), data['value_after_clear'])
    assert sess.run(count) == data['count_after_clear']


def test_recorded_batch_of_vectors():
  """`ppo/streaming_mean`: a single vector, then a batch, rtol 1e-5."""
  data = golden.load('ppo/streaming_mean')
  mean = StreamingMean((3,), tf.float32)
  submits = [mean.submit(data[x]) for x in ('vec_in0', 'vec_in1')]
  clear = mean.clear()
  with graphs.session() as sess:
    for submit in submits:
      sess.run(submit)
    golden.assert_close(sess.run(clear), data['vec_clear'])


@pytest.mark.parametrize('shape', [(2, 3), (3,), (1, 1, 2)])
def test_other_shapes_are_refused(shape):
  with pytest.raises(ValueError):
    StreamingMean((2,), tf.float32).submit(tf.zeros(shape))


def test_variables_are_saved_and_named():
  """Means belong to checkpoints, under these names."""
  StreamingMean((), tf.float32, 'mean')
  assert [x.op.name for x in tf.global_variables()] == [
    'mean/sum',
    'mean/count',
  ]
  assert not tf.trainable_variables()
