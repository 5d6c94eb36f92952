"""Returns, advantages, divergences, nested variables, summaries."""

import logging

import numpy as np
import pytest

from agents.ppo import utility
from agents.tools.tf1 import tf
from tests import golden, graphs
from tests.agents.ppo import recorded

RETURNS = {
  'discounted_return': ('discounted_return', '', ()),
  'fixed_step_return': ('fixed_step_return', 'v', ('window',)),
  'fixed_step_return_window1': ('fixed_step_return', 'v', (1,)),
  'lambda_return': ('lambda_return', 'v', ('lambda_',)),
  'lambda_return_lambda1': ('lambda_return', 'v', (1.0,)),
  'lambda_advantage': ('lambda_advantage', 'v', ()),
  'lambda_advantage_with_gae_lambda': ('lambda_advantage', 'v', ('lambda_',)),
}


@pytest.mark.parametrize('key', RETURNS)
def test_returns(key):
  """`ppo/returns`, rtol 1e-5; no result has a gradient."""
  data = golden.load('ppo/returns')
  name, value, more = RETURNS[key]
  more = [data[x].item() if isinstance(x, str) else x for x in more]
  sequences = [tf.constant(data['reward'])]
  sequences += [tf.constant(data['value'])] if value else []
  result = getattr(utility, name)(
    *sequences, tf.constant(data['length']), float(data['discount']), *more
  )
  assert tf.gradients(result, sequences) == [None] * len(sequences)
  golden.assert_close(graphs.evaluate(result), data[key])


def test_returns_have_to_be_finite():
  result = utility.discounted_return(
    tf.constant([[1, np.nan]]), tf.constant([2]), 0.9
  )
  with pytest.raises(tf.errors.InvalidArgumentError, match='return'):
    graphs.evaluate(result)


@pytest.mark.parametrize('pair', ['01', '10', '00'])
def test_divergence(pair):
  """`ppo/diag_normal`; a difference of large sums, atol 5e-6."""
  data = golden.load('ppo/diag_normal')
  args = [tf.constant(data[k + i]) for i in pair for k in ('mean', 'logstd')]
  result = graphs.evaluate(utility.diag_normal_kl(*args))
  golden.assert_close(result, data['kl_' + '_'.join(pair)], atol=5e-6)


def test_log_density():
  data = golden.load('ppo/diag_normal')
  args = [tf.constant(data[k]) for k in ('mean0', 'logstd0', 'loc')]
  result = graphs.evaluate(utility.diag_normal_logpdf(*args))
  golden.assert_close(result, data['logpdf'])


def test_entropy():
  """Over the last axis; the original sums time when there is one."""
  data = golden.load('ppo/diag_normal')
  mean, logstd = [tf.constant(data[k]) for k in ('mean0', 'logstd0')]
  result = graphs.evaluate(utility.diag_normal_entropy(mean, logstd))
  golden.assert_close(result[:, 0], data['entropy_rank2'])
  constant = 3 / 2 * np.log(2 * np.pi * np.e)
  golden.assert_close(result, constant + data['logstd0'].sum(-1))


def test_nested_variables():
  """Rows reach all leaves (the original dropped them)."""
  first, second = [tf.Variable(tf.ones([3, 2]), False) for _ in range(2)]
  nested, rows = (first, [second]), tf.constant([2, 0])
  tensors = (tf.fill([2, 2], 5.0), [tf.fill([2, 2], 7.0)])
  assign = utility.assign_nested_vars(nested, tensors, rows)
  clear = utility.reinit_nested_vars(nested, rows[:1])
  clear_all = utility.reinit_nested_vars(nested)
  assign_all = utility.assign_nested_vars([first], [tf.fill([3, 2], 4.0)])
  with graphs.session() as sess:
    sess.run(assign)
    assert sess.run(first)[:, 0].tolist() == [5, 1, 5]
    assert sess.run(second)[:, 1].tolist() == [7, 1, 7]
    sess.run(clear)
    assert sess.run(first)[:, 0].tolist() == [5, 1, 0]
    assert sess.run(second)[:, 0].tolist() == [7, 1, 0]
    sess.run(clear_all)
    assert not sess.run(first).any() and not sess.run(second).any()
    sess.run(assign_all)
    assert sess.run(first).tolist() == [[4, 4]] * 3


def make_variables():
  return [
    tf.get_variable('net/policy/w', initializer=np.float32([1, 2])),
    tf.get_variable('net/value/w', initializer=np.float32([[-5]])),
  ]


def test_groups_of_summaries():
  """A histogram per group, over the entries of all its members."""
  groups = {'all': r'.*', 'policy': r'.*/policy/.*'}
  policy, value = make_variables()
  weights = utility.variable_summaries([policy, value], groups)
  gradients = utility.gradient_summaries(
    [(2 * policy, policy), (None, value)], groups
  )
  with graphs.session() as sess:
    found = recorded.histograms(sess.run(weights))
    assert found == {'all': [-5, 2, -2, 3], 'policy': [1, 2, 3, 2]}
    found = recorded.histograms(sess.run(gradients))
    assert found == {'all': [2, 4, 6, 2], 'policy': [2, 4, 6, 2]}


def test_empty_groups_are_named(caplog):
  variables = make_variables()
  with caplog.at_level(logging.WARNING, 'agents.ppo.utility'):
    logging.getLogger('agents').propagate = True
    utility.variable_summaries(variables, {'odd': 'x', 'all': '.*'})
  # Other tests may have added handlers that tell it a second time.
  assert {x.getMessage() for x in caplog.records} == {
    "No variables matching 'odd' group."
  }
