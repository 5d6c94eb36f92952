"""Streaming mean and standard deviation."""

import collections
from collections.abc import Sequence
from typing import Any

from agents.tools import mpi_ops, scopes
from agents.tools.tf1 import tf

_Moments = collections.namedtuple('_Moments', 'count, mean, var_sum')


class StreamingNormalize:
  """Normalize values by the statistics of all values so far, without decay.

  Args:
    template: Tensor shaped like one value.
    center: Whether to subtract the mean.
    scale: Whether to divide by the standard deviation.
    clip: Maximum magnitude of a normalized value, None for no limit.
    name: Scope of the variables `count`, `mean` and `var_sum`.
  """

  def __init__(
    self,
    template: tf.Tensor,
    center: bool = True,
    scale: bool = True,
    clip: float | None = 10,
    name: str = 'normalize',
  ) -> None:
    self._center = center
    self._scale = scale
    self._clip = clip
    self._name = name
    shape = template.shape.as_list()
    self._seen = _define_moments(name, shape)
    self._base: Any = None

  def transform(self, value: tf.Tensor) -> tf.Tensor:
    """Normalize a value or a batch of values.

    Does not divide by the standard deviation before the second value.

    Args:
      value: Float tensor [...] or [batch, ...].

    Returns:
      Float tensor of the same shape.
    """
    with tf.name_scope(f'{self._name}/transform'):
      value = tf.convert_to_tensor(value)
      single = value.shape.ndims == self._seen.mean.shape.ndims
      value = value[None] if single else value
      if self._center:
        value -= self._seen.mean[None]
      if self._scale:
        std = self._std() + 1e-8
        value /= tf.where(self._seen.count > 1, std, tf.ones_like(std))[None]
      if self._clip:
        value = tf.clip_by_value(value, -self._clip, self._clip)
      value = value[0] if single else value
      return tf.check_numerics(value, 'value')

  def update(self, value: tf.Tensor) -> tf.Tensor:
    """Add a value, or a batch of values, to the statistics.

    The sum of squares S grows by the sum of (x - old mean) (x - new mean),
    which is exact for batches, too (Chan et al., 1979).

    Args:
      value: Float tensor [...] or [batch, ...].

    Returns:
      Serialized summary of the mean of the input, `value`.
    """
    with tf.name_scope(f'{self._name}/update'):
      value = tf.convert_to_tensor(value)
      if value.shape.ndims == self._seen.mean.shape.ndims:
        value = value[None]
      old = self._seen
      count = old.count + tf.shape(value)[0]
      change = tf.reduce_sum(value - old.mean[None], 0)
      mean = old.mean + change / tf.cast(count, tf.float32)
      mean = tf.where(count > 1, mean, value[0])
      var_sum = old.var_sum + tf.reduce_sum(
        (value - old.mean[None]) * (value - mean[None]), 0
      )
      with tf.control_dependencies([_assign(old, count, mean, var_sum)]):
        return tf.summary.scalar('value', tf.reduce_mean(value))

  def moments(self) -> tuple[_Moments, _Moments]:
    """Return count, mean and sum of squares, float64: current and marked."""
    if self._base is None:
      shape = self._seen.mean.shape.as_list()
      self._base = _define_moments(f'{self._name}_temporary', shape)
    pair = [
      [tf.cast(x, tf.float64) for x in y] for y in (self._seen, self._base)
    ]
    return _Moments(*pair[0]), _Moments(*pair[1])

  def mark(self) -> tf.Operation:
    """Store the current statistics as the starting point of a `merge`."""
    seen, _ = self.moments()
    return _assign(self._base, *seen)

  def restart(self, *moments: tf.Tensor) -> tf.Operation:
    """Set count, mean and sum of squares, and mark them."""
    return tf.group(
      _assign(self._seen, *moments), _assign(self._base, *moments)
    )

  def reset(self) -> tf.Operation:
    """Clear the statistics."""
    with tf.name_scope(f'{self._name}/reset'):
      return tf.group(*[x.assign(tf.zeros_like(x)) for x in self._seen])

  def summary(self) -> tf.Tensor:
    """Define a summary of `mean` and `stddev`, if they exist."""
    with tf.name_scope(f'{self._name}/summary'):
      single = not self._seen.mean.shape.ndims
      summarize = tf.summary.scalar if single else tf.summary.histogram
      return tf.summary.merge(
        [
          tf.cond(
            self._seen.count > 0,
            lambda: summarize('mean', tf.identity(self._seen.mean)),
            str,
          ),
          tf.cond(
            self._seen.count > 1, lambda: summarize('stddev', self._std()), str
          ),
        ]
      )

  def _std(self):
    """Standard deviation; NaN below two values."""
    others = tf.cast(tf.maximum(self._seen.count - 1, 1), tf.float32)
    # The constant keeps the square root away from zero.
    std = tf.sqrt(self._seen.var_sum / others + 1e-4)
    return tf.where(self._seen.count > 1, std, float('nan') * tf.ones_like(std))


class Unchanged:
  """Stands for a `StreamingNormalize` where the network scales the values."""

  def transform(self, value: tf.Tensor) -> tf.Tensor:
    """Return the value."""
    return value

  def update(self, unused_value: tf.Tensor) -> tf.Tensor:
    """Return an empty summary."""
    return tf.constant('')

  def mark(self) -> tf.Operation:
    """Do nothing."""
    return tf.no_op()

  def summary(self) -> tf.Tensor:
    """Return an empty summary."""
    return tf.constant('')


def merge(filters: Sequence[StreamingNormalize], comm: Any) -> tf.Operation:
  """Combine the statistics of several processes with the same starting point.

  All processes must execute it, see `agents.tools.mpi_ops`. The starting point
  is the state stored by `mark`, or the last merge. Exact up to rounding (Chan
  et al., 1979).

  Args:
    filters: List of filters.
    comm: MPI communicator.

  Returns:
    Operation.
  """
  with tf.name_scope('merge'):
    others = comm.Get_size() - 1
    moments = [x.moments() for x in filters]
    parts = []
    for seen, base in moments:
      shift = seen.mean - base.mean
      squares = seen.var_sum + seen.count * shift**2
      parts += [seen.count, seen.count * shift, squares]
    sums = iter(mpi_ops.allreduce_all(parts, comm))
    updates = []
    for x, (_, base) in zip(filters, moments):
      count = next(sums) - others * base.count
      shift = next(sums) / tf.maximum(count, 1)
      squares = next(sums) - others * base.var_sum
      var_sum = tf.maximum(squares - count * shift**2, 0)
      updates.append(x.restart(count, base.mean + shift, var_sum))
    return tf.group(*updates)


def _define_moments(scope, shape):
  """Create variables, all zero."""
  with scopes.uncached_scope(scope):
    return _Moments(
      scopes.variable('count', (), tf.int32),
      scopes.variable('mean', shape),
      scopes.variable('var_sum', shape),
    )


def _assign(variables, *values):
  """Assign values, once all of them are known: they depend on the old ones."""
  with tf.control_dependencies(values):
    return tf.group(
      *[x.assign(tf.cast(y, x.dtype)) for x, y in zip(variables, values)]
    )
