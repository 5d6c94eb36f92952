"""Summaries of single steps; those of updates are in `update`."""

from agents.tools.tf1 import tf


def summarize_actions(output, action):
  """Summarise what the policy proposes and what is done.

  Args:
    output: `NetworkOutput` of tensors [rows, 1, ...].
    action: Actions float32 [rows, 1, size].

  Returns:
    Serialised summary.
  """
  return tf.summary.merge(
    [
      tf.summary.histogram('mean', output.mean[:, 0]),
      tf.summary.histogram('std', tf.exp(output.logstd[:, 0])),
      tf.summary.histogram('action', action[:, 0]),
      tf.summary.histogram('logprob', output.policy.log_prob(action)[:, 0]),
    ]
  )


def summarize_experience(filters, memory_size, observ, action, reward):
  """Summarise transitions and the statistics that normalise them.

  Args:
    filters: `StreamingNormalize` of observations and of rewards.
    memory_size: Number of episodes in the memory, int32 scalar.
    observ: Observations [rows, ...].
    action: Actions [rows, size].
    reward: Rewards [rows].

  Returns:
    Serialised summary.
  """
  observ_filter, reward_filter = filters
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
