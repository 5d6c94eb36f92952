"""Latent models along sequences, against recorded numbers of the original."""

import numpy as np
import pytest

from agents.tools.tf1 import tf
from planet import models
from planet.tools import unroll
from tests import golden, graphs

NAMES = [
  'rssm',
  'rssm_layers2_elu',
  'rssm_no_future_rnn',
  'ssm',
  'drnn',
  'drnn_flags',
]


def define_outputs(data, cell):
  """Everything that was recorded for a model."""
  embedded = tf.constant(data['in/embedded'])
  action = tf.constant(data['in/prev_action'])
  mask = tf.constant(data['in/mask'])
  prior, posterior = unroll.closed_loop(cell, embedded, action)
  divergence = cell.divergence_from_states
  dist = cell.dist_from_state(posterior)
  return dict(
    prior=prior,
    posterior=posterior,
    open_loop=unroll.open_loop(
      cell, embedded, action, int(data['cfg/context'])
    ),
    features=cell.features_from_state(posterior),
    kl_post_prior=divergence(posterior, prior),
    kl_post_prior_masked=divergence(posterior, prior, mask),
    kl_prior_post=divergence(prior, posterior),
    entropy_masked_post=cell.dist_from_state(posterior, mask).entropy(),
    logprob_post_at_prior_mean=dist.log_prob(prior['mean']),
  )


@pytest.fixture(scope='module', params=NAMES)
def results(request):
  """Recorded file, and what this project computes from it."""
  tf.reset_default_graph()
  data = golden.load('planet/' + request.param)
  with tf.variable_scope('graph'):
    outputs = define_outputs(data, graphs.make_cell(data.meta))
  pairs = graphs.pair_weights(graphs.cell_roles(data.meta))
  names = [x.op.name for x in tf.trainable_variables()]
  with graphs.session() as sess:
    graphs.load_weights(sess, data, pairs)
    return data, sess.run(outputs), names


@pytest.mark.parametrize('part', ['prior', 'posterior', 'open_loop'])
def test_recorded_states(results, part):
  """All entries of the states of both loops [batch, time, size]; MODEL."""
  data, outputs, _ = results
  golden.assert_all_close(
    outputs[part], data.below('out/' + part), **golden.MODEL
  )


def test_recorded_features(results):
  """What the heads see of the posterior; MODEL."""
  data, outputs, _ = results
  golden.assert_close(outputs['features'], data['out/features'], **golden.MODEL)


def test_recorded_distributions(results):
  """Divergences both ways and with a mask, entropy, log-probability; KL."""
  data, outputs, _ = results
  keys = [
    'kl_post_prior',
    'kl_post_prior_masked',
    'kl_prior_post',
    'entropy_masked_post',
    'logprob_post_at_prior_mean',
  ]
  for key in keys:
    golden.assert_close(outputs[key], data['out/' + key], name=key, **golden.KL)
  assert (outputs['kl_post_prior_masked'][~data['in/mask']] == 0).all()


def test_names_of_variables(results):
  """Layers are found below the name of the model, as in checkpoints."""
  data, _, names = results
  scope = f'graph/rnn/{data.meta["model"].lower()}/'
  assert all(name.startswith(scope) for name in names)
  assert len(set(names)) == len(names)


@pytest.mark.parametrize('name', NAMES)
def test_zero_state(name):
  """Entries and their sizes, for a batch of known and unknown size."""
  meta = golden.load('planet/' + name).meta
  cell = graphs.make_cell(meta)
  sizes = {key: size for key, (size,) in meta['state_entries'].items()}
  assert cell.state_size == sizes
  assert cell.output_size == (sizes, sizes)
  state = cell.zero_state(tf.constant(2), tf.float32)
  for key, value in graphs.evaluate(state).items():
    np.testing.assert_array_equal(value, np.zeros((2, sizes[key])))


def test_recorded_divergence():
  """`planet/divergence`: masked states have deviations of zero; MODEL."""
  data = golden.load('planet/divergence')
  lhs, rhs = [graphs.constants(data.below('in/' + x)) for x in ('lhs', 'rhs')]
  valid = data['in/mask']
  cell = models.SSM(lhs['mean'].shape.as_list()[-1], 4)
  plain, masked = graphs.evaluate(
    [
      cell.divergence_from_states(lhs, rhs),
      cell.divergence_from_states(lhs, rhs, tf.constant(valid)),
    ]
  )
  expected = data['out/divergence_no_mask']
  golden.assert_close(plain[valid], expected[valid], **golden.MODEL)
  golden.assert_close(masked, data['out/divergence_mask'], **golden.MODEL)


