"""Functions that run parts of a graph, with little overhead per call."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from agents.tools.tf1 import CallableOptions, tf


def make_function(
  fetches: Sequence[tf.Tensor] | tf.Operation,
  feeds: Sequence[tf.Tensor],
  sess: tf.Session,
  *,
  small: bool = False,
) -> Callable[..., Any]:
  """Define a function that runs a part of a graph.

  A call takes less time than `Session.run`, which looks everything up again.

  Args:
    fetches: List of tensors, or one operation.
    feeds: List of tensors.
    sess: Session to run in.
    small: Whether to run in the calling thread, because passing a small graph
      to TensorFlow's threads takes longer than running it. Subnormal numbers
      make the calling thread many times slower; TensorFlow's flush them to 0.

  Returns:
    Function from one array of the right dtype per feed to a list of arrays.
  """
  options = CallableOptions()
  options.feed.extend(x.name for x in feeds)
  if isinstance(fetches, tf.Operation):
    options.target.append(fetches.name)
  else:
    options.fetch.extend(x.name for x in fetches)
  if small:
    options.run_options.inter_op_thread_pool = -1
  types = [x.dtype.as_numpy_dtype for x in feeds]

  # TensorFlow optimizes the graph here, and many agents need few functions.
  @functools.cache
  def run() -> Callable[..., Any]:
    return sess._make_callable_from_options(options)

  def function(*arrays: Any) -> list[np.ndarray]:
    return run()(*[np.asarray(x, t) for x, t in zip(arrays, types)])

  return function
