"""Running mean and deviation, against `ppo/streaming_normalize`."""

import threading
from concurrent import futures

import numpy as np
import pytest

from agents.ppo import normalize
from agents.ppo.normalize import StreamingNormalize
from agents.tools.tf1 import tf
from tests import golden, graphs
from tests.agents.ppo import recorded

# Center, scale, clip, prefix of the recorded inputs.
VARIANTS = {
  'observ': (True, True, 5, ''),
  'reward_like': (False, True, 10, ''),
  'center_only': (True, False, None, ''),
  'scalar': (False, True, 10, 'scalar_'),
  'constant': (False, True, 10, 'constant_'),
}
# Sums of squares of differences that cancel.
LOOSE = dict(rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize('name', VARIANTS)
def test_recorded_stream(name):
  """State, normalized values and summaries after each update; rtol 1e-5."""
  data, (*settings, prefix) = golden.load(STREAM), VARIANTS[name]
  expected = data.below(name)
  probe = data['scalar_probe' if prefix else 'probe']
  normalize = StreamingNormalize(tf.zeros(probe.shape[1:]), *settings)
  state = recorded.filter_variables('normalize')
  inputs = [data[x] for x in data if x.startswith(prefix + 'update')]
  updates = [normalize.update(tf.constant(x)) for x in inputs]
  transforms = [
    normalize.transform(tf.constant(probe)),
    normalize.transform(tf.constant(probe[0])),
  ]
  summary, reset = normalize.summary(), normalize.reset()
  with graphs.session() as sess:
    golden.assert_close(
      sess.run(transforms[0]), expected['transform_before_any_update']
    )
    assert sess.run(summary) == b''
    for index, update in enumerate(updates):
      written = recorded.scalars(sess.run(update))
      assert list(written) == ['value']
      golden.assert_close(written['value'], inputs[index].mean(dtype=float))
      for key, value in zip(('count', 'mean', 'var_sum'), sess.run(state)):
        golden.assert_close(value, expected[f'{key}{index}'], **LOOSE)
      for key, value in zip(
        ('transform', 'transform_single'), sess.run(transforms)
      ):
        golden.assert_close(value, expected[f'{key}{index}'], **LOOSE)
      check_summary(sess.run(summary), expected, index)
    sess.run(reset)
    assert not any(x.any() for x in sess.run(state))


STREAM = 'ppo/streaming_normalize'


def check_summary(summary, expected, index):
  """Mean from the first value on, deviation from the second."""
  found = {**recorded.scalars(summary), **recorded.histograms(summary)}
  wanted = {'mean': expected[f'mean{index}']}
  if expected[f'count{index}'] > 1:
    wanted['stddev'] = expected[f'std{index}']
  assert sorted(found) == sorted(wanted)
  for key, value in wanted.items():
    if np.ndim(value):
      value = [value.min(), value.max(), value.sum(dtype=float), value.size]
    golden.assert_close(found[key], np.asarray(value, float), **LOOSE)


def test_scaled_from_the_second_value_on():
  """Closed form: values 1 and 4 have the mean 2.5 and the variance 4.5."""
  normalize = StreamingNormalize(tf.zeros([1]), True, True, None)
  value = tf.placeholder(tf.float32, [1])
  update, transform = normalize.update(value), normalize.transform(value)
  with graphs.session() as sess:
    sess.run(update, {value: [1]})
    assert sess.run(transform, {value: [8.5]}) == [7.5]
    sess.run(update, {value: [4]})
    result = sess.run(transform, {value: [8.5]})
  golden.assert_close(result, [6 / (np.sqrt(4.5 + 1e-4) + 1e-8)])


def test_values_have_to_be_finite():
  transform = StreamingNormalize(tf.zeros([])).transform(tf.constant([np.nan]))
  with pytest.raises(tf.errors.InvalidArgumentError):
    graphs.evaluate(transform)


class Ranks:
  """Communicator of one of two ranks, which are threads."""

  barrier, values = threading.Barrier(2, timeout=60), [None, None]

  def __init__(self, rank):
    self._rank = rank

  def Get_size(self):
    return 2

  def Allreduce(self, source, target):
    self.values[self._rank] = source.copy()
    self.barrier.wait()
    target[...] = self.values[0] + self.values[1]
    self.barrier.wait()


def test_values_of_several_processes():
  """After a merge, all have the statistics of a single process."""
  values = np.random.RandomState(0).normal(30, 2, (4, 2, 4, 5))
  values = tf.constant(values, tf.float32)
  single = StreamingNormalize(tf.zeros([5]), name='single')
  own = [StreamingNormalize(tf.zeros([5]), name=f'rank{x}') for x in range(2)]
  probe = tf.constant([[1.0, 2, 3, 4, 5]]) + 28
  count = [
    [own[rank].update(values[time, rank]) for time in range(4)]
    for rank in range(2)
  ]
  together = [
    single.update(tf.concat([x[0], x[1]], 0))
    for x in [values[time] for time in range(4)]
  ]
  merge = [normalize.merge([own[x]], Ranks(x)) for x in range(2)]
  mark = [x.mark() for x in own]
  transforms = [x.transform(probe) for x in (single, *own)]
  # Each rank keeps a thread waiting for the other one.
  with graphs.session(8) as sess, futures.ThreadPoolExecutor(2) as pool:
    # What was there before, as after a restart, counts once.
    sess.run([x.update(values[0, 0]) for x in (single, *own)])
    sess.run(mark)
    # Three steps, a merge, another step, and another merge.
    for times in ((0, 1, 2), (3,)):
      for time in times:
        sess.run([count[0][time], count[1][time], together[time]])
      list(pool.map(sess.run, merge))
      wanted, *found = sess.run(transforms)
      for other in found:
        np.testing.assert_allclose(other, wanted, 1e-3, 1e-4)
