"""Recorded networks and updates of PPO in the graph of a test."""

import functools
import re

import numpy as np

from agents import configs, networks, ppo, tools
from agents.envs import spaces
from agents.tools.tf1 import tf

# Sums of a dozen products of order one.
NETWORK = dict(rtol=1e-5, atol=5e-6)
# Adam divides by the size of gradients, so rounding becomes visible steps.
UPDATE = dict(rtol=1e-5, atol=2e-5)

ENDING = (0, 2, 3)
_AGENTS = 4


class Still:
  """Environment that only has spaces."""

  def __init__(self, observ_size, action_size):
    self.observation_space = unbounded(observ_size)
    self.action_space = unbounded(action_size)


def unbounded(size):
  return spaces.box([-np.inf] * size, [np.inf] * size)


def below(data, prefix):
  """Dict of the arrays whose keys have a prefix, without it."""
  return {k[len(prefix) :]: data[k] for k in data if k.startswith(prefix)}


def define_network(data, recurrent, **settings):
  """Template of a network with recorded sizes of layers."""
  function = (
    networks.recurrent_gaussian if recurrent else networks.feed_forward_gaussian
  )
  config = tools.AttrDict(
    policy_layers=data['policy_layers'].tolist(),
    value_layers=data['value_layers'].tolist(),
    init_mean_factor=0.1,
    init_logstd=-1,
  )
  with config.unlocked:
    config.update(settings)
  return tf.make_template(
    'network', functools.partial(function, config, int(data['action_size']))
  )


def pair_weights(weights):
  """Pairs of variables and recorded arrays, both in order of creation."""
  variables = tf.trainable_variables()
  assert [x.shape.as_list() for x in variables] == [
    list(x.shape) for x in weights.values()
  ]
  return list(zip(variables, weights.values()))


def load(sess, pairs):
  for variable, value in pairs:
    dtype = variable.dtype.base_dtype.as_numpy_dtype
    variable.load(np.asarray(value).astype(dtype), sess)


def variable(name):
  """The only variable whose name has a certain end."""
  found = [
    x for x in tf.global_variables() if f'/{x.op.name}'.endswith('/' + name)
  ]
  assert len(found) == 1, (name, found)
  return found[0]


def filter_variables(name):
  """Count, mean and sum of squares of a `StreamingNormalize`."""
  return [variable(f'{name}/{x}') for x in ('count', 'mean', 'var_sum')]


def scalars(summary):
  """Values of a serialized summary by the last part of their tags."""
  return {
    x.tag.split('/')[-1]: x.simple_value
    for x in tf.Summary.FromString(summary).value
    if x.WhichOneof('value') == 'simple_value'
  }


def histograms(summary):
  """Minimum, maximum, sum and number of entries of each histogram."""
  return {
    x.tag.split('/')[-1]: [x.histo.min, x.histo.max, x.histo.sum, x.histo.num]
    for x in tf.Summary.FromString(summary).value
    if x.WhichOneof('value') == 'histo'
  }


class Update:
  """Algorithm whose next `end_episode` runs a recorded update.

  The last two recorded episodes still are in the rows 0 and 2 of the
  environments, the others in the memory. The environments 0, 2 and 3 end, so
  two episodes have to be taken in this order, and a third one dropped. What
  is unused is filled with large numbers.

  Args:
    data: Recorded arrays of `ppo/update_*`.
    **settings: Values of the configuration to replace.
  """

  def __init__(self, data, **settings):
    self._data = data
    capacity, max_length = data['memory_reward'].shape
    config = dict(configs.default())
    config.update(below(data, 'config_'))
    config.update(
      network=networks.recurrent_gaussian
      if data['recurrent']
      else networks.feed_forward_gaussian,
      policy_layers=data['policy_layers'].tolist(),
      value_layers=data['value_layers'].tolist(),
      num_agents=_AGENTS,
      update_every=capacity,
      max_length=max_length,
      update_epochs=int(data['config_update_epochs']),
      gae_lambda=float(data['gae_lambda']),
    )
    config.update(settings)
    size = data['memory_observ'].shape[2]
    envs = [Still(size, int(data['action_size'])) for _ in range(_AGENTS)]
    step = tf.Variable(0, False, dtype=tf.int32, name='global_step')
    algorithm = ppo.PPOAlgorithm(
      tools.InGraphBatchEnv(tools.BatchEnv(envs, True)),
      step,
      tf.constant(True),
      tf.constant(False),
      tools.AttrDict(config),
    )
    self.penalty = variable('penalty')
    self.index = variable('memory_index/index')
    self.length = variable('memory/length')
    self.weights = dict(zip(below(data, 'before_'), tf.trainable_variables()))
    self.summary = algorithm.end_episode(tf.constant(ENDING))

  def load(self, sess):
    """Set the recorded state."""
    data = self._data
    pairs = pair_weights(below(data, 'before_'))
    for name in ('observ', 'reward'):
      values = [
        data[f'{name}_filter_{x}'] for x in ('count', 'mean', 'var_sum')
      ]
      pairs += zip(filter_variables(f'normalize_{name}'), values)
    for number, name in enumerate(
      ('observ', 'action', 'mean', 'logstd', 'reward')
    ):
      memory, rows = _split(data['memory_' + name], 77, 99)
      pairs += [
        (variable(f'memory/buffer{number}'), memory),
        (variable(f'episodes/buffer{number}'), rows),
      ]
    memory, rows = _split(data['memory_length'], 0, 1)
    pairs += [(self.length, memory), (variable('episodes/length'), rows)]
    pairs += [(self.index, len(memory) - 2)]
    load(sess, pairs)


