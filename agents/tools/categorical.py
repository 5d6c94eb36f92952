"""Categorical distributions."""

from agents.tools.tf1 import tf


class Categorical:
  """Distribution over the indices of the last dimension.

  Args:
    logits: Unnormalized log probabilities, float [..., size].
  """

  PARAMETERS = ('logits',)

  def __init__(self, logits: tf.Tensor):
    self._logits = logits

  @property
  def parameters(self) -> tuple[tf.Tensor]:
    """Tensors that define the distribution, named by `PARAMETERS`."""
    return (self._logits,)

  def mode(self) -> tf.Tensor:
    return tf.argmax(self._logits, -1, output_type=tf.int32)

  def sample(self) -> tf.Tensor:
    flat = tf.reshape(self._logits, [-1, self._logits.shape.as_list()[-1]])
    index = tf.random.categorical(flat, 1, tf.int32)
    return tf.reshape(index, tf.shape(self._logits)[:-1])

  def log_prob(self, value: tf.Tensor) -> tf.Tensor:
    return -tf.nn.sparse_softmax_cross_entropy_with_logits(
      labels=value, logits=self._logits
    )

  def entropy(self) -> tf.Tensor:
    logprob = tf.nn.log_softmax(self._logits)
    return -tf.reduce_sum(tf.exp(logprob) * logprob, -1)

  def kl(self, other: 'Categorical') -> tf.Tensor:
    """Return the Kullback-Leibler divergence from this to another one."""
    logprob = tf.nn.log_softmax(self._logits)
    difference = logprob - tf.nn.log_softmax(other._logits)
    return tf.reduce_sum(tf.exp(logprob) * difference, -1)

  def describe(self) -> dict[str, tf.Tensor]:
    """Return the tensors to show as histograms."""
    return {'probability': tf.nn.softmax(self._logits)}
