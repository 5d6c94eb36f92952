"""Losses of critic and actor as functions of networks and a batch.

Deep deterministic policy gradients, Lillicrap et al. 2016, arXiv:1509.02971,
and imitation after Nair et al. 2018, arXiv:1709.10089.
"""

import dataclasses

from agents.tools.tf1 import tf
from baselines_her.actor_critic import ActorCritic
from baselines_her.settings import Settings

# Tensors [batch, size] by their names, the rewards `r` [batch, 1].
Batch = dict[str, tf.Tensor]


@dataclasses.dataclass(frozen=True)
class Losses:
  """Scalars to minimize.

  Attributes:
    critic: Loss of the action value.
    actor: Loss of the policy, including imitation.
    cloning: Imitation loss alone; None without imitation.
  """

  critic: tf.Tensor
  actor: tf.Tensor
  cloning: tf.Tensor | None


def define_losses(
  batch: Batch, main: ActorCritic, target: ActorCritic, settings: Settings
) -> Losses:
  """Define all losses of a batch.

  Args:
    batch: Dict of `u` and `r`; the networks already contain the states.
    main: Trained networks, on the states of the batch.
    target: Target networks, on the next states.
    settings: Settings of the agent.
  """
  cloning = cloning_loss(batch, main, settings) if settings.bc_loss else None
  return Losses(
    critic_loss(batch, main, target, settings),
    actor_loss(main, cloning, settings),
    cloning,
  )


def target_values(
  batch: Batch, target: ActorCritic, settings: Settings
) -> tf.Tensor:
  """Define the target of the critic, y = r + gamma Q'(s', pi'(s')).

  Every transition bootstraps, because only time limits end episodes. Values are
  clipped to the range of possible returns, at most zero if rewards are.

  Returns:
    Float tensor [batch, 1].
  """
  highest = 0.0 if settings.clip_pos_returns else float('inf')
  values = batch['r'] + settings.gamma * target.Q_pi_tf
  return tf.clip_by_value(values, -settings.return_limit, highest)


def critic_loss(
  batch: Batch, main: ActorCritic, target: ActorCritic, settings: Settings
) -> tf.Tensor:
  """Define the mean of (y - Q(s, a))^2, where y has no gradient.

  Equation 4 of Lillicrap et al.; y is equation 5 with target networks.
  """
  y = tf.stop_gradient(target_values(batch, target, settings))
  return tf.reduce_mean(tf.square(y - main.Q_tf))


def actor_loss(
  main: ActorCritic, cloning: tf.Tensor | None, settings: Settings
) -> tf.Tensor:
  """Define the mean of -Q(s, pi(s)) with a penalty on large actions.

  The gradient of the first part is equation 6 of Lillicrap et al.

  Args:
    main: Trained networks.
    cloning: Imitation loss, or None.
    settings: Settings of the agent.
  """
  penalty = tf.reduce_mean(tf.square(main.pi_tf / settings.action_limit))
  loss = -tf.reduce_mean(main.Q_pi_tf) + settings.action_l2 * penalty
  if cloning is None:
    return loss
  return settings.prm_loss_weight * loss + settings.aux_loss_weight * cloning


def cloning_loss(
  batch: Batch, main: ActorCritic, settings: Settings
) -> tf.Tensor:
  """Define the sum of (pi(s) - a)^2 over the demonstrated transitions.

  These are the last ones of the batch. As in the original, the sum is not
  divided by their number. The filter drops those whose value is below that of
  the policy's action.
  """
  count = settings.demo_batch_size
  first = settings.batch_size - count

  def demonstrated(tensor: tf.Tensor) -> tf.Tensor:
    return tf.slice(tensor, [first, 0], [count, -1])

  distance = tf.square(demonstrated(main.pi_tf) - demonstrated(batch['u']))
  if settings.q_filter:
    better = demonstrated(main.Q_tf) > demonstrated(main.Q_pi_tf)
    distance *= tf.cast(better, tf.float32)
  return tf.reduce_sum(distance)
