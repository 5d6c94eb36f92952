"""Episodes of different lengths in variables of the graph."""

from collections.abc import Sequence

from agents.tools import scopes
from agents.tools.tf1 import tf


class EpisodeMemory:
  """Memory of a fixed number of episodes, one per row.

  Every row has a length; values past it are undefined.

  Args:
    template: Tuple of tensors shaped like the elements of one transition.
    capacity: Number of episodes.
    max_length: Maximum number of steps per episode.
    scope: Scope of the variables.
  """

  def __init__(
    self,
    template: Sequence[tf.Tensor],
    capacity: int,
    max_length: int,
    scope: str,
  ) -> None:
    self._capacity = capacity
    self._max_length = max_length
    with scopes.uncached_scope(scope):
      self._length = scopes.variable('length', (capacity,), tf.int32)
      self._buffers = [
        scopes.variable(
          f'buffer{index}',
          [capacity, max_length, *element.shape.as_list()],
          element.dtype.base_dtype,
        )
        for index, element in enumerate(template)
      ]

  def length(self, rows: tf.Tensor | None = None) -> tf.Tensor:
    """Return the lengths, int32 [rows], of some episodes, all by default."""
    return tf.gather(self._length, self._rows(rows))

  def append(
    self, transitions: Sequence[tf.Tensor], rows: tf.Tensor | None = None
  ) -> tf.Operation:
    """Add one step to the end of some episodes.

    Args:
      transitions: Tuple of tensors [rows, ...] like the template.
      rows: Different episodes to add to, int32 [rows]; all by default.

    Returns:
      Operation.

    Raises:
      tf.errors.InvalidArgumentError: If a row exceeds the capacity, or its
        episode already has the maximum length.
    """
    rows = self._rows(rows)
    with tf.control_dependencies([self._check_rows(rows)]):
      step = tf.gather(self._length, rows)
    check = tf.assert_less(
      step, self._max_length, message='max length exceeded'
    )
    with tf.control_dependencies([check]):
      indices = tf.stack([rows, step], 1)
      append = [
        tf.scatter_nd_update(buffer_, indices, elements)
        for buffer_, elements in zip(self._buffers, transitions)
      ]
    with tf.control_dependencies(append):
      return tf.group(tf.scatter_update(self._length, rows, step + 1))

  def replace(
    self,
    episodes: Sequence[tf.Tensor],
    length: tf.Tensor,
    rows: tf.Tensor | None = None,
  ) -> tf.Operation:
    """Overwrite entire episodes, including their padding.

    Args:
      episodes: Tuple of tensors [rows, max_length, ...] like the template.
      length: Their lengths int32 [rows].
      rows: Episodes to overwrite, int32 [rows]; all by default.

    Returns:
      Operation.

    Raises:
      tf.errors.InvalidArgumentError: If a row exceeds the capacity, or a length
        exceeds the maximum.
    """
    rows = self._rows(rows)
    check = tf.assert_less_equal(
      length, self._max_length, message='max length exceeded'
    )
    with tf.control_dependencies([check, self._check_rows(rows)]):
      replace = [
        tf.scatter_update(buffer_, rows, elements)
        for buffer_, elements in zip(self._buffers, episodes)
      ]
    with tf.control_dependencies(replace):
      return tf.group(tf.scatter_update(self._length, rows, length))

  def data(self, rows: tf.Tensor | None = None) -> tuple[list, tf.Tensor]:
    """Return entire episodes and their lengths.

    Args:
      rows: Episodes to read, int32 [rows]; all by default.

    Returns:
      Tuple of a list of tensors [rows, max_length, ...] and the lengths int32
      [rows].
    """
    rows = self._rows(rows)
    return [tf.gather(x, rows) for x in self._buffers], self.length(rows)

  def clear(self, rows: tf.Tensor | None = None) -> tf.Operation:
    """Set the lengths of some episodes to zero, all by default."""
    rows = self._rows(rows)
    return tf.group(tf.scatter_update(self._length, rows, tf.zeros_like(rows)))

  def _rows(self, rows):
    rows = tf.range(self._capacity) if rows is None else rows
    rows = tf.convert_to_tensor(rows, tf.int32)
    assert rows.shape.ndims == 1, rows
    return rows

  def _check_rows(self, rows):
    return tf.assert_less(rows, self._capacity, message='capacity exceeded')
