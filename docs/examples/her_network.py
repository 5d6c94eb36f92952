"""A network of your own, for HER: smooth layers instead of rectifiers.

her-train --env=FetchReach-v1 --num_timesteps=10000 --log_path=logs/smooth \
  --network=her_network:Smooth
her-play logs/smooth --trust her_network
"""

from agents.tools import layers
from agents.tools.tf1 import tf


class Smooth:
  """Policy and action value, as baselines_her.actor_critic.ActorCritic."""

  def __init__(
    self, inputs_tf, dimu, max_u, o_stats, g_stats, hidden, layers, **others
  ):
    # Tensors of observations, goals and actions that others feed.
    self.o_tf, self.g_tf, self.u_tf = (inputs_tf[key] for key in 'ogu')
    sizes = [hidden] * layers
    state = o_stats.normalize(self.o_tf), g_stats.normalize(self.g_tf)
    # The scopes say which variables each of the losses changes.
    with tf.variable_scope('pi'):
      self.pi_tf = max_u * tf.tanh(define(state, [*sizes, dimu]))
    with tf.variable_scope('Q'):
      self.Q_pi_tf = define([*state, self.pi_tf / max_u], [*sizes, 1])
    with tf.variable_scope('Q', reuse=True):
      self.Q_tf = define([*state, self.u_tf / max_u], [*sizes, 1])


def define(inputs, sizes):
  """Define layers of these sizes, the last of them linear."""
  values = tf.concat(inputs, 1)
  for index, size in enumerate(sizes):
    last = index == len(sizes) - 1
    activation = None if last else tf.nn.softplus
    values = layers.dense(values, size, activation, scope=f'layer{index}')
  return values
