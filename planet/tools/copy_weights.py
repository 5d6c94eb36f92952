"""Copy variables, completely or in part; not used by this project."""

import re

from agents.tools.tf1 import tf


def soft_copy_weights(
  source_pattern: str, target_pattern: str, amount: float
) -> tf.Operation:
  """Move variables towards the values of others.

  Args:
    source_pattern: Regular expression for names of variables to copy from.
    target_pattern: Regular expression for names of variables to change. Sorted
      by name, both sets must have the same shapes.
    amount: Fraction of the distance, in [0, 1].

  Returns:
    Operation.

  Raises:
    ValueError: If the shapes of both sets differ or a set is empty.
  """
  sources = _find(source_pattern)
  targets = _find(target_pattern)
  if [x.shape.as_list() for x in sources] != [
    x.shape.as_list() for x in targets
  ]:
    raise ValueError(
      f'Variables {[x.name for x in sources]} differ in number or shape from '
      f'{[x.name for x in targets]}.'
    )
  return tf.group(
    *[
      target.assign((1 - amount) * target + amount * source)
      for source, target in zip(sources, targets)
    ]
  )


def _find(pattern):
  variables = {x.name: x for x in tf.trainable_variables()}
  names = sorted(x for x in variables if re.match(pattern, x))
  if not names:
    raise ValueError(
      f'Pattern {pattern!r} matches none of {sorted(variables)}; it must '
      'match from the start of a name.'
    )
  return [variables[name] for name in names]
