"""Policy and value networks."""

import collections
import math
from typing import Any

from agents.run import references
from agents.tools import layers, scopes
from agents.tools.categorical import Categorical
from agents.tools.diag_normal import DiagNormal
from agents.tools.tf1 import tf

NetworkOutput = collections.namedtuple(
  'NetworkOutput', 'policy, mean, logstd, value, state'
)
CategoricalOutput = collections.namedtuple(
  'CategoricalOutput', 'policy, logits, value, state'
)


@references.nameable
def feed_forward_gaussian(
  config: Any,
  action_size: int,
  observations: tf.Tensor,
  unused_length: tf.Tensor,
  state: tf.Tensor | None = None,
) -> NetworkOutput:
  """Define separate networks for the policy and the value.

  The policy is a normal distribution whose mean is squashed by tanh and whose
  standard deviations do not depend on the observation.

  Args:
    config: AttrDict with `policy_layers`, `value_layers`, `init_mean_factor`
      and `init_logstd`.
    action_size: Number of dimensions of an action.
    observations: Float tensor [batch, time, ...].
    unused_length: Lengths of the sequences [batch].
    state: Unused; returned unchanged.

  Returns:
    `NetworkOutput` of the policy, its mean and logstd [batch, time, actions],
    the value [batch, time], and the state.
  """
  flat = _flatten(observations)
  with scopes.uncached_scope('policy'):
    hidden = _define_hidden(config.policy_layers, flat)
    mean, logstd = _define_policy(config, hidden, action_size)
  return _define_output(config, flat, mean, logstd, state)


@references.nameable
def feed_forward_categorical(
  config: Any,
  action_size: int,
  observations: tf.Tensor,
  unused_length: tf.Tensor,
  state: tf.Tensor | None = None,
) -> CategoricalOutput:
  """Define separate networks for discrete actions and for the value.

  Args:
    config: AttrDict with `policy_layers`, `value_layers` and
      `init_mean_factor`, the scale of the initial logits.
    action_size: Number of discrete actions.
    observations: Float tensor [batch, time, ...].
    unused_length: Lengths of the sequences [batch].
    state: Unused; returned unchanged.

  Returns:
    `CategoricalOutput` of the policy, its logits [batch, time, actions], the
    value [batch, time], and the state.
  """
  flat = _flatten(observations)
  with scopes.uncached_scope('policy'):
    hidden = _define_hidden(config.policy_layers, flat)
    logits = _define_last_layer(config, hidden, action_size)
  value = _define_value(config, flat)
  logits = tf.check_numerics(logits, 'logits')
  value = tf.check_numerics(value, 'value')
  return CategoricalOutput(Categorical(logits), logits, value, state)


@references.nameable
def recurrent_gaussian(
  config: Any,
  action_size: int,
  observations: tf.Tensor,
  length: tf.Tensor,
  state: tf.Tensor | None = None,
) -> NetworkOutput:
  """Define a policy whose last hidden layer is recurrent over time (GRU).

  Args:
    config: AttrDict with `policy_layers`, `value_layers`, `init_mean_factor`
      and `init_logstd`.
    action_size: Number of dimensions of an action.
    observations: Float tensor [batch, time, ...].
    length: Lengths of the sequences [batch], integers or floats. Past the end
      of a sequence, the recurrent layer outputs zeros and the state does not
      change.
    state: State before the first step [batch, units]; zero if None.

  Returns:
    `NetworkOutput` of the policy, its mean and logstd [batch, time, actions],
    the value [batch, time], and the state after the last step.
  """
  flat = _flatten(observations)
  with scopes.uncached_scope('policy'):
    hidden = _define_hidden(config.policy_layers[:-1], flat)
    cell = _RecurrentCell(config.policy_layers[-1])
    hidden, state = tf.nn.dynamic_rnn(
      cell, hidden, tf.cast(length, tf.int32), state, tf.float32
    )
    mean, logstd = _define_policy(config, hidden, action_size)
  return _define_output(config, flat, mean, logstd, state)


class _RecurrentCell:
  """Gated recurrent unit that reads its weights again in every epoch."""

  def __init__(self, units):
    self.state_size = units
    self.output_size = units

  def zero_state(self, batch_size, dtype):
    return tf.zeros(tf.stack([batch_size, self.state_size]), dtype)

  def __call__(self, inputs, state, scope=None):
    with scopes.uncached_scope('cell'):
      output = layers.gru_cell(inputs, state)
    return output, output


def _define_hidden(sizes, hidden):
  for size in sizes:
    hidden = layers.dense(hidden, size, tf.nn.relu)
  return hidden


def _define_policy(config, hidden, action_size):
  """Mean and logstd of the policy [batch, time, actions]."""
  mean = _define_last_layer(config, hidden, action_size, tf.tanh)
  logstd = tf.get_variable(
    'logstd',
    (action_size,),
    initializer=tf.random_normal_initializer(config.init_logstd, 1e-10),
  )
  return mean, tf.broadcast_to(logstd, tf.shape(mean))


def _define_last_layer(config, hidden, size, activation=None):
  """Small outputs of the policy, so that it explores at first."""
  stddev = math.sqrt(1.3 * config.init_mean_factor / hidden.shape.as_list()[-1])
  return layers.dense(
    hidden,
    size,
    activation,
    kernel_initializer=tf.truncated_normal_initializer(stddev=stddev),
  )


def _define_value(config, flat):
  with scopes.uncached_scope('value'):
    hidden = _define_hidden(config.value_layers, flat)
    return layers.dense(hidden, 1)[..., 0]


def _define_output(config, flat, mean, logstd, state):
  value = _define_value(config, flat)
  logstd.set_shape(mean.shape)
  mean = tf.check_numerics(mean, 'mean')
  logstd = tf.check_numerics(logstd, 'logstd')
  value = tf.check_numerics(value, 'value')
  return NetworkOutput(DiagNormal(mean, logstd), mean, logstd, value, state)


def _flatten(observations):
  """Observations [batch, time, ...] as vectors [batch, time, size]."""
  shape = observations.shape.as_list()
  size = math.prod(shape[2:])
  dims = tf.shape(observations)
  flat = tf.reshape(observations, tf.stack([dims[0], dims[1], size]))
  flat.set_shape(shape[:2] + [size])
  return flat
