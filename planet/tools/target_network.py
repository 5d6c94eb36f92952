"""Target networks: copies of variables that follow slowly."""

from typing import Any

from agents.tools.tf1 import tf
from planet.tools import schedule
from planet.tools.copy_weights import soft_copy_weights


def track_network(
  trainer: Any,
  batch_size: int,
  source_pattern: str,
  target_pattern: str,
  every: int,
  amount: float,
) -> tf.Operation:
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
