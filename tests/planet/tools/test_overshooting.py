"""Predictions over all distances, against `planet/overshooting`."""

import numpy as np
import pytest

from agents.tools.tf1 import tf
from planet import models
from planet.tools import unroll
from planet.tools.overshooting import overshooting
from tests import golden, graphs


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


class AddingCell(models.Base):
  """Adds actions to what it has observed; both are tuples of two tensors."""

  def __init__(self):
    super().__init__(self._transition, self._posterior)

  @property
  def state_size(self):
    return {'first': 1, 'second': 2}

  def _transition(self, prev_state, prev_action, zero_obs):
    assert [x.shape[-1].value for x in zero_obs] == [1, 2]
    return {
      'first': prev_state['first'] + prev_action[0],
      'second': prev_state['second'] + prev_action[1] + zero_obs[1],
    }

  def _posterior(self, prev_state, prev_action, obs):
    return {'first': obs[0], 'second': obs[1]}


def test_nested_observations_and_actions():
  """Tuples of tensors: entry (t, d) is the start plus the actions since."""
  first = np.float32([[10, 20, 30, 40], [50, 60, 0, 0]])[..., None]
  action = np.float32([[1, 2, 3, 4], [5, 6, 0, 0]])[..., None]
  embedded = (first, np.concatenate([first, -first], -1))
  prev_action = (action, np.concatenate([action, action], -1))
  _, prior, posterior, mask = graphs.evaluate(
    overshooting(
      AddingCell(),
      {},
      tuple(map(tf.constant, embedded)),
      tuple(map(tf.constant, prev_action)),
      tf.constant([4, 2]),
      2,
    )
  )
  assert mask[0].sum(-1).tolist() == [3, 3, 2, 1]
  assert mask[1].sum(-1).tolist() == [2, 1, 0, 0]
  expected = [[1, 3, 6], [12, 15, 19], [23, 27, 0], [34, 0, 0]]
  assert prior['first'][0, ..., 0].tolist() == expected
  assert prior['second'][0, ..., 0].tolist() == expected
  assert prior['second'][1, 0, :2].tolist() == [[5, 5], [11, 11]]
  assert posterior['second'][0, 1].tolist() == [[20, -20], [30, -30], [40, -40]]
