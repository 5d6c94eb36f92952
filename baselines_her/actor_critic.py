"""Networks of the policy and of the action value."""

from agents.tools.tf1 import tf
from baselines_her import util


class ActorCritic:
  """Policy pi(o, g) and action value Q(o, g, u) on normalised inputs.

  The value is computed twice with the same weights: of the given action, and
  of the one that the policy would choose, through which its gradient flows.

  Args:
    inputs_tf: Dict of float tensors `o`, `g` and `u` [batch, size].
    dimo: Size of observations.
    dimg: Size of goals.
    dimu: Size of actions.
    max_u: Largest magnitude of actions.
    o_stats: Normalizer of observations.
    g_stats: Normalizer of goals.
    hidden: Number of units of each hidden layer.
    layers: Number of hidden layers.
    **kwargs: Ignored; other networks may want more.

  Attributes:
    pi_tf: Actions [batch, dimu].
    Q_pi_tf: Values [batch, 1] of these actions.
    Q_tf: Values [batch, 1] of the given actions.
  """

  def __init__(
    self,
    inputs_tf,
    dimo,
    dimg,
    dimu,
    max_u,
    o_stats,
    g_stats,
    hidden,
    layers,
    **kwargs,
  ):
    self.o_tf = inputs_tf['o']
    self.g_tf = inputs_tf['g']
    self.u_tf = inputs_tf['u']
    o = o_stats.normalize(self.o_tf)
    g = g_stats.normalize(self.g_tf)
    sizes = [hidden] * layers
    with tf.variable_scope('pi'):
      raw = util.nn(tf.concat([o, g], 1), sizes + [dimu])
      self.pi_tf = max_u * tf.tanh(raw)
    with tf.variable_scope('Q'):
      chosen = tf.concat([o, g, self.pi_tf / max_u], 1)
      self.Q_pi_tf = util.nn(chosen, sizes + [1])
      self._input_Q = tf.concat([o, g, self.u_tf / max_u], 1)
      self.Q_tf = util.nn(self._input_Q, sizes + [1], reuse=True)
