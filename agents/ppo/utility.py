"""Returns, advantages, nested variables and summaries of PPO."""

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any

from agents.tools.diag_normal import diag_normal_entropy as diag_normal_entropy
from agents.tools.diag_normal import diag_normal_kl as diag_normal_kl
from agents.tools.diag_normal import diag_normal_logpdf as diag_normal_logpdf
from agents.tools.tf1 import tf


def discounted_return(
  reward: tf.Tensor, length: tf.Tensor, discount: float
) -> tf.Tensor:
  """Return the discounted sum of rewards until the end of the episode.

    R_t = m_t r_t + discount R_{t+1}, R_T = 0

  with the mask m_t = 1 if t < length else 0.

  Args:
    reward: Float tensor [batch, time].
    length: Lengths of the episodes int32 [batch].
    discount: Factor in [0, 1].

  Returns:
    Float tensor [batch, time] without gradient.
  """
  masked = sequence_mask(reward, length) * reward
  return_ = _scan_back(lambda agg, cur: cur + discount * agg, masked)
  return _constant(return_, 'return')


def fixed_step_return(
  reward: tf.Tensor,
  value: tf.Tensor,
  length: tf.Tensor,
  discount: float,
  window: int,
) -> tf.Tensor:
  """Return the discounted sum of `window` rewards plus the following value.

    G_t = m_t (sum_{k < window} discount^k r_{t+k}
               + discount^window V_{t+window})

  with zeros past the last step. As in the original, rewards past the end of
  an episode are not masked.

  Args:
    reward: Float tensor [batch, time].
    value: Values of the states [batch, time].
    length: Lengths of the episodes int32 [batch].
    discount: Factor in [0, 1].
    window: Number of rewards.

  Returns:
    Float tensor [batch, time] without gradient.
  """
  return_ = tf.zeros_like(reward)
  shifted = reward
  for step in range(window):
    return_ += discount**step * shifted
    shifted = _shift_left(shifted, 1)
  return_ += discount**window * _shift_left(value, window)
  return _constant(sequence_mask(reward, length) * return_, 'return')


def lambda_return(
  reward: tf.Tensor,
  value: tf.Tensor,
  length: tf.Tensor,
  discount: float,
  lambda_: float,
) -> tf.Tensor:
  """Return the exponentially weighted mean of n-step returns.

    G_t = m_t r_t + discount (1 - lambda) V_t + m_t discount lambda G_{t+1}

  with G_T = 0. As in the original, this uses V_t where V_{t+1} is expected.

  Args:
    reward: Float tensor [batch, time].
    value: Values of the states [batch, time].
    length: Lengths of the episodes int32 [batch].
    discount: Factor in [0, 1].
    lambda_: Weight of later returns, in [0, 1].

  Returns:
    Float tensor [batch, time] without gradient.
  """
  mask = sequence_mask(reward, length)
  sequence = mask * reward + discount * value * (1 - lambda_)
  factor = mask * discount * lambda_
  return_ = _scan_back(lambda agg, cur: cur[0] + cur[1] * agg, sequence, factor)
  return _constant(return_, 'return')


def lambda_advantage(
  reward: tf.Tensor,
  value: tf.Tensor,
  length: tf.Tensor,
  discount: float,
  gae_lambda: float = 1.0,
) -> tf.Tensor:
  """Estimate advantages by generalized advantage estimation (GAE).

    d_t = r_t + discount V_{t+1} - V_t, V_T = 0
    A_t = m_t d_t + discount gae_lambda A_{t+1}

  Source: Schulman et al. (2016), arXiv:1506.02438, equation 16.

  Args:
    reward: Float tensor [batch, time].
    value: Values of the states [batch, time].
    length: Lengths of the episodes int32 [batch].
    discount: Factor in [0, 1].
    gae_lambda: Weight of later differences, in [0, 1].

  Returns:
    Float tensor [batch, time] without gradient.
  """
  delta = reward + discount * _shift_left(value, 1) - value
  delta = sequence_mask(reward, length) * delta
  advantage = _scan_back(
    lambda agg, cur: cur + gae_lambda * discount * agg, delta
  )
  return _constant(advantage, 'advantage')


