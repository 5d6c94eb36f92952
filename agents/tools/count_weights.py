"""Count the trainable parameters of a graph."""

import math
import re

from agents.tools.tf1 import tf


def count_weights(
  scope: str | None = None,
  exclude: str | None = None,
  graph: tf.Graph | None = None,
) -> int:
  """Return the number of trainable scalars.

  Args:
    scope: Full path of a variable scope.
    exclude: Regular expression of variables to leave out, matched from the
      start of their names.
    graph: Graph to count in; the default graph if not given.
  """
  graph = graph or tf.get_default_graph()
  variables = graph.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES)
  if scope:
    scope = scope if scope.endswith('/') else scope + '/'
    variables = [x for x in variables if x.name.startswith(scope)]
  if exclude:
    variables = [x for x in variables if not re.match(exclude, x.name)]
  return sum(math.prod(x.shape.as_list()) for x in variables)
