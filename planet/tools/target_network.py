"""Copies of networks that follow the original slowly."""

import re

from agents.tools.tf1 import tf
from planet.tools import schedule


def track_network(
  trainer, batch_size, source_pattern, target_pattern, every, amount
):
  """Keep one set of variables close to another one.

  At global step 0 the copy is complete. Afterwards, every so many steps of
  the training phase, the target moves by a fraction of the distance.

  Args:
    trainer: Trainer that tells step, global step and phase.
    batch_size: Steps made by one execution.
    source_pattern: Regular expression of the variables to follow.
    target_pattern: Regular expression of the variables that follow.
    every: Training steps between two updates.
    amount: Fraction of the distance, in [0, 1].

  Returns:
    Operation.
  """
  first = tf.equal(trainer.global_step, 0)
  due = tf.logical_and(
    tf.equal(trainer.phase, 'train'),
    schedule.binary(trainer.step, batch_size, 0, every),
  )
  return tf.cond(
    first,
    lambda: soft_copy_weights(source_pattern, target_pattern, 1.0),
    lambda: tf.cond(
      due,
      lambda: soft_copy_weights(source_pattern, target_pattern, amount),
      tf.no_op,
    ),
  )


def soft_copy_weights(source_pattern, target_pattern, amount):
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
