"""Non-trainable variables, and scopes that do not cache reads."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from agents.tools.tf1 import tf


@contextlib.contextmanager
def uncached_scope(name: Any, default_name: str | None = None) -> Iterator[Any]:
  """Open a variable scope of resource variables without caching.

  `tf.scan` and `tf.nn.dynamic_rnn` enable caching for variables created inside
  them. Such a variable is read only once per execution, so assignments during
  the execution are silently ignored.

  Args:
    name: Name of the scope, or None for a unique one.
    default_name: Name to make unique if `name` is None.

  Yields:
    The scope.
  """
  with tf.variable_scope(name, default_name, use_resource=True) as scope:
    scope.set_caching_device(None)
    yield scope


def variable(
  name: str,
  shape: Sequence[int],
  dtype: tf.DType = tf.float32,
  initializer: Any = None,
  **more: Any,
) -> tf.Variable:
  """Create a non-trainable variable, zeros by default."""
  initializer = initializer or tf.zeros_initializer()
  return tf.get_variable(
    name, shape, dtype, initializer, trainable=False, **more
  )
