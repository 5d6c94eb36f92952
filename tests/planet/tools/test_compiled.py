"""Loops compiled by XLA, against those of TensorFlow."""

import numpy as np
import pytest

from agents.tools import nested
from agents.tools.tf1 import tf
from planet import models
from planet.control import planning
from planet.tools import compiled, unroll
from tests.planet.scripts import training_runs

MODELS = {
  'rssm': lambda: models.RSSM(4, 6, 5, mean_only=True),
  'ssm': lambda: models.SSM(4, 5, mean_only=True),
}


@pytest.mark.parametrize(
  'length, name',
  [
    (3, 'rssm'),
    pytest.param(3, 'ssm', marks=pytest.mark.slow),
    pytest.param(2, 'rssm', marks=pytest.mark.slow),
  ],
)
def test_closed_loop(name, length, monkeypatch):
  """States and gradients, in programs of two steps and a rest."""
  monkeypatch.setattr(compiled, '_STEPS', 2)
  random = np.random.RandomState(0)
  embedded = tf.constant(random.normal(size=(3, length, 7)), tf.float32)
  action = tf.constant(random.normal(size=(3, length, 2)), tf.float32)
  with tf.variable_scope('model', use_resource=True):
    cell = MODELS[name]()
    found = compiled.closed_loop(cell, embedded, action)
    weights = tf.trainable_variables()
    expected = unroll.closed_loop(cell, embedded, action)
  assert tf.trainable_variables() == weights
  # So that checkpoints fit both.
  assert all(x.op.name.startswith('model/rnn/') for x in weights)
  pairs = []
  for states in (found, expected):
    flat = nested.flatten(states)
    loss = tf.add_n([tf.reduce_sum(tf.sin(x)) for x in flat])
    pairs.append([*flat, *tf.gradients(loss, [embedded, *weights])])
  with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for x, y in zip(*sess.run(pairs)):
      np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)


class Sum:
  """Model whose state is the sum of the actions."""

  state_size = {'sample': 1}

  def step(self, obs, action, use_obs, state):
    state = {'sample': state['sample'] + action}
    return (state, state), state


def test_planner_within_a_loop():
  """Finds the best plan from the state of each step."""

  def objective(states):
    return -tf.reduce_sum((states['sample'] - 0.5) ** 2, [1, 2])

  planner = compiled.planner(planning.cross_entropy_method)

  def step(state):
    plan = planner(
      Sum(), objective, {'sample': state}, [1], [1], horizon=2, graph=None
    )
    return state + plan[:, 0]

  states = tf.scan(lambda state, _: step(state), tf.range(3), tf.zeros([2, 1]))
  with tf.Session() as sess:
    np.testing.assert_allclose(
      sess.run(states), np.full((3, 2, 1), 0.5), atol=0.05
    )


@pytest.mark.slow
def test_training(tmp_path):
  """A compiled run continues without, and the reverse."""
  for steps, xla in ((20, True), (40, False), (60, True)):
    result = training_runs.train(tmp_path, {'xla': xla, 'max_steps': steps})
    assert result.code == 0, result.output
  assert 'xla: False -> True' in result.output
