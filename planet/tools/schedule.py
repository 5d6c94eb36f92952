"""Values that depend on the training step."""

from agents.tools.tf1 import tf


def binary(
  step: tf.Tensor, batch_size: int, after: int, every: int, until: int = -1
) -> tf.Tensor:
  """Return whether an event is due within the batch that starts at a step.

  Args:
    step: Integer tensor.
    batch_size: Steps per execution.
    after: Step of the first event.
    every: Steps between two events.
    until: Step after the last event; no limit if not positive.

  Returns:
    Bool tensor.
  """
  step = tf.cast(step, tf.int32)
  due = tf.less(tf.math.floormod(step - after, every), batch_size)
  due = tf.logical_and(due, tf.greater_equal(step, after))
  if until is not None and until > 0:
    due = tf.logical_and(due, tf.less(step, until))
  return due


def linear(
  step: tf.Tensor, ramp: int, min: float | None = None, max: float | None = None
) -> tf.Tensor:
  """Ramp from 0 to 1, or from 1 to 0 if the ramp is negative.

  Args:
    step: Integer tensor.
    ramp: Length in steps; 0 gives a constant 1.
    min: Lower limit of the result, at most `max`.
    max: Upper limit of the result.

  Returns:
    Float32 tensor.

  Raises:
    ValueError: If the limits are not ordered within [0, 1].
  """
  if not 0 <= (min or 0) <= (1 if max is None else max) <= 1:
    raise ValueError(f'Limits are {min} and {max}; use 0 <= min <= max <= 1.')
  step = tf.cast(step, tf.float32)
  if ramp == 0:
    value = tf.ones_like(step)
  else:
    value = tf.minimum(step / abs(float(ramp)), 1.0)
    value = value if ramp > 0 else 1.0 - value
  if min is not None:
    value = tf.maximum(value, float(min))
  if max is not None:
    value = tf.minimum(value, float(max))
  return value


def linear_reset(
  step: tf.Tensor, ramp: int, after: int, every: int
) -> tf.Tensor:
  """Ramp from 0 to 1 that restarts regularly; not used by this project.

  Args:
    step: Integer tensor.
    ramp: Length in steps.
    after: Step of the first restart.
    every: Steps between restarts, more than `ramp`.

  Returns:
    Float32 tensor.

  Raises:
    ValueError: If the ramp does not end before the next restart.
  """
  if every <= ramp:
    raise ValueError(
      f'ramp is {ramp}, but every is {every}; use a shorter ramp.'
    )
  step = tf.cast(step, tf.int32)
  since = tf.where(
    tf.less(step, after), step, tf.math.floormod(step - after, every)
  )
  return tf.minimum(tf.cast(since, tf.float32) / float(ramp), 1.0)
