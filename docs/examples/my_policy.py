"""A recurrent policy of your own for PPO, in a module that `--params` names."""

from agents import networks
from agents.tools import layers, scopes
from agents.tools.diag_normal import DiagNormal
from agents.tools.tf1 import tf


class Cell:
  """Elman network: the state is tanh(W [input, state] + b)."""

  def __init__(self, units):
    self.state_size = self.output_size = units

  def zero_state(self, batch_size, dtype):
    return tf.zeros([batch_size, self.state_size], dtype)

  def __call__(self, inputs, state, scope=None):
    with scopes.uncached_scope('cell'):
      both = tf.concat([inputs, state], -1)
      state = layers.dense(both, self.state_size, tf.tanh)
    return state, state


def elman(config, action_size, observations, length, state=None):
  with scopes.uncached_scope('policy'):
    hidden, state = tf.nn.dynamic_rnn(
      Cell(32), observations, tf.cast(length, tf.int32), state, tf.float32
    )
    mean = layers.dense(hidden, action_size, tf.tanh)
    logstd = tf.get_variable('logstd', initializer=tf.fill([action_size], -1.0))
    logstd = tf.broadcast_to(logstd, tf.shape(mean))
    logstd.set_shape(mean.shape)
  with scopes.uncached_scope('value'):
    hidden = layers.dense(observations, 100, tf.nn.relu)
    value = layers.dense(hidden, 1)[..., 0]
  policy = DiagNormal(mean, logstd)
  return networks.NetworkOutput(policy, mean, logstd, value, state)
