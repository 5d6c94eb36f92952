"""Target networks, slow copies of variables; not used by this project."""

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
  """Update a target network.

  Copies the variables at global step 0. Afterwards, moves the target by a
  fraction of the distance at regular intervals of the training phase.

  Args:
    trainer: Trainer with `step`, `global_step` and `phase`.
    batch_size: Steps per execution.
    source_pattern: Regular expression for names of source variables.
    target_pattern: Regular expression for names of target variables.
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
