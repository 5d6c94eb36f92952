"""Policy and value networks."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from agents.run import references
from agents.tools.tf1 import tf
from baselines_her import util
from baselines_her.normalizer import IdentityNormalizer, Normalizer


@references.nameable
class ActorCritic:
  """Policy pi(o, g) and action value Q(o, g, u) on normalized inputs.

  Computes the value twice with the same weights: for the given action, and for
  the action of the policy, through which the policy's gradient flows.

  Args:
    inputs_tf: Dict of float tensors `o`, `g` and `u` [batch, size].
    dimo: Size of observations.
    dimg: Size of goals.
    dimu: Size of actions.
    max_u: Maximum magnitude of actions.
    o_stats: Normalizer of observations.
    g_stats: Normalizer of goals.
    hidden: Number of units of each hidden layer.
    layers: Number of hidden layers.
    **kwargs: Ignored; other networks may use more arguments.

  Attributes:
    pi_tf: Actions [batch, dimu].
    Q_pi_tf: Values [batch, 1] of these actions.
    Q_tf: Values [batch, 1] of the given actions.
  """

  def __init__(
    self,
    inputs_tf: dict[str, tf.Tensor],
    dimo: int,
    dimg: int,
    dimu: int,
    max_u: float | np.ndarray,
    o_stats: Normalizer | IdentityNormalizer,
    g_stats: Normalizer | IdentityNormalizer,
    hidden: int,
    layers: int,
    **kwargs: Any,
  ):
    self.o_tf = inputs_tf['o']
    self.g_tf = inputs_tf['g']
    self.u_tf = inputs_tf['u']
    o = o_stats.normalize(self.o_tf)
    g = g_stats.normalize(self.g_tf)
    sizes = [hidden] * layers
    self._max_u, self._stats = max_u, (o_stats, g_stats)
    with tf.variable_scope('pi') as pi_scope:
      raw = util.nn(tf.concat([o, g], 1), sizes + [dimu])
      self.pi_tf = max_u * tf.tanh(raw)
    with tf.variable_scope('Q') as Q_scope:
      chosen = tf.concat([o, g, self.pi_tf / max_u], 1)
      self.Q_pi_tf = util.nn(chosen, sizes + [1])
      self._input_Q = tf.concat([o, g, self.u_tf / max_u], 1)
      self.Q_tf = util.nn(self._input_Q, sizes + [1], reuse=True)
    self._scopes = f'{pi_scope.name}/', f'{Q_scope.name}/'

  def freeze(self, sess: tf.Session) -> Callable[..., list] | None:
    """Copy the current weights of the networks to act in NumPy.

    For single observations, starting the graph takes longer than computing.

    Returns:
      Function from rows of observations and goals, and whether to compute
      values, to a list of the actions and, if requested, their values. None for
      networks of derived classes.
    """
    if type(self) is not ActorCritic:
      return None
    key = tf.GraphKeys.TRAINABLE_VARIABLES
    weights = [sess.graph.get_collection(key, x) for x in self._scopes]
    moments = [(x.mean, x.std) for x in self._stats]
    (pi, Q), moments = sess.run([weights, moments])
    mean, std = (np.concatenate(x) for x in zip(*moments))
    limits = [np.full(x.size, x.default_clip_range) for x in self._stats]
    limit = np.concatenate(limits, dtype=np.float32)

    def act(
      o: np.ndarray, g: np.ndarray, compute_Q: bool = False
    ) -> list[np.ndarray]:
      inputs = np.concatenate([o, g], 1, dtype=np.float32) - mean
      inputs /= std
      np.clip(inputs, -limit, limit, out=inputs)
      action = np.tanh(_run_layers(inputs, pi))
      scaled = np.asarray(self._max_u * action, np.float32)
      if not compute_Q:
        return [scaled]
      return [scaled, _run_layers(np.concatenate([inputs, action], 1), Q)]

    return act


def _run_layers(
  values: np.ndarray, weights: Sequence[np.ndarray]
) -> np.ndarray:
  """Compute the network of `util.nn`."""
  last = len(weights) - 2
  for index in range(0, len(weights), 2):
    values = np.dot(values, weights[index])
    values += weights[index + 1]
    if index < last:
      np.maximum(values, 0, out=values)
  return values
