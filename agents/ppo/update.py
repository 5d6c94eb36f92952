"""The update of PPO: advantage, losses, epochs, and the penalty."""

import collections
from collections.abc import Callable
from typing import Any

from agents.ppo import utility
from agents.run import errors, mpi_ops, saver
from agents.tools import graph_errors
from agents.tools.tf1 import tf

Episodes = collections.namedtuple(
  'Episodes', 'observ, action, policy, reward, length'
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
  """Improve policy and value by full-batch epochs, then adapt the penalty.

  Source: Schulman et al. (2017), arXiv:1707.06347, section 4.

  Args:
    episodes: `Episodes` with normalised observations [episodes, time, ...],
      actions, the distributions that they come from, normalised rewards
      [episodes, time], and lengths int32 [episodes].
    network: Template from observations and lengths to an output with the
      parameters of a distribution, see `agents.networks`.
    optimizer: A v1 optimiser.
    penalty: Variable of the weight of the divergence.
    config: AttrDict, see `agents.configs`.
    comm: MPI communicator; sums run over the episodes of all processes then.
    scope: Name scope of the variables of the optimiser, ending in a slash.
      Checkpoints need names that do not depend on the place in the graph.

  Returns:
    Serialised summary.
  """
  return _Update(
    episodes, network, optimizer, penalty, config, comm, scope
  ).define()


def penalty_factor(change: tf.Tensor, target: float) -> tf.Tensor:
  """Return the factor of the penalty after an update.

  Args:
    change: Mean divergence from the old policy, float scalar.
    target: Divergence that updates should have.

  Returns:
    1.5 above 1.3 times the target, 1 / 1.5 below 0.7 times, otherwise 1.
  """
  smaller = tf.where(change < 0.7 * target, 1 / 1.5, 1.0)
  return tf.where(change > 1.3 * target, 1.5, smaller)


class _Update:
  """Builds the graph of an update, a method per quantity of the paper.

  All means run over all steps of all episodes, padding included, as in the
  original; masks only zero what lies past the end.
  """

  def __init__(
    self, episodes, network, optimizer, penalty, config, comm, scope
  ):
    self._episodes = episodes
    self._network = network
    self._optimizer = optimizer
    self._penalty = penalty
    self._config = config
    self._comm = comm
    self._scope = scope
    self._horizon = episodes.reward.shape.as_list()[1]
    self._count = float(config.update_every)
    self._cutoff_threshold = config.kl_target * config.kl_cutoff_factor

  def define(self):
    return_, advantage, means = self._define_advantage()
    # No epoch may begin before the advantage is known; the original lets the
    # baseline race with the first update of the weights.
    with tf.control_dependencies([return_, advantage]):
      return_, advantage = self._shorten(return_, advantage)
      summary, epochs = self._define_epochs(return_, advantage)
    with tf.control_dependencies([summary]):
      scalars = self._define_scalars({**means, **epochs})
    with tf.control_dependencies([scalars]):
      return tf.summary.merge([summary, scalars, self._define_penalty()])

  def _define_advantage(self):
    """Return and normalised advantage [episodes, time], and means to show."""
    x = self._episodes
    value = tf.stop_gradient(self._network(x.observ, x.length).value)
    return_ = utility.discounted_return(
      x.reward, x.length, self._config.discount
    )
    if self._config.gae_lambda:
      advantage = utility.lambda_advantage(
        x.reward,
        value,
        x.length,
        self._config.discount,
        self._config.gae_lambda,
      )
    else:
      advantage = return_ - value
    mean = self._mean(advantage)
    variance = self._mean((advantage - mean) ** 2)
    advantage = (advantage - mean) / (tf.sqrt(variance) + 1e-8)
    means = {
      'mean_return': self._local_mean(return_),
      'mean_value': self._local_mean(value),
      'normalized_advantage': self._local_mean(advantage),
    }
    return (
      tf.stop_gradient(return_),
      tf.check_numerics(tf.stop_gradient(advantage), 'advantage'),
      means,
    )

  def _shorten(self, return_, advantage):
    """Cut off the padding behind the longest episode.

    It adds zeros to all sums, which are divided by the horizon anyway, but
    short episodes would spend most of the time on it.
    """
    longest = tf.maximum(tf.reduce_max(self._episodes.length), 1)
    observ, action, policy, reward, length = self._episodes
    observ, action = observ[:, :longest], action[:, :longest]
    policy = type(policy)(*[x[:, :longest] for x in policy.parameters])
    reward = reward[:, :longest]
    self._episodes = Episodes(observ, action, policy, reward, length)
    self._mask = utility.sequence_mask(reward, length)
    return return_[:, :longest], advantage[:, :longest]

  def _define_epochs(self, return_, advantage):
    """All epochs in a row.

    Returns:
      Tuple of the summary of the one in the middle, and means over all.
    """
    number = self._config.update_epochs
    names = ('mean_value_loss', 'mean_policy_loss', 'kl_cutoff_episodes')

    def epoch(index, summary, sums):
      new, values = self._define_epoch(index, return_, advantage, number // 2)
      summary = tf.cond(
        tf.equal(index, number // 2), lambda: new, lambda: summary
      )
      return index + 1, summary, sums + tf.stack([values[x] for x in names])

    _, summary, sums = tf.while_loop(
      lambda index, *unused: index < number,
      epoch,
      [0, '', tf.zeros([len(names)])],
      parallel_iterations=1,
      back_prop=False,
      name='scan',
    )
    return summary, dict(zip(names, tf.unstack(sums / number)))

  def _define_epoch(self, index, return_, advantage, middle):
    """One step of the optimiser for both losses at the current weights.

    Returns:
      Tuple of a summary, and dict of scalars, this process's part of them.
    """
    x = self._episodes
    output = self._network(x.observ, x.length)
    value_loss = 0.5 * self._mask * (return_ - output.value) ** 2
    terms = self._define_policy_terms(output, advantage)
    losses = {
      'value': self._local_mean(value_loss),
      'policy': tf.reduce_sum(terms['policy_loss']) / self._count,
    }
    variables = tf.trainable_variables()
    gradients = {}
    for name, loss in losses.items():
      found = zip(tf.gradients(loss, variables), variables)
      gradients[name] = [(x, y) for x, y in found if x is not None]
    if self._comm:
      gradients = self._add_over_processes(gradients)
    with tf.name_scope(self._scope):
      apply = self._optimizer.apply_gradients(_add_up(gradients.values()))
    with tf.control_dependencies([apply]):
      summary = tf.cond(
        tf.equal(index, middle),
        lambda: self._define_summaries(
          losses, gradients, value_loss, terms, output
        ),
        str,
      )
      summary = tf.identity(summary)
    cutoff = tf.cast(terms['kl'] > self._cutoff_threshold, tf.float32)
    return summary, {
      'mean_value_loss': losses['value'],
      'mean_policy_loss': losses['policy'],
      'kl_cutoff_episodes': tf.reduce_sum(cutoff),
    }

  def _add_over_processes(self, gradients):
    """Sums of all gradients over processes, in a single message."""
    pairs = [pair for group in gradients.values() for pair in group]
    sums = iter(mpi_ops.allreduce_all([x for x, _ in pairs], self._comm))
    return {
      name: [(next(sums), variable) for _, variable in group]
      for name, group in gradients.items()
    }

  def _define_policy_terms(self, output, advantage):
    """Parts of the policy loss of each episode, dict of tensors [episodes].

    Sums over time are divided by the longest length, not by that of the
    episode, as in the original.
    """
    x, config = self._episodes, self._config
    kl = self._mean_over_time(x.policy.kl(self._policy(output)))
    ratio = tf.exp(
      output.policy.log_prob(x.action) - x.policy.log_prob(x.action)
    )
    surrogate = -self._mean_over_time(ratio * advantage)
    kl_penalty = self._penalty * kl
    threshold = self._cutoff_threshold
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

  def _define_scalars(self, values):
    """Summary of scalars that are summed over processes."""
    with tf.name_scope('update'):
      sums = mpi_ops.allreduce(tf.stack(list(values.values())), self._comm)
      return tf.summary.merge(
        [tf.summary.scalar(k, x) for k, x in zip(values, tf.unstack(sums))]
      )

  def _define_penalty(self):
    """Adapt the penalty to how far the policy has moved."""
    x, target = self._episodes, self._config.kl_target
    with tf.name_scope('adjust_penalty'):
      policy = self._policy(self._network(x.observ, x.length))
      change = self._mean(self._mask * x.policy.kl(policy))
      new, old = policy.parameters[0], x.policy.parameters[0]
      with tf.control_dependencies([change]):
        moved = mpi_ops.allreduce(tf.reduce_sum(tf.abs(new - old)), self._comm)
      check = tf.py_func(graph_errors.remember(_check_moved), [moved], [])
      before = tf.identity(self._penalty)
      factor = penalty_factor(change, target)
      with tf.control_dependencies([check]):
        assign = self._penalty.assign(before * factor).op
      with tf.control_dependencies([assign]):
        return tf.summary.merge(
          [
            tf.summary.scalar('kl_change', change),
            tf.summary.scalar('current_penalty', before),
            tf.summary.scalar('penalty', tf.identity(self._penalty)),
          ]
        )

  def _define_summaries(self, losses, gradients, value_loss, terms, output):
    groups = self._config.weight_summaries
    entropy = self._mask * self._policy(output).entropy()
    averages = {
      'avg_value_loss': losses['value'],
      'avg_surr_loss': tf.reduce_mean(terms['surrogate_loss']),
      'avg_kl_penalty': tf.reduce_mean(terms['kl_penalty']),
      'avg_policy_loss': losses['policy'],
    }
    summaries = [tf.summary.scalar(k, v) for k, v in averages.items()]
    summaries += [tf.summary.histogram(k, v) for k, v in terms.items()]
    summaries += [
      tf.summary.histogram('value_loss', self._pad(value_loss)),
      tf.summary.histogram('entropy', self._pad(entropy)),
    ]
    for name, pairs in gradients.items():
      norm = tf.global_norm([grad for grad, _ in pairs])
      summaries.append(tf.summary.scalar(f'{name}_gradient_norm', norm))
      if groups and name in groups:
        summaries.append(
          utility.gradient_summaries(pairs, {name: groups[name]})
        )
    return tf.summary.merge(summaries)

  def _policy(self, output):
    """Distribution that the output of the network describes."""
    family = type(self._episodes.policy)
    return family(*[getattr(output, x) for x in family.PARAMETERS])

  def _mean_over_time(self, tensor):
    """Masked mean [episodes] of a tensor [episodes, time]."""
    return tf.reduce_sum(self._mask * tensor, 1) / self._horizon

  def _pad(self, tensor):
    """Tensor [episodes, horizon] with zeros behind the longest episode."""
    missing = self._horizon - tf.shape(tensor)[1]
    return tf.pad(tensor, [[0, 0], [0, missing]])

  def _local_mean(self, tensor):
    """This process's part of the mean over all steps of all episodes."""
    return tf.reduce_sum(tensor) / (self._count * self._horizon)

  def _mean(self, tensor):
    return mpi_ops.allreduce(self._local_mean(tensor), self._comm)


def _check_moved(moved):
  """Refuse an update without effect, as the original does."""
  if not moved > 0:
    raise errors.EnvError(
      'The update has not changed the policy, as there is nothing to learn '
      'from: are all rewards and observations of the environment the same? '
      'Otherwise learning_rate may be too small.'
    )


def _add_up(groups):
  """Sum of the gradients of several losses, a pair per variable."""
  totals: dict[str, Any] = collections.OrderedDict()
  for pairs in groups:
    for grad, variable in pairs:
      name = variable.name
      if name in totals:
        grad = grad + totals[name][0]
      totals[name] = (grad, variable)
  return list(totals.values())
