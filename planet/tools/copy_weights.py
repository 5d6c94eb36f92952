"""Move variables towards others."""

import re

from agents.tools.tf1 import tf


def soft_copy_weights(
  source_pattern: str, target_pattern: str, amount: float
) -> tf.Operation:
  """Move variables towards others.

  Args:
    source_pattern: Regular expression of the variables to copy from.
    target_pattern: Regular expression of the variables to change; as many,
      in the same order of names.
    amount: Fraction of the distance, in [0, 1].

  Returns:
    Operation.

  Raises:
    ValueError: If the two sets of variables do not correspond, or one of
      them is empty.
  """
  sources = _find(source_pattern)
  targets = _find(target_pattern)
  if [x.shape.as_list() for x in sources] != [
    x.shape.as_list() for x in targets
  ]:
    raise ValueError(
      f'Variables {[x.name for x in sources]} do not correspond to '
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
      f'Pattern {pattern!r} matches none of {sorted(variables)}; it has to '
      'match the name from its start.'
    )
  return [variables[name] for name in names]
