"""Summaries of single steps; those of updates are in `update`."""

from typing import Any

from agents.ppo import normalize
from agents.tools.tf1 import tf


def summarize_actions(decision: Any) -> tf.Tensor:
  """Summarise what the policy proposes and what is done.

  Args:
    decision: `agents.ppo.policy.Decision`.

  Returns:
    Serialised summary.
  """
  action, policy, _ = decision
  values = {
    **policy.describe(),
    'action': action,
    'logprob': policy.log_prob(action),
  }
  return tf.summary.merge(
    [tf.summary.histogram(name, value) for name, value in values.items()]
  )


def summarize_experience(
  observ_filter: normalize.StreamingNormalize,
  reward_filter: normalize.StreamingNormalize,
  memory_size: tf.Tensor,
  observ: tf.Tensor,
  action: tf.Tensor,
  reward: tf.Tensor,
) -> tf.Tensor:
  """Summarise transitions and the statistics that normalise them.

  Args:
    observ_filter: Statistics of observations.
    reward_filter: Statistics of rewards.
    memory_size: Number of episodes in the memory, int32 scalar.
    observ: Observations [rows, ...].
    action: Actions [rows, ...].
    reward: Rewards [rows].

  Returns:
    Serialised summary.
  """
  normalized_observ = observ_filter.transform(observ)
  normalized_reward = tf.reduce_mean(reward_filter.transform(reward))
  return tf.summary.merge(
    [
      observ_filter.summary(),
      reward_filter.summary(),
      tf.summary.scalar('memory_size', memory_size),
      tf.summary.histogram('normalized_observ', normalized_observ),
      tf.summary.histogram('action', action),
      tf.summary.scalar('normalized_reward', normalized_reward),
    ]
  )
