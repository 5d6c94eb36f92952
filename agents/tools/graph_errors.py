"""Re-raise Python errors from inside the graph without TensorFlow's wrapper."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

# Collection of the graph for what its Python functions have raised.
_COLLECTION = 'python_errors'


def remember(function: Callable[..., Any]) -> Callable[..., Any]:
  """Decorate a function for `tf.py_func` in the default graph.

  It belongs to the training that defines the graph, in whatever thread
  TensorFlow calls it.
  """
  from agents.run import training
  from agents.tools.tf1 import tf

  raised, owner = tf.get_collection_ref(_COLLECTION), training.current()

  @functools.wraps(function)
  def wrapper(*args, **kwargs):
    try:
      with training.as_part_of(owner):
        return function(*args, **kwargs)
    except StopIteration:
      # From a generator that has failed before; keep its error.
      raise
    except Exception as error:
      raised[:] = [error]
      raise

  return wrapper


@contextlib.contextmanager
def unwrapped(graph: Any = None) -> Iterator[None]:
  """Raise the remembered error instead of TensorFlow's version of it.

  Args:
    graph: Graph that is run, by default the one of the failed operation.
  """
  from agents.tools.tf1 import tf

  try:
    yield
  except tf.errors.OpError as error:
    if graph is None:
      graph = error.op.graph if error.op else tf.get_default_graph()
    raised = graph.get_collection_ref(_COLLECTION)
    if raised:
      raise raised.pop() from None
    raise
