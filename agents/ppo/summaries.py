"""Summaries of single steps; those of updates are in `update`."""

from typing import Any

from agents.ppo import normalize
from agents.ppo import utility
from agents.tools.tf1 import tf


def summarize_actions(decision: Any) -> tf.Tensor:
  """Summarise what the policy proposes and what is done.

  Args:
    decision: `agents.ppo.policy.Decision`.

  Returns:
    Serialised summary.
  """
  action, mean, logstd, _ = decision
  return tf.summary.merge(
    [
      tf.summary.histogram('mean', mean),
      tf.summary.histogram('std', tf.exp(logstd)),
      tf.summary.histogram('action', action),
      tf.summary.histogram(
        'logprob', utility.diag_normal_logpdf(mean, logstd, action)
      ),
    ]
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
    action: Actions [rows, size].
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
