"""Latent overshooting: predict several steps ahead from every step."""

from typing import Any

from agents.tools import nested
from agents.tools.tf1 import tf
from planet.tools import unroll
from planet.tools.mask import mask as mask_tensor
from planet.tools.shape import shape


def overshooting(
  cell: Any,
  target: Any,
  embedded: Any,
  prev_action: Any,
  length: tf.Tensor,
  amount: int,
  posterior: Any = None,
  ignore_input: bool = False,
) -> tuple[Any, Any, Any, tf.Tensor]:
  """Predict the next steps from every step of a sequence.

  Entry (t, e) of the results belongs to time t + e and is predicted from the
  posterior at t - 1 in e + 1 steps without observations. Entries beyond the end
  of their sequence are zero.

  Source: latent overshooting, Hafner et al. (2019), arXiv:1811.04551, section
  4, equation 5. The loss, equation 7, is in `planet.training.objectives`.

  Args:
    cell: Model, see `planet.models.Base`.
    target: Nested structure of tensors [batch, time, ...] to align.
    embedded: Encoded observations float32 [batch, time, embedding], or a
      nested structure of such tensors.
    prev_action: Actions before the observations, float32 [batch, time,
      actions], or a nested structure of such tensors.
    length: Lengths of the sequences int32 [batch].
    amount: Largest distance.
    posterior: Filtered states [batch, time, ...]; computed if not given.
    ignore_input: Unused, as in the original.

  Returns:
    Tuple of targets, priors, posteriors and a bool mask of valid entries, all
    [batch, time, amount + 1, ...].
  """
  del ignore_input
  if posterior is None:
    _, posterior = unroll.closed_loop(cell, embedded, prev_action)
  batch, time = shape(nested.flatten(prev_action)[0])[:2]
  within = tf.sequence_mask(length, time)
  valid = _align(within, amount)
  start = nested.map(_shift_right, posterior)
  distances = tf.clip_by_value(
    length[:, None] - tf.range(time)[None], 0, amount + 1
  )
  prior = unroll.predict(
    cell,
    nested.map(_merge_dims, start),
    nested.map(lambda x: _merge_dims(_align(x, amount)), prev_action),
    embedded,
    tf.reshape(distances, [-1]),
  )
  prior = nested.map(lambda x: _split_dims(x, batch, time), prior)
  target, posterior = [
    nested.map(lambda x: mask_tensor(_align(x, amount), valid), structure)
    for structure in (target, posterior)
  ]
  return target, prior, posterior, valid


def _align(tensor, amount):
  """Stack the sequence shifted left by 0 to `amount` steps, zero-padded."""
  padding = [[0, 0], [0, amount]] + [[0, 0]] * (tensor.shape.ndims - 2)
  padded = tf.pad(tensor, padding)
  size = tf.shape(tensor)
  shifted = []
  for distance in range(amount + 1):
    begin = [0, distance] + [0] * (tensor.shape.ndims - 2)
    part = tf.slice(padded, begin, size)
    part.set_shape(tensor.shape)
    shifted.append(part)
  return tf.stack(shifted, 2)


def _shift_right(tensor):
  """Shift the sequence one step to the right and prepend zeros."""
  padding = [[0, 0], [1, 0]] + [[0, 0]] * (tensor.shape.ndims - 2)
  shifted = tf.slice(
    tf.pad(tensor, padding), [0] * tensor.shape.ndims, tf.shape(tensor)
  )
  shifted.set_shape(tensor.shape)
  return shifted


def _merge_dims(tensor):
  """Merge batch and time: [batch, time, ...] to [batch * time, ...]."""
  sizes = shape(tensor)
  merged = tf.reshape(tensor, tf.stack([sizes[0] * sizes[1]] + sizes[2:]))
  merged.set_shape([None] + tensor.shape.as_list()[2:])
  return merged


def _split_dims(tensor, batch, time):
  """Undo `_merge_dims`."""
  sizes = shape(tensor)[1:]
  split = tf.reshape(tensor, tf.stack([batch, time] + sizes))
  split.set_shape([None, None] + tensor.shape.as_list()[1:])
  return split