def _split(values, unused, unused_row):
  """Contents of the memory and of the rows of the environments."""
  memory = values.copy()
  memory[-2:] = unused
  rows = np.full((_AGENTS,) + values.shape[1:], unused_row, values.dtype)
  rows[list(ENDING[:2])] = values[-2:]
  return memory, rows


class RecordGradients(tf.train.Optimizer):
  """Keeps the gradients and hardly moves."""

  def __init__(self, unused_learning_rate):
    super().__init__(False, 'RecordGradients')

  def _create_slots(self, var_list):
    for x in var_list:
      self._zeros_slot(x, 'gradient', self._name)

  def _resource_apply_dense(self, gradient, handle):
    slot = self.get_slot(handle, 'gradient')
    return tf.group(slot.assign(gradient), handle.assign_sub(1e-6 * gradient))


def recorded_gradients(weights):
  """Slots of `RecordGradients` by the keys of the weights."""
  slots = {}
  for key, weight in weights.items():
    pattern = f'(^|/){re.escape(weight.op.name)}/RecordGradients'
    slots[key] = [
      x for x in tf.global_variables() if re.search(pattern, x.op.name)
    ]
  return {key: found[0] for key, found in slots.items() if found}


def normalize(advantage):
  advantage = advantage.astype(np.float64)
  return (advantage - advantage.mean()) / (advantage.std() + 1e-8)


def estimate_advantage(data):
  """Generalised advantage estimates in float64, normalized."""
  reward, value = data['normalized_reward'], data['initial_value']
  factor = float(data['config_discount']) * float(data['gae_lambda'])
  ahead, advantage = 0.0, np.zeros(reward.shape)
  following = np.append(value[:, 1:], np.zeros((len(value), 1)), 1)
  delta = reward + float(data['config_discount']) * following - value
  for time in reversed(range(reward.shape[1])):
    ahead = (time < data['memory_length']) * delta[:, time] + factor * ahead
    advantage[:, time] = ahead
  return normalize(advantage)


def recompute(data, advantage):
  """Weights after an update of feed-forward networks, in float64.

  Shares no code with the package.
  """
  weights = {
    key: tf.Variable(value.astype(np.float64))
    for key, value in below(data, 'before_').items()
  }
  value_loss, policy_loss, kl = _losses(data, weights, advantage)
  optimizer = tf.train.AdamOptimizer(float(data['config_learning_rate']))
  step = optimizer.minimize(value_loss + policy_loss, None, [*weights.values()])
  with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(int(data['config_update_epochs'])):
      sess.run(step)
    return sess.run(weights), sess.run(kl)


def _losses(data, weights, advantage):
  length = data['memory_length'][:, None]
  mask = np.arange(data['memory_reward'].shape[1])[None] < length
  mean0, logstd0, action = [
    data['memory_' + x].astype(float) for x in ('mean', 'logstd', 'action')
  ]
  value = _layers(data, weights, 'value', 'value_out')[..., 0]
  mean = tf.tanh(_layers(data, weights, 'policy', 'mean'))
  logstd = weights['logstd']

  def log_prob(mean, logstd):
    z = (action - mean) / tf.exp(logstd)
    return -tf.reduce_sum(0.5 * z**2 + logstd, -1)

  squares = ((mean - mean0) ** 2 + np.exp(2 * logstd0)) / tf.exp(2 * logstd)
  kl = tf.reduce_sum(squares / 2 + logstd - logstd0 - 0.5, -1)
  kl = tf.reduce_mean(mask * kl, 1)
  ratio = tf.exp(log_prob(mean, logstd) - log_prob(mean0, logstd0))
  above = tf.maximum(
    kl - float(data['config_kl_target'] * data['config_kl_cutoff_factor']), 0
  )
  policy_loss = (
    -tf.reduce_mean(mask * ratio * advantage, 1)
    + float(data['config_kl_init_penalty']) * kl
    + float(data['config_kl_cutoff_coef']) * above**2
  )
  value_loss = tf.reduce_mean(mask * (data['return'] - value) ** 2) / 2
  return value_loss, tf.reduce_mean(policy_loss), tf.reduce_mean(kl)


def _layers(data, weights, prefix, last):
  x = tf.constant(data['normalized_observ'].astype(float))
  for layer in range(len(data[f'{prefix}_layers'])):
    x = tf.tensordot(x, weights[f'{prefix}_w{layer}'], 1)
    x = tf.nn.relu(x + weights[f'{prefix}_b{layer}'])
  return tf.tensordot(x, weights[last + '_w'], 1) + weights[last + '_b']