@pytest.mark.parametrize('name', ['rssm', 'ssm', 'drnn'])
@pytest.mark.parametrize('use_obs', [True, False])
def test_single_step(name, use_obs):
  """A step decided within the graph equals one decided while building it.

  Without the observation the posterior is the prior; the next state is the
  posterior in any case.
  """
  data = golden.load('planet/' + name)
  cell = graphs.make_cell(data.meta)
  obs = tf.constant(data['in/embedded'][:, 0])
  action = tf.constant(data['in/prev_action'][:, 0])
  state = cell.zero_state(2, tf.float32)
  state = {key: value + 0.5 for key, value in state.items()}
  flag = tf.fill([2, 1], use_obs)
  dynamic = cell((obs, action, flag), state)
  static = cell.step(obs, action, use_obs, state)
  pairs = graphs.pair_weights(graphs.cell_roles(data.meta))
  with graphs.session() as sess:
    graphs.load_weights(sess, data, pairs)
    ((prior, posterior), new), other = sess.run([dynamic, static])
  golden.assert_all_close(prior, other[0][0])
  golden.assert_all_close(posterior, other[0][1])
  golden.assert_all_close(new, posterior, rtol=0, atol=0)
  assert (prior['mean'] != posterior['mean']).any() == use_obs


def test_all_weights_exist_after_a_step_without_observation():
  """The posterior is used by training only later."""
  cell = models.RSSM(3, 4, 5)
  state = cell.zero_state(2, tf.float32)
  cell.step(tf.zeros([2, 6]), tf.zeros([2, 1]), False, state)
  assert len(tf.trainable_variables()) == 18


def test_samples_are_drawn():
  """Around the mean with the predicted deviation, anew each time."""
  cell = models.SSM(3, 4, min_stddev=0.5)
  state = cell.zero_state(5000, tf.float32)
  _, new = cell.step(tf.zeros([5000, 2]), tf.zeros([5000, 1]), False, state)
  noise = (new['sample'] - new['mean']) / new['stddev']
  with graphs.session() as sess:
    one, two = [sess.run(noise) for _ in range(2)]
  assert abs(one.mean()) < 0.05 and abs(one.std() - 1) < 0.05
  assert abs(np.corrcoef(one.ravel(), two.ravel())[0, 1]) < 0.05


@pytest.mark.parametrize(
  'cell, sizes', [(models.RSSM, (3, 4, 5)), (models.SSM, (3, 5))]
)
def test_order_of_random_numbers(cell, sizes):
  """A next step waits for both samples, so that all are drawn in turn."""
  tf.reset_default_graph()
  cell = cell(*sizes)
  obs, action = tf.zeros([1, 5]), tf.zeros([1, 2])
  (_, _), state = cell.step(obs, action, True, cell.zero_state(1, tf.float32))
  operations = tf.get_default_graph().get_operations()
  draws = {x for x in operations if x.type == 'RandomStandardNormal'}
  waits, todo = set(), [state['mean'].op]
  while todo:
    op = todo.pop()
    if op not in waits:
      waits.add(op)
      todo += [*op.control_inputs, *[x.op for x in op.inputs]]
  own = {x for x in draws if x not in waits}
  assert len(draws) >= 2 and len(own) == 1


class Shifted(models.SSM):
  """Overrides `call`, as cells of the original can; by its base or alone."""

  calls = 0

  def call(self, inputs, prev_state):
    assert inputs[2].shape[1:] == (1,) and inputs[2].dtype == tf.bool
    self.calls += 1
    (prior, _), state = super().call(inputs, prev_state)
    state = {**state, 'sample': state['sample'] + 100.0}
    return (prior, state), state


@pytest.mark.parametrize('use_obs', [True, False, None])
def test_call_of_a_subclass(use_obs):
  """Used by every way to advance, with the same weights and names."""
  outputs = {}
  with tf.variable_scope('here', use_resource=True):
    cell = Shifted(3, 4, mean_only=True)
    state = cell.zero_state(2, tf.float32)
    obs, action = tf.ones([2, 5]), tf.ones([2, 1])
    flag = tf.constant(True) if use_obs is None else use_obs
    _, outputs['step'] = cell.step(obs, action, flag, state)
    _, outputs['cell'] = cell((obs, action, tf.fill([2, 1], flag)), state)
  assert cell.calls == 2
  found = graphs.evaluate(outputs)
  np.testing.assert_allclose(found['step']['sample'], found['cell']['sample'])
  assert (found['step']['sample'] > 90).all()
  names = {x.op.name for x in tf.global_variables()}
  assert all(x.startswith('here/shifted/') for x in names)
  assert 'here/shifted/posterior/dense/kernel' in names
