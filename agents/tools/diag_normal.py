"""Normal distributions with a diagonal covariance, in closed form."""

import math

from agents.tools.tf1 import tf


def diag_normal_kl(
  mean0: tf.Tensor, logstd0: tf.Tensor, mean1: tf.Tensor, logstd1: tf.Tensor
) -> tf.Tensor:
  """Return the KL divergence from one normal distribution to another.

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


def diag_normal_logpdf(
  mean: tf.Tensor, logstd: tf.Tensor, loc: tf.Tensor
) -> tf.Tensor:
  """Return the logarithm of the density at a point.

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


def diag_normal_entropy(mean: tf.Tensor, logstd: tf.Tensor) -> tf.Tensor:
  """Return the differential entropy over the last dimension.

  (The original sums over the second dimension instead, which is time for
  batches of sequences.)

  Args:
    mean: Means, float [..., size]; only the size is used.
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

  PARAMETERS = ('mean', 'logstd')

  def __init__(self, mean: tf.Tensor, logstd: tf.Tensor):
    self._mean = mean
    self._logstd = logstd

  @property
  def parameters(self) -> tuple[tf.Tensor, tf.Tensor]:
    """Tensors that define the distribution, named by `PARAMETERS`."""
    return self._mean, self._logstd

  def mean(self) -> tf.Tensor:
    return self._mean

  mode = mean

  def stddev(self) -> tf.Tensor:
    return tf.exp(self._logstd)

  def sample(self) -> tf.Tensor:
    noise = tf.random_normal(tf.shape(self._mean))
    return self._mean + tf.exp(self._logstd) * noise

  def log_prob(self, value: tf.Tensor) -> tf.Tensor:
    return diag_normal_logpdf(self._mean, self._logstd, value)

  def entropy(self) -> tf.Tensor:
    return diag_normal_entropy(self._mean, self._logstd)

  def kl(self, other: 'DiagNormal') -> tf.Tensor:
    """Return the Kullback-Leibler divergence from this to another one."""
    return diag_normal_kl(*self.parameters, *other.parameters)

  def describe(self) -> dict[str, tf.Tensor]:
    """Return the tensors to show as histograms."""
    return {'mean': self._mean, 'std': tf.exp(self._logstd)}
