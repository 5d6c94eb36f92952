"""Policy and value networks."""

import collections
import math
from typing import Any

from agents.run import references
from agents.tools import layers, scopes
from agents.tools.categorical import Categorical
from agents.tools.diag_normal import DiagNormal
from agents.tools.tf1 import tf

# Filters, sizes and strides.
_CONVOLUTIONS = (32, 8, 4), (64, 4, 2), (64, 3, 1)

NetworkOutput = collections.namedtuple(
  'NetworkOutput', 'policy, mean, logstd, value, state'
)
CategoricalOutput = collections.namedtuple(
  'CategoricalOutput', 'policy, logits, value, state'
)
# Observations of several parts: a list of images, and a vector.
Parts = collections.namedtuple('Parts', 'images, vector')


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
  return _define_gaussian(config, action_size, _flatten(observations), state)


@references.nameable
def convolutional_gaussian(
  config: Any,
  action_size: int,
  observations: tf.Tensor,
  unused_length: tf.Tensor,
  state: tf.Tensor | None = None,
) -> NetworkOutput:
  """Define `feed_forward_gaussian` behind convolutions, for images.

  Not in the original. Policy and value have three convolutional layers each
  (Mnih et al., 2015), before the layers of the configuration.

  Args:
    config: See `feed_forward_gaussian`.
    action_size: Number of dimensions of an action.
    observations: Images uint8 [batch, time, height, width, channels], or with
      the channels first; or `Parts` of a list of images and a float vector
      [batch, time, size], which joins their features.
    unused_length: Lengths of the sequences [batch].
    state: Unused; returned unchanged.
  """
  return _define_gaussian(config, action_size, _scale(observations), state)


@references.nameable
def convolutional_categorical(
  config: Any,
  action_size: int,
  observations: tf.Tensor,
  unused_length: tf.Tensor,
  state: tf.Tensor | None = None,
) -> CategoricalOutput:
  """Define `feed_forward_categorical` behind convolutions, for images.

  Args:
    config: See `feed_forward_categorical`, also for the result.
    action_size: Number of discrete actions.
    observations: See `convolutional_gaussian`.
    unused_length: Lengths of the sequences [batch].
    state: Unused; returned unchanged.
  """
  return _define_categorical(config, action_size, _scale(observations), state)


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
  return _define_categorical(config, action_size, _flatten(observations), state)


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
    config: AttrDict with `policy_layers`, `value_layers`, `init_mean_factor`,
      `init_logstd`, and optionally `one_step`, whether sequences have one step
      and are computed by basic operations, which TFLite has.
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
    units, length = config.policy_layers[-1], tf.cast(length, tf.int32)
    if config.get('one_step'):
      hidden, state = _define_step(units, hidden, state)
    else:
      cell = _RecurrentCell(units)
      hidden, state = tf.nn.dynamic_rnn(cell, hidden, length, state, tf.float32)
    mean, logstd = _define_policy(config, hidden, action_size)
  return _define_output(config, flat, mean, logstd, state)


def _define_step(units, hidden, state):
  """Output [batch, 1, units] and state of a step, in the scopes of the RNN."""
  if state is None:
    state = tf.zeros(tf.stack([tf.shape(hidden)[0], units]))
  with scopes.uncached_scope('rnn'), scopes.uncached_scope('cell'):
    state = layers.gru_cell(hidden[:, 0], state, basic=True)
  return state[:, None], state


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


def _define_gaussian(config, action_size, inputs, state):
  with scopes.uncached_scope('policy'):
    hidden = _define_hidden(config.policy_layers, inputs)
    mean, logstd = _define_policy(config, hidden, action_size)
  return _define_output(config, inputs, mean, logstd, state)


def _define_categorical(config, action_size, inputs, state):
  with scopes.uncached_scope('policy'):
    hidden = _define_hidden(config.policy_layers, inputs)
    logits = _define_last_layer(config, hidden, action_size)
  value = _define_value(config, inputs)
  logits = tf.check_numerics(logits, 'logits')
  value = tf.check_numerics(value, 'value')
  return CategoricalOutput(Categorical(logits), logits, value, state)


def _define_hidden(sizes, hidden):
  if isinstance(hidden, Parts):
    features = [_define_convolutions(x) for x in hidden.images]
    hidden = tf.concat([*features, hidden.vector], -1)
  elif hidden.shape.ndims == 5:
    hidden = _define_convolutions(hidden)
  for size in sizes:
    hidden = layers.dense(hidden, size, tf.nn.relu)
  return hidden


def _define_convolutions(images):
  """Features [batch, time, size] of images [batch, time, height, ...]."""
  dims = tf.shape(images)[:2]
  hidden = tf.reshape(images, [-1, *images.shape.as_list()[2:]])
  for filters, size, stride in _CONVOLUTIONS:
    hidden = layers.conv2d(hidden, filters, size, stride, tf.nn.relu)
  size = math.prod(hidden.shape.as_list()[1:])
  features = tf.reshape(hidden, tf.concat([dims, [size]], 0))
  features.set_shape(images.shape.as_list()[:2] + [size])
  return features


def _scale(images):
  """Floats from -1 to 1 [batch, time, height, width, channels]."""
  if isinstance(images, Parts):
    return images._replace(images=[_scale(x) for x in images.images])
  images = tf.cast(images, tf.float32) / 127.5 - 1
  _, _, first, _, last = images.shape.as_list()
  return images if last <= first else tf.transpose(images, [0, 1, 3, 4, 2])


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
