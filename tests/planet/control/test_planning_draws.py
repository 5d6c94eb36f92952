"""The planner with its own draws, watched through the states it reaches."""

import numpy as np
import pytest
from scipy import stats

from agents.tools.tf1 import tf
from planet.control import planning
from tests import golden, graphs
from tests.planet.control import toy

AMOUNT, HORIZON, SIZE, TOPK, ITERATIONS = 300, 6, 2, 30, 4


def run(**kwargs):
  """Plan for two environments.

  Returns:
    Final mean, and per iteration the candidates [2, amount, horizon, size],
    origins [2, amount] and returns [2, amount].
  """
  records = []

  def record(actions, origins, returns):
    records.append(
      (
        actions.reshape(2, AMOUNT, HORIZON, SIZE).astype(float),
        origins[:, 0].reshape(2, AMOUNT),
        returns.reshape(2, AMOUNT).copy(),
      )
    )
    return returns

  def objective(state):
    returns = toy.objective(state)
    watched = tf.py_func(
      record, [state['action'], state['origin'], returns], tf.float32
    )
    watched.set_shape(returns.shape)
    return watched

  mean = planning.cross_entropy_method(
    toy.make_cell(),
    objective,
    toy.make_state([0, 1]),
    (3,),
    (SIZE,),
    HORIZON,
    None,
    AMOUNT,
    TOPK,
    ITERATIONS,
    **kwargs,
  )
  return graphs.evaluate(mean), records


def fit(actions, returns):
  """Mean and deviation of the best candidates of each environment."""
  best = np.argsort(-returns, 1)[:, :TOPK]
  chosen = np.take_along_axis(actions, best[:, :, None, None], 1)
  return chosen.mean(1), np.sqrt(chosen.var(1) + 1e-6)


@pytest.fixture(scope='module')
def unbounded():
  """Run whose candidates are not clipped, so that noise can be read off."""
  tf.reset_default_graph()
  tf.set_random_seed(1)
  return run(min_action=-1e3, max_action=1e3)


def test_noise_is_standard_normal(unbounded):
  """Fresh for every iteration, environment, candidate and step.

  Kolmogorov-Smirnov at 1e-5 and correlations at five standard errors; the
  seed is fixed.
  """
  center, spread = np.zeros((2, HORIZON, SIZE)), np.ones((2, HORIZON, SIZE))
  noises = []
  for actions, _, returns in unbounded[1]:
    noise = (actions - center[:, None]) / spread[:, None]
    assert stats.kstest(noise.ravel(), 'norm').pvalue > 1e-5
    noises.append(noise)
    center, spread = fit(actions, returns)
  noises = np.array(noises)
  for one, two in (
    (noises[1:], noises[:-1]),
    (noises[:, 0], noises[:, 1]),
    (noises[:, :, 0::2], noises[:, :, 1::2]),
    (noises[..., 1:, :], noises[..., :-1, :]),
    (noises[..., 0], noises[..., 1]),
  ):
    correlation = np.corrcoef(one.ravel(), two.ravel())[0, 1]
    assert abs(correlation) < 5 / np.sqrt(one.size)


def test_mean_is_that_of_the_best(unbounded):
  """Of the candidates of the last iteration, rtol 1e-4."""
  mean, records = unbounded
  assert len(records) == ITERATIONS
  actions, _, returns = records[-1]
  expected = fit(actions, returns)[0].astype(np.float32)
  golden.assert_close(mean, expected, **golden.MODEL)


def test_candidates_begin_in_their_own_environment(unbounded):
  """Rows of one environment come after another: 0, 0, ..., 1, 1, ..."""
  for _, origins, _ in unbounded[1]:
    assert (origins[0] == 0).all() and (origins[1] == 1).all()


def test_candidates_are_clipped():
  """Those beyond the bounds lie exactly on them, and the mean is theirs."""
  mean, records = run()
  for actions, _, _ in records:
    assert np.abs(actions).max() == 1
  # A standard normal draw leaves [-1, 1] with a probability of 0.317.
  assert abs((np.abs(records[0][0]) == 1).mean() - 0.317) < 0.03
  actions, _, returns = records[-1]
  expected = fit(actions, returns)[0].astype(np.float32)
  golden.assert_close(mean, expected, **golden.MODEL)
