"""Python errors from inside of the graph, without TensorFlow around them."""

import contextlib
import functools
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

_last: list[Exception] = []


def remember(function: Callable[..., Any]) -> Callable[..., Any]:
  """Decorator for functions given to `tf.py_func`."""

  @functools.wraps(function)
  def wrapper(*args, **kwargs):
    try:
      return function(*args, **kwargs)
    except Exception as error:
      _last[:] = [error]
      raise

  return wrapper


@contextlib.contextmanager
def unwrapped() -> Iterator[None]:
  """Raise the remembered error instead of TensorFlow's report about it."""
  from agents.tools.tf1 import tf

  _last.clear()
  try:
    yield
  except tf.errors.OpError:
    if _last:
      raise _last.pop() from None
    raise
