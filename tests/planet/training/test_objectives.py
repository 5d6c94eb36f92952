"""Losses, gradients and one update, against `planet/objectives`."""

import types

import numpy as np
import pytest

from agents.tools.tf1 import tf
from planet import models
from planet.scripts import configs
from planet.tools import unroll
from planet.tools.attr_dict import AttrDict
from planet.training import utility
from tests import golden, graphs

VARIANTS = {
  'default': {},
  'free_nats_none': dict(free_nats=None),
  'overshoot': dict(overshooting_scale=1.0, overshooting_distance=3),
  'overshoot_free_nats_none': dict(
    overshooting_scale=1.0, overshooting_distance=3, free_nats=None
  ),
}


def define_config(**params):
  """Default configuration with the recorded sizes."""
  meta = golden.load('planet/objectives').meta
  params = AttrDict(
    logdir='unused',
    tasks=['cartpole_balance'],
    mean_only=True,
    state_size=meta['state_size'],
    model_size=meta['embed_size'],
    num_layers=meta['head']['num_layers'],
    num_units=meta['head']['units'],
    **params,
  )
  return configs.default(AttrDict(), params)


def define_graph(config):
  """Recorded data, networks of a configuration, and its objectives."""
  data = golden.load('planet/objectives')
  meta = data.meta
  image = np.floor(data['in/image_uint8'] / 8) / 32 - 0.5
  inputs = graphs.constants(
    dict(
      image=image.astype(np.float32),
      action=data['in/action'],
      reward=data['in/reward'],
      length=np.full(2, 4, np.int32),
    )
  )
  cell = graphs.make_cell({**meta, 'model': 'RSSM'})
  encoder = tf.make_template('encoder', config.encoder)
  heads = {
    name: tf.make_template(
      f'head_{name}', head, data_shape=inputs[name].shape.as_list()[2:]
    )
    for name, head in config.heads.items()
  }
  embedded = encoder(inputs)
  graph = AttrDict(cell=cell, heads=heads, data=inputs, embedded=embedded)
  prior, posterior = unroll.closed_loop(cell, embedded, inputs['action'])
  objectives = utility.compute_objectives(
    posterior, prior, inputs, graph, config
  )
  features = cell.features_from_state(posterior)
  reward = heads['reward'](features)
  steps = dict(
    kl=cell.divergence_from_states(posterior, prior),
    image_logprob=heads['image'](features).log_prob(inputs['image']),
    reward_logprob=reward.log_prob(inputs['reward']),
    reward_mean=reward.mean(),
  )
  return objectives, steps


def pair_weights():
  meta = golden.load('planet/objectives').meta
  roles = {**graphs.IMAGE_ROLES, **graphs.cell_roles(meta)}
  count = meta['head']['num_layers']
  roles['head_reward'] = [f'reward_hidden{x}' for x in range(count)]
  roles['head_reward'].append('reward_mean')
  return graphs.pair_weights(roles)


def make_trainer(phase='train'):
  return types.SimpleNamespace(
    step=tf.constant(0), log=tf.constant(True), phase=tf.constant(phase)
  )


@pytest.fixture(scope='module')
def results():
  """Values, steps, gradients and updated weights of the default settings."""
  tf.reset_default_graph()
  data, config = golden.load('planet/objectives'), define_config()
  with tf.variable_scope('graph'):
    objectives, steps = define_graph(config)
    total = weighted_sum(objectives, config)
    pairs = pair_weights()
    grads = tf.gradients(total, list(pairs.values()))
    summaries, norms = utility.apply_optimizers(
      objectives, make_trainer(), config
    )
  with graphs.session() as sess:
    graphs.load_weights(sess, data, pairs)
    outputs = sess.run(
      dict(steps=steps, grads=dict(zip(pairs, grads)), total=total)
    )
    outputs['norms'], _ = sess.run([norms, summaries])
    outputs['after'] = sess.run(pairs)
  return data, outputs


def weighted_sum(objectives, config):
  """The loss, from goals and scales."""
  return tf.add_n(
    [
      {min: 1, max: -1}[x.goal] * config.loss_scales[x.name] * x.value
      for x in objectives
    ]
  )


@pytest.mark.parametrize('variant', VARIANTS)
def test_recorded_values(variant):
  """Each objective and the total; KL, the total to 1e-5.

  Overshooting, which was NaN in the original, is compared with the mean over
  valid entries.
  """
  data = golden.load('planet/objectives')
  config = define_config(**VARIANTS[variant])
  with tf.variable_scope('graph'):
    objectives, _ = define_graph(config)
  total = weighted_sum(objectives, config)
  values = {x.name: x.value for x in objectives}
  pairs = pair_weights()
  with graphs.session() as sess:
    graphs.load_weights(sess, data, pairs)
    values, total = sess.run([values, total])
  free = 'free_nats_none' not in variant
  base = data.below('out/' + ('default' if free else 'free_nats_none'))
  extra = 0
  if 'overshoot' in variant:
    extra = values.pop('overshooting')
    suffix = 'free_nats_3' if free else 'no_free_nats'
    expected = data['out/overshoot/masked_value_' + suffix]
    golden.assert_close(extra, expected, **golden.KL)
  assert list(values) == data['out/default/objective_order'].tolist()
  for name, value in values.items():
    expected = base['objective/' + name]
    golden.assert_close(value, expected, name=name, **golden.KL)
  golden.assert_close(total, base['total_loss'] + np.float32(extra))


