"""Running mean and deviation of a stream of values."""

from typing import Any

from agents.tools import scopes
from agents.tools.tf1 import tf


class StreamingNormalize:
  """Normalise values by all those seen so far, without decay.

  Args:
    template: Tensor shaped like one value.
    center: Subtract the mean.
    scale: Divide by the standard deviation.
    clip: Largest magnitude of a normalised value, None for no limit.
    name: Scope of the variables `count`, `mean` and `var_sum`.
    comm: MPI communicator; values of all processes are counted.
  """

  def __init__(
    self,
    template: tf.Tensor,
    center: bool = True,
    scale: bool = True,
    clip: float | None = 10,
    name: str = 'normalize',
    comm: Any = None,
  ) -> None:
    self._center = center
    self._scale = scale
    self._clip = clip
    self._name = name
    self._comm = comm
    shape = template.shape.as_list()
    with scopes.uncached_scope(name):
      self._count = _variable('count', (), tf.int32)
      self._mean = _variable('mean', shape, tf.float32)
      self._var_sum = _variable('var_sum', shape, tf.float32)

  def transform(self, value: tf.Tensor) -> tf.Tensor:
    """Normalise a value or a batch of them.

    Before the second value there is no deviation to divide by.

    Args:
      value: Float tensor [...] or [batch, ...].

    Returns:
      Float tensor of the same shape.
    """
    with tf.name_scope(f'{self._name}/transform'):
      value = tf.convert_to_tensor(value)
      single = value.shape.ndims == self._mean.shape.ndims
      value = value[None] if single else value
      if self._center:
        value -= self._mean[None]
      if self._scale:
        std = self._std() + 1e-8
        value /= tf.where(self._count > 1, std, tf.ones_like(std))[None]
      if self._clip:
        value = tf.clip_by_value(value, -self._clip, self._clip)
      value = value[0] if single else value
      return tf.check_numerics(value, 'value')

  def update(self, value: tf.Tensor) -> tf.Tensor:
    """Count a value, or a batch of them.

    Exact for batches; with n new values the deviation uses the old and the
    new mean (Chan et al., 1979).

    Args:
      value: Float tensor [...] or [batch, ...].

    Returns:
      Serialised summary of the mean of the input, `value`.
    """
    with tf.name_scope(f'{self._name}/update'):
      value = tf.convert_to_tensor(value)
      if value.shape.ndims == self._mean.shape.ndims:
        value = value[None]
      count = self._count + self._reduce(tf.shape(value)[0])
      with tf.control_dependencies([count]):
        change = self._reduce(tf.reduce_sum(value - self._mean[None], 0))
      mean = self._mean + change / tf.cast(count, tf.float32)
      mean = tf.where(count > 1, mean, value[0])
      var_sum = self._var_sum + self._reduce(
        tf.reduce_sum((value - self._mean[None]) * (value - mean[None]), 0)
      )
      # The old values have to be read before any of them changes.
      with tf.control_dependencies([count, mean, var_sum]):
        update = tf.group(
          self._count.assign(count),
          self._mean.assign(mean),
          self._var_sum.assign(var_sum),
        )
      with tf.control_dependencies([update]):
        return tf.summary.scalar('value', tf.reduce_mean(value))

  def reset(self) -> tf.Operation:
    """Forget all values."""
    with tf.name_scope(f'{self._name}/reset'):
      return tf.group(
        *[
          x.assign(tf.zeros_like(x))
          for x in (self._count, self._mean, self._var_sum)
        ]
      )

  def summary(self) -> tf.Tensor:
    """Define a summary of `mean` and `stddev`, as far as they exist."""
    with tf.name_scope(f'{self._name}/summary'):
      summarize = (
        tf.summary.histogram if self._mean.shape.ndims else tf.summary.scalar
      )
      return tf.summary.merge(
        [
          tf.cond(
            self._count > 0,
            lambda: summarize('mean', tf.identity(self._mean)),
            str,
          ),
          tf.cond(
            self._count > 1, lambda: summarize('stddev', self._std()), str
          ),
        ]
      )

  def _std(self):
    """Standard deviation; NaN below two values."""
    others = tf.cast(tf.maximum(self._count - 1, 1), tf.float32)
    # The constant keeps the square root away from zero.
    std = tf.sqrt(self._var_sum / others + 1e-4)
    return tf.where(self._count > 1, std, float('nan') * tf.ones_like(std))

  def _reduce(self, tensor):
    """Sum over all processes."""
    if self._comm is None:
      return tensor
    from agents.run import mpi_ops

    return mpi_ops.allreduce(tensor, self._comm)


def _variable(name, shape, dtype):
  return tf.get_variable(
    name, shape, dtype, tf.zeros_initializer(), trainable=False
  )
