"""Update of PPO: advantage, losses, epochs and penalty.

All means are taken over all steps of all episodes, including padding, as in
the original; masks only zero the steps past the end.
"""

import collections
from collections.abc import Callable
from typing import Any

from agents.ppo import utility
from agents.run import errors
from agents.tools import graph_errors, mpi_ops, saver
from agents.tools.tf1 import tf

Episodes = collections.namedtuple(
  'Episodes', 'observ, action, policy, reward, length'
)
# Episodes without the padding behind the longest one, [episodes, time, ...].
_Batch = collections.namedtuple(
  '_Batch', 'observ, action, policy, return_, advantage, mask, length, horizon'
)


def define_update(
  episodes: Episodes,
  network: Callable[..., Any],
  optimizer: Any,
  penalty: Any,
  config: Any,
  comm: Any = None,
  scope: str = f'{saver.OPTIMIZER}/',
) -> tf.Tensor:
  """Improve policy and value in full-batch epochs, then adapt the penalty.

  Source: Schulman et al. (2017), arXiv:1707.06347, section 4.

  Args:
    episodes: `Episodes` with normalized observations [episodes, time, ...],
      actions, their distributions, normalized rewards [episodes, time], and
      lengths int32 [episodes].
    network: Template from observations and lengths to an output with the
      parameters of a distribution, see `agents.networks`.
    optimizer: A TensorFlow 1 optimizer.
    penalty: Variable of the weight of the divergence.
    config: AttrDict, see `agents.configs`.
    comm: MPI communicator, None for a single process; sums cover the episodes
      of all.
    scope: Name scope of the optimizer's variables, ending in a slash.
      Checkpoints need names that do not depend on the position in the graph.

  Returns:
    Serialized summary.
  """
  horizon = episodes.reward.shape.as_list()[1]
  count = float(config.update_every)

  def mean(tensor):
    """This process's part of the mean over all steps of all episodes."""
    return tf.reduce_sum(tensor) / (count * horizon)

  def mean_of_all(tensor):
    return mpi_ops.allreduce(mean(tensor), comm)

  value = network(episodes.observ, episodes.length).value
  # Integers, because gradients within a loop look at loops before it even
  # behind `stop_gradient`, and fail if those are in no other loop.
  value = tf.bitcast(tf.bitcast(value, tf.int32), tf.float32)
  return_, advantage = _estimate(episodes, value, config)
  center = mean_of_all(advantage)
  variance = mean_of_all((advantage - center) ** 2)
  advantage = (advantage - center) / (tf.sqrt(variance) + 1e-8)
  scalars = {
    'mean_return': mean(return_),
    'mean_value': mean(value),
    'normalized_advantage': mean(advantage),
  }
  return_ = tf.stop_gradient(return_)
  advantage = tf.check_numerics(tf.stop_gradient(advantage), 'advantage')

  def update_step(index, summary, sums):
    """Take an optimizer step for both losses at the current weights."""
    output = network(batch.observ, batch.length)
    value_loss = 0.5 * batch.mask * (batch.return_ - output.value) ** 2
    terms = _policy_loss(batch, output, penalty, config)
    losses = {
      'value': mean(value_loss),
      'policy': tf.reduce_sum(terms['policy_loss']) / count,
    }
    gradients = _compute_gradients(losses, comm)
    with tf.name_scope(scope):
      apply = optimizer.apply_gradients(_add_up(gradients.values()))
    with tf.control_dependencies([apply]):
      summary = tf.cond(
        tf.equal(index, config.update_epochs // 2),
        lambda: _summarize(
          batch, output, losses, gradients, value_loss, terms, config, comm
        ),
        lambda: summary,
      )
    cutoff = tf.cast(terms['kl'] > _cutoff_threshold(config), tf.float32)
    values = losses['value'], losses['policy'], tf.reduce_sum(cutoff)
    return index + 1, summary, sums + tf.stack(values)

  # No epoch may begin before the advantage is known; the original lets the
  # baseline race with the first update of the weights.
  with tf.control_dependencies([return_, advantage]):
    batch = _shorten(episodes, return_, advantage, horizon)
    _, summary, sums = tf.while_loop(
      lambda index, *unused: index < config.update_epochs,
      update_step,
      [0, '', tf.zeros([3])],
      parallel_iterations=1,
      back_prop=False,
      name='scan',
    )
  names = 'mean_value_loss', 'mean_policy_loss', 'kl_cutoff_episodes'
  with tf.control_dependencies([summary]), tf.name_scope('update'):
    scalars.update(zip(names, tf.unstack(sums / config.update_epochs)))
    values = mpi_ops.allreduce(tf.stack(list(scalars.values())), comm)
    shown = tf.summary.merge(
      [tf.summary.scalar(k, x) for k, x in zip(scalars, tf.unstack(values))]
    )
  with tf.control_dependencies([shown]), tf.name_scope('adjust_penalty'):
    policy = _describe_policy(batch, network(batch.observ, batch.length))
    change = mean_of_all(batch.mask * batch.policy.kl(policy))
    with tf.control_dependencies([change]):
      moved = policy.parameters[0] - batch.policy.parameters[0]
      moved = mpi_ops.allreduce(tf.reduce_sum(tf.abs(moved)), comm)
    return tf.summary.merge(
      [summary, shown, _adjust_penalty(penalty, change, moved, config)]
    )


def adapt_penalty(
  penalty: tf.Tensor, change: tf.Tensor, target: float
) -> tf.Tensor:
  """Return the penalty of the next update, float scalar.

  Thresholds and factors are those of batch PPO; section 4 of the paper has 2
  above 1.5 times the target, and 1/2 below 1/1.5 times.

  Args:
    penalty: Penalty of the last update, float scalar.
    change: Mean divergence from the old policy, float scalar.
    target: Target divergence of an update.

  Returns:
    1.5 times the penalty above 1.3 times the target, the penalty divided by 1.5
    below 0.7 times, otherwise the penalty.
  """
  smaller = tf.where(change < 0.7 * target, penalty / 1.5, penalty)
  return tf.where(change > 1.3 * target, penalty * 1.5, smaller)


def _estimate(episodes, value, config):
  """Return R and advantage A [episodes, time], not normalized.

  A = R - V, or equations 11 and 12 of the paper with `gae_lambda`.
  """
  reward, length = episodes.reward, episodes.length
  return_ = utility.discounted_return(reward, length, config.discount)
  if not config.gae_lambda:
    return return_, return_ - value
  return return_, utility.lambda_advantage(
    reward, value, length, config.discount, config.gae_lambda
  )


def _shorten(episodes, return_, advantage, horizon):
  """Cut off the padding after the longest episode.

  Padding adds zeros to all sums, which are divided by the horizon anyway, but
  would take most of the time for short episodes.
  """
  observ, action, policy, reward, length = episodes
  longest = tf.maximum(tf.reduce_max(length), 1)
  return _Batch(
    observ[:, :longest],
    action[:, :longest],
    type(policy)(*[x[:, :longest] for x in policy.parameters]),
    return_[:, :longest],
    advantage[:, :longest],
    utility.sequence_mask(reward[:, :longest], length),
    length,
    horizon,
  )


def _policy_loss(batch, output, penalty, config):
  """Parts of the policy loss of each episode, dict of tensors [episodes].

  Equation 8 of the paper, negated, with the cutoff of batch PPO:

    -mean(ratio A) + penalty KL + coef max(KL - threshold, 0)^2

  Sums over time are divided by the longest length, not by that of the
  episode, as in the original.
  """

  def mean_over_time(tensor):
    return tf.reduce_sum(batch.mask * tensor, 1) / batch.horizon

  kl = mean_over_time(batch.policy.kl(_describe_policy(batch, output)))
  ratio = tf.exp(
    output.policy.log_prob(batch.action) - batch.policy.log_prob(batch.action)
  )
  surrogate = -mean_over_time(ratio * batch.advantage)
  kl_penalty = penalty * kl
  threshold = _cutoff_threshold(config)
  kl_cutoff = (
    config.kl_cutoff_coef
    * tf.cast(kl > threshold, tf.float32)
    * (kl - threshold) ** 2
  )
  return {
    'kl': kl,
    'surrogate_loss': surrogate,
    'kl_penalty': kl_penalty,
    'kl_cutoff': kl_cutoff,
    'kl_penalty_combined': kl_penalty + kl_cutoff,
    'policy_loss': tf.check_numerics(
      surrogate + kl_penalty + kl_cutoff, 'policy_loss'
    ),
  }


def _cutoff_threshold(config):
  return config.kl_target * config.kl_cutoff_factor


def _describe_policy(batch, output):
  """Distribution that the output of the network describes."""
  family = type(batch.policy)
  return family(*[getattr(output, x) for x in family.PARAMETERS])


def _compute_gradients(losses, comm):
  """Sums over processes: dict from loss to pairs of gradient and variable."""
  variables = tf.trainable_variables()
  gradients = {}
  for name, loss in losses.items():
    pairs = zip(tf.gradients(loss, variables), variables)
    gradients[name] = [(x, y) for x, y in pairs if x is not None]
  own = [x for pairs in gradients.values() for x, _ in pairs]
  sums = iter(mpi_ops.allreduce_all(own, comm))
  return {
    name: [(next(sums), variable) for _, variable in pairs]
    for name, pairs in gradients.items()
  }


def _add_up(groups):
  """Sum of the gradients of several losses, a pair per variable."""
  totals: dict[str, Any] = {}
  for pairs in groups:
    for grad, variable in pairs:
      if variable.name in totals:
        grad = grad + totals[variable.name][0]
      totals[variable.name] = (grad, variable)
  return list(totals.values())


def _summarize(
  batch, output, losses, gradients, value_loss, terms, config, comm
):
  """Return a summary of an optimizer step; its means are those of all ranks."""
  entropy = batch.mask * _describe_policy(batch, output).entropy()
  # Zeros stand behind the longest episode.
  padding = [[0, 0], [0, batch.horizon - tf.shape(entropy)[1]]]
  surrogate = tf.reduce_mean(terms['surrogate_loss'])
  kl_penalty = tf.reduce_mean(terms['kl_penalty'])
  if comm:
    # The losses are parts of the mean over all episodes already.
    share = tf.cast(tf.size(batch.length), tf.float32) / config.update_every
    surrogate, kl_penalty = surrogate * share, kl_penalty * share
  means = [losses['value'], surrogate, kl_penalty, losses['policy']]
  means = tf.unstack(mpi_ops.allreduce(tf.stack(means), comm))
  names = 'value_loss', 'surr_loss', 'kl_penalty', 'policy_loss'
  scalars = {f'avg_{name}': mean for name, mean in zip(names, means)}
  histograms = {
    **terms,
    'value_loss': tf.pad(value_loss, padding),
    'entropy': tf.pad(entropy, padding),
  }
  summaries = [tf.summary.scalar(k, v) for k, v in scalars.items()]
  summaries += [tf.summary.histogram(k, v) for k, v in histograms.items()]
  for name, pairs in gradients.items():
    norm = tf.global_norm([grad for grad, _ in pairs])
    summaries.append(tf.summary.scalar(f'{name}_gradient_norm', norm))
    summaries.append(utility.gradient_summaries(pairs, {name: '.*'}))
  return tf.summary.merge(summaries)


def _adjust_penalty(penalty, change, moved, config):
  """Adapt the penalty to the divergence of the policy."""
  check = tf.py_func(graph_errors.remember(_check_moved), [moved], [])
  before = tf.identity(penalty)
  after = adapt_penalty(before, change, config.kl_target)
  with tf.control_dependencies([check]):
    assign = penalty.assign(after).op
  with tf.control_dependencies([assign]):
    return tf.summary.merge(
      [
        tf.summary.scalar('kl_change', change),
        tf.summary.scalar('current_penalty', before),
        tf.summary.scalar('penalty', tf.identity(penalty)),
      ]
    )


def _check_moved(moved):
  """Refuse an update without effect, as the original does."""
  if not moved > 0:
    raise errors.EnvError(
      'The update did not change the policy because there is nothing to learn '
      'from: are all rewards and observations of the environment equal? '
      'Otherwise, learning_rate may be too small.'
    )