def test_recorded_steps(results):
  """Divergence, log-probabilities and rewards [batch, time]; KL."""
  data, outputs = results
  expected = data.below('out/default/per_step')
  golden.assert_all_close(outputs['steps'], expected, **golden.KL)


def test_recorded_gradients(results):
  """Norms of all, small ones in full; GRADIENT, norm of everything 1e-4."""
  data, outputs = results
  expected = data['out/default/grad_norm_main']
  assert list(outputs['norms']) == ['main']
  golden.assert_close(outputs['norms']['main'], expected, rtol=1e-4)
  for name, grad in outputs['grads'].items():
    norm = np.sqrt((grad.astype(float) ** 2).sum())
    expected = data['grad_norm/' + name]
    np.testing.assert_allclose(norm, expected, 2e-4, 1e-5, err_msg=name)
  for name, expected in data.below('grad').items():
    grad = outputs['grads'][name]
    golden.assert_close(grad, expected, name=name, **golden.GRADIENT)


def test_recorded_update(results):
  """Changes by one step of Adam; 1e-3, those of single weights to 2e-3.

  Changes are differences of float32 numbers of order one.
  """
  data, outputs = results
  change = {
    name: value.astype(float) - data.weight(name)
    for name, value in outputs['after'].items()
  }
  for name, value in change.items():
    norm = np.sqrt((value**2).sum())
    expected = data['after_step_delta_norm/' + name]
    np.testing.assert_allclose(norm, expected, 1e-3, 1e-6, err_msg=name)
  recorded = data.below('after_step')
  assert len(recorded) >= 20
  for name, after in recorded.items():
    expected = after.astype(float) - data.weight(name)
    golden.assert_close(
      change[name], expected, 2e-3, atol=5e-7, floor=2e-3, name=name
    )


def test_default_settings_are_those_of_the_recording():
  meta = golden.load('planet/objectives').meta
  config = define_config()
  main = config.optimizers.main
  assert {k: v for k, v in config.loss_scales.items() if v} == meta[
    'loss_scales'
  ]
  assert config.free_nats == meta['free_nats']
  assert main.learning_rate == meta['learning_rate']
  assert main.clipping == meta['clipping']
  assert main.optimizer_cls.keywords == {'epsilon': meta['adam_epsilon']}


def make_states():
  """Posterior and prior [2, 5, 3] as arrays."""
  random = np.random.RandomState(0)
  return [
    dict(
      mean=random.normal(size=(2, 5, 3)).astype(np.float32),
      stddev=random.uniform(0.3, 2, (2, 5, 3)).astype(np.float32),
    )
    for _ in range(2)
  ]


def divergence(lhs, rhs):
  """KL of diagonal normal distributions [batch, time], by NumPy."""
  ratio = lhs['stddev'] / rhs['stddev']
  distance = (lhs['mean'] - rhs['mean']) / rhs['stddev']
  return ((ratio**2 + distance**2 - 1) / 2 - np.log(ratio)).sum(-1)


@pytest.mark.parametrize('free_nats', [None, 0, 3])
def test_divergences_and_free_nats(free_nats):
  """To the prior and to a standard normal; each element has its free nats."""
  posterior, prior = make_states()
  standard = dict(mean=np.zeros((2, 5, 3)), stddev=np.ones((2, 5, 3)))
  config = AttrDict(
    loss_scales=dict(divergence=1.0, global_divergence=2.0, image=0.0),
    free_nats=free_nats,
  )
  states = [
    dict(graphs.constants(x), sample=tf.zeros([2, 5, 3]))
    for x in (posterior, prior)
  ]
  objectives = utility.compute_objectives(
    *states, {}, AttrDict(cell=models.SSM(3, 4)), config
  )
  assert [x.name for x in objectives] == ['divergence', 'global_divergence']
  assert all(x.goal is min and x.include == '.*' for x in objectives)
  values = graphs.evaluate([x.value for x in objectives])
  for value, other in zip(values, (prior, standard)):
    expected = divergence(posterior, other)
    assert expected.min() < 3 < expected.max()
    if free_nats is not None:
      expected = np.maximum(0, expected - free_nats)
    np.testing.assert_allclose(value, expected.mean(), 1e-5)


def test_nothing_changes_outside_of_the_training_phase():
  """Norms are zero in the test phase, and the weights stay."""
  weight = tf.get_variable('graph/weight', initializer=tf.constant(2.0))
  objectives = [utility.Objective('a', weight**2, min, r'.*', None)]
  config = define_config()
  with config.unlocked:
    config.loss_scales = dict(a=3.0)
  trainer = make_trainer('test')
  summaries, norms = utility.apply_optimizers(objectives, trainer, config)
  with graphs.session() as sess:
    assert sess.run([norms, summaries]) == [dict(main=0), [b'']]
    assert sess.run(weight) == 2


def test_heads_that_do_not_train_the_model():
  """They have optimizers and variables of their own, set up like `main`."""
  config = define_config(gradient_heads=['image'])
  with tf.variable_scope('graph'):
    objectives, _ = define_graph(config)
    includes = {x.name: x.include for x in objectives}
    reward = next(x.value for x in objectives if x.name == 'reward')
    variables = tf.trainable_variables()
    grads = dict(zip(variables, tf.gradients(reward, variables)))
    _, norms = utility.apply_optimizers(objectives, make_trainer(), config)
  assert includes['reward'] == '.*/head_reward/.*'
  assert includes['image'] == includes['divergence'] == '.*'
  for variable, grad in grads.items():
    assert (grad is not None) == ('head_reward' in variable.name)
  assert list(norms) == ['reward', 'main']
  assert all(value > 0 for value in graphs.evaluate(norms).values())
