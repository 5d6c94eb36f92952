"""Environments and a network by the definition of `ppo/end_to_end`."""

import ast

import numpy as np

from agents import networks
from agents.tools.tf1 import tf
from tests import golden
from tests.agents.ppo import recorded

END_TO_END = 'ppo/end_to_end'


class Replay:
  """Replays recorded observations and rewards; resets are computed.

  The closed loop amplifies rounding of the weights a million times.

  Args:
    index: Number of the environment.
    clock: List of the number of the current execution.
  """

  def __init__(self, index, clock):
    self._data, self._index, self._clock = golden.load(END_TO_END), index, clock
    self._durations = ast.literal_eval(str(self._data['durations'][index]))
    self._episode, self._time = -1, 0
    self.observation_space = recorded.unbounded(3)
    self.action_space = recorded.unbounded(2)

  def reset(self):
    self._episode += 1
    self._time = 0
    return np.array([0.1 * (self._index + 1), -0.2 + 0.1 * self._episode, 0.3])

  def step(self, unused_action):
    self._time += 1
    row = self._clock[0], self._index
    duration = self._durations[self._episode % len(self._durations)]
    return (
      self._data['observ'][row],
      float(self._data['reward'][row]),
      self._time >= duration,
      {},
    )


class _Policy:
  """Normal distribution with noise that follows from the observation."""

  def __init__(self, mean, logstd, observ):
    self._mean, self._logstd, self._observ = mean, logstd, observ

  def sample(self):
    phase = 17 * tf.reduce_sum(self._observ, -1, keepdims=True)
    noise = tf.sin(phase + tf.constant([0.0, 1.0]))
    return self._mean + tf.exp(self._logstd) * noise

  def log_prob(self, action):
    scaled = (action - self._mean) / tf.exp(self._logstd)
    constant = 0.5 * np.log(2 * np.pi)
    return tf.reduce_sum(-0.5 * scaled**2 - self._logstd - constant, -1)


def network(unused_config, unused_size, observ, unused_length, state=None):
  data = golden.load(END_TO_END)

  def get(name, key):
    return tf.get_variable(name, initializer=tf.constant(data[key]))

  with tf.variable_scope('policy'):
    mean = tf.tensordot(observ, get('w', 'Wp'), 1) + get('b', 'bp')
    mean = tf.tanh(mean)
    mean.set_shape(observ.shape.as_list()[:2] + [2])
    logstd = get('logstd', 'logstd') + tf.zeros_like(mean)
  with tf.variable_scope('value'):
    value = tf.reduce_sum(observ * get('w', 'Wv'), -1) + get('b', 'bv')[0]
  policy = _Policy(mean, logstd, observ)
  return networks.NetworkOutput(policy, mean, logstd, value, state)
