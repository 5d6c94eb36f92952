"""Predictions over all distances, against `planet/overshooting`."""

import numpy as np
import pytest

from agents.tools.tf1 import tf
from planet.tools import unroll
from planet.tools.overshooting import overshooting
from tests import golden
from tests import graphs


def define(name):
  """Cell and results for a recorded case.

  `full` gives all steps, `var` some of them; `given` passes the posterior of
  a closed loop, `none` lets it be computed and aligns a target as well.
  """
  data = golden.load('planet/overshooting')
  cell = graphs.make_cell(data.meta)
  embedded = tf.constant(data['in/embedded'])
  action = tf.constant(data['in/prev_action'])
  length = tf.constant(data['in/length'])
  posterior = None
  target = {'x': tf.constant(data['in/target/x'])}
  if name.endswith('given'):
    _, posterior = unroll.closed_loop(cell, embedded, action)
    target = {}
  if name.startswith('full'):
    length = tf.fill([2], tf.shape(action)[1])
  return overshooting(
    cell, target, embedded, action, length, int(data['cfg/amount']), posterior
  )


@pytest.mark.parametrize(
  'name',
  [
    'fulllen_posterior_given',
    'varlen_posterior_given',
    'varlen_posterior_none',
  ],
)
def test_recorded_predictions(name):
  """Targets, priors, posteriors and mask; MODEL, padding exactly zero."""
  data = golden.load('planet/overshooting')
  outputs = define(name)
  pairs = graphs.pair_weights(graphs.cell_roles(data.meta))
  with graphs.session() as sess:
    graphs.load_weights(sess, data, pairs)
    *parts, mask = sess.run(outputs)
  expected = data.below('out/' + name)
  np.testing.assert_array_equal(mask, expected['mask'])
  for part, values in zip(('target', 'prior', 'posterior'), parts):
    recorded = data.below(f'out/{name}/{part}')
    golden.assert_all_close(values, recorded, **golden.MODEL)
    for value in values.values():
      assert (value[~mask] == 0).all()


def test_mask_counts_the_steps_that_are_left():
  """Entry (t, d) is valid if step t + d is."""
  data = golden.load('planet/overshooting')
  mask = graphs.evaluate(define('varlen_posterior_given')[-1])
  step, distance = np.indices(mask.shape[1:])
  for row, length in zip(mask, data['in/length']):
    np.testing.assert_array_equal(row, step + distance < length)
