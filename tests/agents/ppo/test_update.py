"""The update of PPO, against `ppo/update_*`.

`recurrent` notices weights of the recurrent unit that are read only once per
execution. In `gae_lambda` the original takes a return for the advantage;
expected is what generalised advantage estimation gives instead, computed in
float64.
"""

import numpy as np
import pytest

from agents.ppo import update as update_lib
from agents.ppo import utility
from agents.ppo.normalize import StreamingNormalize
from agents.tools import attr_dict
from agents.tools.tf1 import tf
from tests import golden, graphs
from tests.agents.ppo import recorded

RECORDED = ['small_change', 'moderate', 'cutoff_active', 'one_epoch']
RECORDED += ['recurrent']


@pytest.mark.parametrize('name', RECORDED)
def test_after(name):
  """Weights (atol 2e-5), penalty, memory and summaries after all epochs."""
  data = golden.load(f'ppo/update_{name}')
  update = recorded.Update(data)
  with graphs.session() as sess:
    golden.assert_close(sess.run(update.penalty), data['penalty_before'])
    update.load(sess)
    summary = sess.run(update.summary)
    weights = sess.run(update.weights)
    golden.assert_close(sess.run(update.penalty), data['penalty_after'])
    assert sess.run(update.index) == data['memory_index_after']
    length = sess.run(update.length)
    assert length.tolist() == data['memory_length_after'].tolist()
  expected = recorded.below(data, 'after_')
  golden.assert_all_close(weights, expected, **recorded.UPDATE)
  written = recorded.scalars(summary)
  expected = {
    **recorded.below(data, 'summary_scalar/'),
    'kl_change': data['kl_change'],
  }
  for key, value in expected.items():
    np.testing.assert_allclose(written[key], value, 2e-5, 1e-5, err_msg=key)
  tags = set(written) | set(recorded.histograms(summary))
  # Names of groups are doubled in the original.
  single = {'allall': 'all', 'valuevalue': 'value', 'policypolicy': 'policy'}
  assert {single.get(x, x) for x in data['summary_tags'].tolist()} <= tags


@pytest.mark.parametrize(
  'name',
  [
    pytest.param('moderate', marks=pytest.mark.slow),
    'cutoff_active',
    'recurrent',
  ],
)
def test_first_epoch(name):
  """Losses, divergences, and gradients to 2e-5 of their largest entry."""
  data = golden.load(f'ppo/update_{name}')
  update = recorded.Update(
    data, optimizer=recorded.RecordGradients, update_epochs=1
  )
  with graphs.session() as sess:
    update.load(sess)
    summary = sess.run(update.summary)
    gradients = sess.run(recorded.recorded_gradients(update.weights))
  assert sorted(gradients) == sorted(update.weights)
  for key, value in gradients.items():
    loss = 'value' if key.startswith('value') else 'policy'
    expected = data[f'grad_{loss}_loss_{key}']
    golden.assert_close(value, expected, floor=2e-5, name=key)
  written = recorded.scalars(summary)
  kl = data['initial_kl_per_episode']
  for key, value in (
    ('avg_value_loss', data['initial_value_loss']),
    ('avg_policy_loss', data['initial_policy_loss']),
    ('avg_kl_penalty', data['penalty_before'] * kl.mean()),
  ):
    np.testing.assert_allclose(written[key], value, 1e-5, 5e-6, err_msg=key)
  check_scalars(written, data)
  assert name != 'cutoff_active' or written['kl_cutoff_episodes'] > 0
  found = recorded.histograms(summary)
  expected = np.array([kl.min(), kl.max(), kl.sum(), kl.size])
  np.testing.assert_allclose(found['kl'], expected, 1e-5, 1e-5)


def test_scalars_of_three_epochs():
  """Means over the epochs, here without moving; gradients of all weights."""
  data = golden.load('ppo/update_moderate')
  update = recorded.Update(
    data,
    optimizer=recorded.RecordGradients,
    update_epochs=3,
    weight_summaries={'other': '.*'},
  )
  with graphs.session() as sess:
    update.load(sess)
    summary = sess.run(update.summary)
  check_scalars(recorded.scalars(summary), data)
  assert {'value', 'policy', 'other'} <= set(recorded.histograms(summary))