def sequence_mask(sequence: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
  """Return a float mask [batch, time] of the steps before the end."""
  steps = tf.range(tf.shape(sequence)[1])
  return tf.cast(steps[None, :] < length[:, None], tf.float32)


def reinit_nested_vars(
  variables: Any, indices: tf.Tensor | None = None
) -> tf.Operation:
  """Set rows of variables to zero.

  Args:
    variables: Nested tuples or lists of variables.
    indices: Rows to reset; all by default.

  Returns:
    Operation.
  """
  if isinstance(variables, (tuple, list)):
    return tf.group(*[reinit_nested_vars(x, indices) for x in variables])
  if indices is None:
    return variables.assign(tf.zeros_like(variables))
  rows = tf.shape(indices)[0]
  zeros = tf.zeros(tf.stack([rows] + variables.shape.as_list()[1:]))
  return tf.scatter_update(variables, indices, tf.cast(zeros, variables.dtype))


def assign_nested_vars(
  variables: Any, tensors: Any, indices: tf.Tensor | None = None
) -> tf.Operation:
  """Assign tensors to variables, or to some of their rows.

  Args:
    variables: Nested tuples or lists of variables.
    tensors: The same structure of tensors.
    indices: Rows to assign; all by default.

  Returns:
    Operation.
  """
  if isinstance(variables, (tuple, list)):
    return tf.group(
      *[
        assign_nested_vars(variable, tensor, indices)
        for variable, tensor in zip(variables, tensors)
      ]
    )
  if indices is None:
    return variables.assign(tensors)
  return tf.scatter_update(variables, indices, tensors)


def available_gpus() -> list[str]:
  """Return the names of the GPUs that TensorFlow can use."""
  count = len(tf.config.list_physical_devices('GPU'))
  return [f'/device:GPU:{index}' for index in range(count)]


def gradient_summaries(
  grad_vars: Sequence[tuple],
  groups: Mapping[str, str] | None = None,
  scope: str = 'gradients',
) -> tf.Tensor:
  """Define histograms of gradients, one per group of variables.

  Args:
    grad_vars: List of (gradient, variable); gradients may be None.
    groups: Dict from the name of a group to a regular expression, matched
      from the start of variable names; all variables by default.
    scope: Prefix of the tags.

  Returns:
    Serialized summary.
  """
  pairs = [(x.name, grad) for grad, x in grad_vars if grad is not None]
  return _histograms(pairs, groups, scope)


def variable_summaries(
  vars_: Sequence,
  groups: Mapping[str, str] | None = None,
  scope: str = 'weights',
) -> tf.Tensor:
  """Define histograms of variables, one per group.

  Args:
    vars_: List of variables.
    groups: Dict from the name of a group to a regular expression, matched
      from the start of variable names; all variables by default.
    scope: Prefix of the tags.

  Returns:
    Serialized summary.
  """
  return _histograms([(x.name, x) for x in vars_], groups, scope)


def _histograms(pairs, groups, scope):
  summaries = []
  for name, pattern in (groups or {'all': r'.*'}).items():
    members = [x for key, x in pairs if re.match(pattern, key)]
    if not members:
      logging.getLogger(__name__).warning(
        "No variables matching '%s' group.", name
      )
      continue
    values = tf.concat([tf.reshape(x, [-1]) for x in members], 0)
    summaries.append(tf.summary.histogram(f'{scope}/{name}', values))
  return tf.summary.merge(summaries) if summaries else tf.constant('')


def _scan_back(function, *sequences):
  """Accumulate from the last step to the first, starting with zero."""
  transposed = [tf.transpose(x) for x in sequences]
  elements = transposed[0] if len(transposed) == 1 else tuple(transposed)
  result = tf.scan(
    function,
    elements,
    tf.zeros_like(transposed[0][-1]),
    parallel_iterations=1,
    back_prop=False,
    reverse=True,
  )
  return tf.transpose(result)


def _shift_left(sequence, steps):
  """Sequence [batch, time] some steps earlier, padded with zeros."""
  length = tf.shape(sequence)[1]
  return tf.pad(sequence, [[0, 0], [0, steps]])[:, steps : steps + length]


def _constant(tensor, name):
  return tf.check_numerics(tf.stop_gradient(tensor), name)
