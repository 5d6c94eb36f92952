"""Sequences of states of a model."""

import functools

import numpy as np

from agents.tools.tf1 import tf
from planet import models
from planet.control import planning
from planet.tools import unroll
from tests import graphs


def test_a_plan_follows_what_was_observed():
  """The best of the candidates, of which there are as many as wanted."""
  amounts = []

  def objective(state):
    amounts.append(state['sample'].shape.as_list()[0])
    return tf.reduce_sum(state['sample'], [1, 2])

  cell = models.RSSM(4, 3, 3)
  planner = functools.partial(
    planning.cross_entropy_method, graph=None, topk=2, iterations=2
  )
  embedded, action = tf.ones([2, 5, 6]), tf.ones([2, 5, 1])
  state, plan = unroll.planned(
    cell, objective, embedded, action, planner, context=3, length=4, amount=7
  )
  with graphs.session() as sess:
    sess.run(tf.global_variables_initializer())
    state, plan = sess.run([state, plan])
  assert plan.shape == (2, 4, 1) and (np.abs(plan) <= 1).all()
  assert state['sample'].shape == (2, 3 + 4, 4)
  assert np.isfinite(state['sample']).all() and set(amounts) == {2 * 7}
