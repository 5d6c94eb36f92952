"""Streaming mean inside the graph."""

from collections.abc import Sequence
from typing import Any

from agents.tools import mpi_ops, scopes
from agents.tools.tf1 import tf


class StreamingMean:
  """Mean over all values submitted since the last clear.

  Args:
    shape: Shape of one value.
    dtype: Type of the values.
    name: Scope of the two variables, `sum` and `count`. By default, a new
      scope.
    comm: MPI communicator; with several processes, `clear` returns the mean
      over all of them, and all must call it.
  """

  def __init__(
    self,
    shape: Sequence[int],
    dtype: tf.DType,
    name: str | None = None,
    comm: Any = None,
  ):
    self._comm = comm
    self._dtype = dtype
    self._shape = tuple(shape)
    with scopes.uncached_scope(name, 'streaming_mean'):
      self._sum = scopes.variable('sum', shape, dtype)
      self._count = scopes.variable('count', (), tf.int32)

  @property
  def value(self) -> tf.Tensor:
    """Current mean; NaN for floats if nothing was submitted."""
    return self._sum / tf.cast(self._count, self._dtype)

  @property
  def count(self) -> tf.Tensor:
    """Number of submitted values, int32."""
    return tf.identity(self._count)

  def submit(self, value: Any) -> tf.Operation:
    """Add one value, or a batch of values along the first dimension.

    Returns:
      Operation.

    Raises:
      ValueError: If the shape is neither that of a value nor of a batch.
    """
    value = tf.convert_to_tensor(value, self._dtype)
    if value.shape.ndims == len(self._shape):
      value = value[None]
    return tf.group(
      self._sum.assign_add(tf.reduce_sum(value, 0)),
      self._count.assign_add(tf.shape(value)[0]),
    )

  def clear(self) -> tf.Tensor:
    """Return the mean and start over."""
    return self.clear_counted()[0]

  def clear_counted(self) -> tuple[tf.Tensor, tf.Tensor]:
    """Return the mean and the number of values, and start over."""
    count = tf.cast(self._count, self._dtype)
    total, count = mpi_ops.allreduce_all([self._sum, count], self._comm)
    value = total / count
    with tf.control_dependencies([value]):
      forget = self.forget()
    with tf.control_dependencies([forget]):
      return tf.identity(value), tf.identity(count)

  def forget(self) -> tf.Operation:
    """Start over, in this process only."""
    return tf.group(
      self._sum.assign(tf.zeros(self._shape, self._dtype)),
      self._count.assign(0),
    )