def check_scalars(written, data):
  """Compare the means of what goes in, and of the losses without moving."""
  threshold = data['config_kl_target'] * data['config_kl_cutoff_factor']
  for key, value in (
    ('mean_return', data['return'].mean()),
    ('mean_value', data['initial_value'].mean()),
    ('normalized_advantage', data['normalized_advantage'].mean()),
    ('mean_value_loss', data['initial_value_loss']),
    ('mean_policy_loss', data['initial_policy_loss']),
    ('kl_cutoff_episodes', (data['initial_kl_per_episode'] > threshold).sum()),
    ('current_penalty', data['penalty_before']),
  ):
    np.testing.assert_allclose(written[key], value, 1e-4, 5e-5, err_msg=key)


@pytest.mark.parametrize('name', ['moderate', 'recurrent'])
def test_inputs(name):
  """What the update is computed from; atol 5e-6."""
  data = golden.load(f'ppo/update_{name}')
  inputs, pairs = {}, []
  for key, center, clip in (('observ', True, 5), ('reward', False, 10)):
    memory = data['memory_' + key]
    normalize = StreamingNormalize(
      tf.zeros(memory.shape[2:]), center, True, clip, key
    )
    inputs['normalized_' + key] = normalize.transform(tf.constant(memory))
    pairs += [
      (recorded.variable(f'{key}/{x}'), data[f'{key}_filter_{x}'])
      for x in ('count', 'mean', 'var_sum')
    ]
  length = tf.constant(data['memory_length'])
  output = recorded.define_network(data, bool(data['recurrent']))(
    inputs['normalized_observ'], length
  )
  inputs.update(
    initial_mean=output.mean,
    initial_logstd=output.logstd,
    initial_value=output.value,
  )
  inputs['return'] = utility.discounted_return(
    inputs['normalized_reward'], length, float(data['config_discount'])
  )
  pairs += recorded.pair_weights(recorded.below(data, 'before_'))
  with graphs.session() as sess:
    recorded.load(sess, pairs)
    for key, value in sess.run(inputs).items():
      golden.assert_close(value, data[key], name=key, **recorded.NETWORK)


def test_recorded_numbers_in_float64():
  """The computation that the next test relies on gives recorded weights."""
  data = golden.load('ppo/update_gae_lambda')
  weights, _ = recorded.recompute(data, data['normalized_advantage'])
  golden.assert_all_close(
    weights, recorded.below(data, 'after_'), **recorded.UPDATE
  )


def test_generalised_advantages():
  data = golden.load('ppo/update_gae_lambda')
  advantage = recorded.estimate_advantage(data)
  with tf.Graph().as_default():
    expected, kl = recorded.recompute(data, advantage)
  update = recorded.Update(data)
  with graphs.session() as sess:
    update.load(sess)
    summary = sess.run(update.summary)
    weights = sess.run(update.weights)
  golden.assert_all_close(weights, expected, **recorded.UPDATE)
  change = recorded.scalars(summary)['kl_change']
  np.testing.assert_allclose(change, kl, 2e-5, 1e-5)
  difference = [np.abs(weights[k] - data['after_' + k]).max() for k in weights]
  assert max(difference) > 1e-4


def test_recorded_advantage_is_a_return():
  data = golden.load('ppo/update_gae_lambda')
  result = utility.lambda_return(
    tf.constant(data['normalized_reward']),
    tf.constant(data['initial_value']),
    tf.constant(data['memory_length']),
    float(data['config_discount']),
    float(data['gae_lambda']),
  )
  result = recorded.normalize(graphs.evaluate(result))
  golden.assert_close(result, data['normalized_advantage'])


@pytest.mark.parametrize(
  'change, factor',
  [
    (0.0069, 1 / 1.5),
    (0.0071, 1.0),
    (0.0129, 1.0),
    (0.0131, 1.5),
  ],
)
def test_penalty(change, factor):
  """Just below and above both limits around a target of 0.01."""
  penalty = tf.constant(0.5), tf.constant(change), 0.01
  result = graphs.evaluate(update_lib.adapt_penalty(*penalty))
  np.testing.assert_allclose(result, 0.5 * factor, rtol=1e-6)


def test_penalty_is_divided():
  """To the bit: a product with 1 / 1.5 differs from the second step on."""
  config = attr_dict.AttrDict(kl_target=0.01)
  with graphs.session() as sess:
    penalty = tf.Variable(1.0, use_resource=True)
    adjust = update_lib._adjust_penalty(
      penalty, tf.constant(0.0), tf.constant(1.0), config
    )
    sess.run(penalty.initializer)
    expected = np.float32(1)
    for _ in range(8):
      sess.run(adjust)
      expected /= np.float32(1.5)
      assert sess.run(penalty) == expected
