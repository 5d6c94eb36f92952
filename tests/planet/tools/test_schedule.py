"""Schedules, against `planet/schedule.json`."""

import numpy as np
import pytest

from agents.tools.tf1 import tf
from planet.tools import schedule
from tests import golden, graphs

RECORDED = golden.load_json('planet/schedule')


def evaluate(name, steps, **kwargs):
  step = tf.placeholder(tf.int32, ())
  value = getattr(schedule, name)(step, **kwargs)
  assert value.shape.ndims == 0
  with graphs.session() as sess:
    return [sess.run(value, {step: x}).item() for x in steps]


@pytest.mark.parametrize('name', ['binary', 'linear', 'linear_reset'])
def test_recorded_tables(name):
  """Values over steps for some settings; binary exactly, others to 1e-6."""
  assert len(RECORDED[name]) >= 2
  for row in RECORDED[name]:
    kwargs = {k: v for k, v in row.items() if k not in ('steps', 'result')}
    values = evaluate(name, row['steps'], **kwargs)
    np.testing.assert_allclose(values, row['result'], 1e-6, err_msg=str(kwargs))


@pytest.mark.parametrize(
  'batch_size, after, every, until', [(5, 10, 10, 20), (3, 7, 4, -1)]
)
def test_binary_at_its_limits(batch_size, after, every, until):
  """Every single step around the limits, from the definition."""
  steps = range(3, 28)
  values = evaluate(
    'binary',
    steps,
    batch_size=batch_size,
    after=after,
    every=every,
    until=until,
  )
  assert values == [
    x >= after and (x - after) % every < batch_size and (until < 0 or x < until)
    for x in steps
  ]


@pytest.mark.parametrize(
  'name, kwargs',
  [
    ('linear', dict(ramp=5, min=0.7, max=0.2)),
    ('linear', dict(ramp=5, min=1.5)),
    ('linear', dict(ramp=5, max=1.5)),
    ('linear_reset', dict(ramp=10, after=0, every=10)),
  ],
)
def test_impossible_arguments(name, kwargs):
  with pytest.raises(ValueError, match='use'):
    getattr(schedule, name)(tf.constant(0), **kwargs)


def test_maximum_alone():
  """The original failed without a minimum."""
  values = evaluate('linear', (0, 5, 10), ramp=10, max=0.75)
  assert values == [0, 0.5, 0.75]
