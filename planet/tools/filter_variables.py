"""Select variables by their names."""

import re

from agents.tools.tf1 import tf


def filter_variables(include=None, exclude=None):
  """Global variables whose names match, from their start.

  Args:
    include: Regular expression or list of them; everything by default.
    exclude: Regular expression or list of them; nothing by default.

  Returns:
    List of variables in order of creation.

  Raises:
    RuntimeError: If there are no variables, an expression to include matches
      nothing, or nothing is left.
  """
  include = _as_patterns(['.*'] if include is None else include)
  exclude = _as_patterns([] if exclude is None else exclude)
  variables = tf.global_variables()
  if not variables:
    raise RuntimeError('There are no variables to filter.')
  for pattern in include:
    if not any(pattern.match(x.name) for x in variables):
      raise RuntimeError(
        f'Variable filter {pattern.pattern!r} matches none '
        f'of {[x.name for x in variables]}.'
      )
  chosen = [
    x
    for x in variables
    if any(pattern.match(x.name) for pattern in include)
    and not any(pattern.match(x.name) for pattern in exclude)
  ]
  if not chosen:
    raise RuntimeError('No variables are left after filtering.')
  return chosen


def _as_patterns(expressions):
  if isinstance(expressions, str):
    expressions = [expressions]
  return [re.compile(x) for x in expressions]
