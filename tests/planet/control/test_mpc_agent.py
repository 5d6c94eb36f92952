"""Agents that plan: what they remember, and how they explore."""

import types

import numpy as np

from agents.tools.tf1 import tf
from planet import models
from planet.control import MPCAgent
from planet.tools.attr_dict import AttrDict
from tests import graphs


class SumCell(models.Base):
  """State that adds up observations and actions; nothing to learn."""

  state_size = dict(sum=2)

  def __init__(self):
    super().__init__(self._advance, self._advance)

  def _advance(self, state, action, obs):
    return dict(sum=state['sum'] + action + obs)


class Batch(types.SimpleNamespace):
  """Some environments with actions of size two."""

  def __len__(self):
    return self.count

  @property
  def action(self):
    return tf.zeros([self.count, 2])


def make_agent(count, plan, step=0, **config):
  """Agent that acts by a function of the sum in its state."""
  config = {
    'cell': SumCell(),
    'encoder': lambda obs: obs['image'],
    'preprocess_fn': lambda observ: observ * 10,
    'objective': None,
    'exploration': None,
    'planner': plan,
    **config,
  }
  batch = Batch(count=count)
  return MPCAgent(batch, tf.constant(step), False, False, AttrDict(config))


def follow_state(cell, objective, state, obs_shape, action_shape):
  """Plan that begins with a hundredth of the state."""
  assert (obs_shape, action_shape) == ([2], [2])
  return tf.tile(state['sum'][:, None] / 100, [1, 3, 1])


def test_memory():
  """States and actions are kept by row; beginning an episode clears rows.

  Sums are 10 times the observation, plus the last action.
  """
  agent = make_agent(3, follow_state)
  observ = tf.ones([3, 2])
  act, summary = agent.perform(tf.range(3), observ)
  act_first, _ = agent.perform(tf.constant([1]), observ[:1])
  begin = agent.begin_episode(tf.constant([0, 2]))
  with graphs.session() as sess:
    assert sess.run(summary) == b''
    sess.run(tf.local_variables_initializer())
    np.testing.assert_allclose(sess.run(act), np.full((3, 2), 0.1), 1e-6)
    np.testing.assert_allclose(sess.run(act_first), [[0.201] * 2], 1e-6)
    assert sess.run(begin) == b''
    actions = sess.run(act)
  # The sums are now 10, 10 + 10.1 + 10.201 and 10.
  expected = [[0.1] * 2, [0.30301] * 2, [0.1] * 2]
  np.testing.assert_allclose(actions, expected, 1e-5)


def test_memory_is_not_saved():
  make_agent(3, follow_state)
  assert not tf.global_variables()
  names = [x.op.name for x in tf.local_variables()]
  assert names == [
    'agent_temporary/state_0',
    'agent_temporary/prev_action_var',
  ]


def test_exploration():
  """Noise around the plan, its scale by schedule; remembered as clipped."""
  agent = make_agent(
    4000,
    lambda *unused: tf.fill([4000, 1, 2], 0.4),
    step=2,
    exploration=AttrDict(
      scale=0.1, schedule=lambda step: tf.cast(step, tf.float32)
    ),
  )
  action, _ = agent.perform(tf.range(4000), tf.zeros([4000, 2]))
  memory = tf.local_variables()[-1]
  with graphs.session() as sess:
    action = sess.run(action)
    np.testing.assert_array_equal(sess.run(memory), action)
  assert action.max() == 1 and action.min() < -0.1
  assert abs(action.mean() - 0.4) < 0.01
  assert abs(action.std() - 0.2) < 0.01


def test_warm_start():
  """Plans begin with the rest of the last one, and zero at its end."""
  starts = []

  def planner(*unused, initial_mean):
    starts.append(initial_mean)
    return initial_mean + tf.constant([[[0.1], [0.2], [0.3]]])

  agent = make_agent(2, planner, warm_start=3)
  action, _ = agent.perform(tf.range(2), tf.zeros([2, 2]))
  begin = agent.begin_episode(tf.constant([1]))
  with graphs.session() as sess:
    rows = [sess.run([starts[0], action]) for _ in range(2)]
    sess.run(begin)
    rows.append(sess.run([starts[0], action]))
  plans = [start[:, :, 0] for start, _ in rows]
  np.testing.assert_allclose(plans[0], np.zeros((2, 3)))
  np.testing.assert_allclose(plans[1], [[0.2, 0.3, 0]] * 2, 1e-6)
  np.testing.assert_allclose(plans[2], [[0.5, 0.3, 0], [0, 0, 0]], 1e-6)
  np.testing.assert_allclose(rows[2][1][:, 0], [0.6, 0.1], 1e-6)
