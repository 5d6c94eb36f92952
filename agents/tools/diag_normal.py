"""Normal distributions with a diagonal covariance, in closed form."""

import math

from agents.tools.tf1 import tf


def diag_normal_kl(mean0, logstd0, mean1, logstd1):
  """Kullback-Leibler divergence from one normal distribution to another.

    KL = 1/2 sum(exp(2 s0 - 2 s1) + (m1 - m0)^2 / exp(2 s1) + 2 s1 - 2 s0 - 1)

  Args:
    mean0: Means of the first distribution, float [..., size].
    logstd0: Logarithms of its standard deviations.
    mean1: Means of the second distribution.
    logstd1: Logarithms of its standard deviations.

  Returns:
    Float tensor [...].
  """
  logstd0_2, logstd1_2 = 2 * logstd0, 2 * logstd1
  return 0.5 * (
    tf.reduce_sum(tf.exp(logstd0_2 - logstd1_2), -1)
    + tf.reduce_sum((mean1 - mean0) ** 2 / tf.exp(logstd1_2), -1)
    + tf.reduce_sum(logstd1_2, -1)
    - tf.reduce_sum(logstd0_2, -1)
    - mean0.shape.as_list()[-1]
  )


def diag_normal_logpdf(mean, logstd, loc):
  """Logarithm of the density at a point.

  Args:
    mean: Means, float [..., size].
    logstd: Logarithms of the standard deviations.
    loc: Points [..., size].

  Returns:
    Float tensor [...].
  """
  scaled = (loc - mean) / tf.exp(logstd)
  constant = 0.5 * math.log(2 * math.pi)
  return tf.reduce_sum(-constant - logstd - 0.5 * scaled**2, -1)


def diag_normal_entropy(mean, logstd):
  """Differential entropy over the last dimension.

  (The original sums the second dimension instead, which is time for batches
  of sequences.)

  Args:
    mean: Means, float [..., size]; only their size counts.
    logstd: Logarithms of the standard deviations.

  Returns:
    Float tensor [...].
  """
  constant = mean.shape.as_list()[-1] * math.log(2 * math.pi * math.e)
  return (constant + tf.reduce_sum(2 * logstd, -1)) / 2


class DiagNormal:
  """Distribution over the last dimension.

  Args:
    mean: Means, float [..., size].
    logstd: Logarithms of the standard deviations, of the same shape.
  """

  def __init__(self, mean, logstd):
    self._mean = mean
    self._logstd = logstd

  def mean(self):
    return self._mean

  mode = mean

  def stddev(self):
    return tf.exp(self._logstd)

  def sample(self):
    noise = tf.random_normal(tf.shape(self._mean))
    return self._mean + tf.exp(self._logstd) * noise

  def log_prob(self, value):
    return diag_normal_logpdf(self._mean, self._logstd, value)

  def entropy(self):
    return diag_normal_entropy(self._mean, self._logstd)
