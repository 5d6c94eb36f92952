"""Networks of the policy and of the action value."""

from collections.abc import Sequence
from typing import Any, Optional

import numpy as np

from agents.run import references
from agents.tools.tf1 import tf
from baselines_her import util
from baselines_her.normalizer import IdentityNormalizer, Normalizer


@references.nameable
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
    self._max_u = max_u
    self._stats = (o_stats, g_stats)
    with tf.variable_scope('pi') as scope:
      self._pi_scope = scope.name
      raw = util.nn(tf.concat([o, g], 1), sizes + [dimu])
      self.pi_tf = max_u * tf.tanh(raw)
    with tf.variable_scope('Q') as scope:
      self._Q_scope = scope.name
      chosen = tf.concat([o, g, self.pi_tf / max_u], 1)
      self.Q_pi_tf = util.nn(chosen, sizes + [1])
      self._input_Q = tf.concat([o, g, self.u_tf / max_u], 1)
      self.Q_tf = util.nn(self._input_Q, sizes + [1], reuse=True)

  def freeze(self, sess: tf.Session) -> Optional['FrozenActor']:
    """Copy the networks as they are now, to act in NumPy.

    Returns:
      None for other networks, which derive from this class.
    """
    if type(self) is not ActorCritic:
      return None
    weights = [
      sess.graph.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, x + '/')
      for x in (self._pi_scope, self._Q_scope)
    ]
    moments = [(x.mean, x.std) for x in self._stats]
    limits = [
      np.full(x.size, getattr(x, 'default_clip_range', np.inf), np.float32)
      for x in self._stats
    ]
    weights, moments = sess.run([weights, moments])
    mean, std = (np.concatenate(x) for x in zip(*moments))
    pi, Q = weights
    return FrozenActor(pi, Q, mean, std, np.concatenate(limits), self._max_u)


class FrozenActor:
  """Computes what `ActorCritic` does, in NumPy and with fixed weights.

  For single observations, the graph takes longer to start than to compute.

  Args:
    pi: Kernels and biases of the policy, alternating.
    Q: Those of the action value.
    mean: Means of observations and goals, one vector.
    std: Their standard deviations.
    limit: Largest magnitudes of the normalised values.
    max_u: Largest magnitude of actions.
  """

  def __init__(
    self,
    pi: Sequence[np.ndarray],
    Q: Sequence[np.ndarray],
    mean: np.ndarray,
    std: np.ndarray,
    limit: np.ndarray,
    max_u: float | np.ndarray,
  ):
    self._pi, self._Q = pi, Q
    self._mean, self._std, self._limit = mean, std, limit
    self._max_u = max_u

  def __call__(
    self, o: np.ndarray, g: np.ndarray, compute_Q: bool = False
  ) -> list[np.ndarray]:
    """Return actions and, if wanted, their values, for rows of inputs."""
    inputs = np.concatenate([o, g], 1, dtype=np.float32) - self._mean
    inputs /= self._std
    np.clip(inputs, -self._limit, self._limit, out=inputs)
    action = np.tanh(_run_layers(inputs, self._pi))
    pi = np.asarray(self._max_u * action, np.float32)
    if not compute_Q:
      return [pi]
    return [pi, _run_layers(np.concatenate([inputs, action], 1), self._Q)]


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
