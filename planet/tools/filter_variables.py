"""Select variables by their names."""

import re
from collections.abc import Sequence

from agents.tools.tf1 import tf


def filter_variables(
  include: str | Sequence[str] | None = None,
  exclude: str | Sequence[str] | None = None,
) -> list[tf.Variable]:
  """Select global variables by regular expressions that match from the start.

  Args:
    include: Regular expression or list of them; everything by default.
    exclude: Regular expression or list of them; nothing by default.

  Returns:
    List of variables in order of creation.

  Raises:
    RuntimeError: If an expression in `include` matches no variable, or no
      variable is left.
  """
  included = _as_patterns(['.*'] if include is None else include)
  excluded = _as_patterns([] if exclude is None else exclude)
  variables = tf.global_variables()
  for pattern in included:
    if not any(pattern.match(x.name) for x in variables):
      raise RuntimeError(
        f'Variable filter {pattern.pattern!r} matches none '
        f'of {[x.name for x in variables]}.'
      )
  chosen = [
    x
    for x in variables
    if any(pattern.match(x.name) for pattern in included)
    and not any(pattern.match(x.name) for pattern in excluded)
  ]
  if not chosen:
    raise RuntimeError('No variables are left after filtering.')
  return chosen


def _as_patterns(expressions):
  if isinstance(expressions, str):
    expressions = [expressions]
  return [re.compile(x) for x in expressions]
