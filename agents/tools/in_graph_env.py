"""A single environment as part of a TensorFlow graph."""

from typing import Any

from agents.envs import batch_env, vector
from agents.tools import in_graph_batch_env, scopes
from agents.tools.tf1 import tf


class InGraphEnv:
  """Step one environment from within the graph.

  Args:
    env: Environment with `step`, `reset` and both spaces, and with 32 bit
      observations and rewards.

  Raises:
    NotImplementedError: If a space is neither a box nor discrete.
  """

  def __init__(self, env: Any):
    self._env = env
    self._batch = in_graph_batch_env.InGraphBatchEnv(_Batch([env], True))
    with scopes.uncached_scope('env_temporary'):
      self._step = scopes.variable('step', (), tf.int32)

  def __getattr__(self, name: str) -> Any:
    if name.startswith('_'):
      raise AttributeError(name)
    return getattr(self._env, name)

  def simulate(self, action: tf.Tensor) -> tf.Operation:
    """Step the environment and store the results.

    Args:
      action: Tensor of one action.

    Returns:
      Operation.
    """
    action = tf.convert_to_tensor(action)
    with tf.control_dependencies([self._batch.simulate(action[None])]):
      return self._step.assign_add(1).op

  def reset(self) -> tf.Tensor:
    """Reset the environment, its reward, done flag and step counter.

    Returns:
      Tensor of the new observation.
    """
    observ = self._batch.reset()
    with tf.control_dependencies([observ, self._step.assign(0)]):
      return tf.identity(observ[0])

  @property
  def observ(self) -> tf.Tensor:
    """Copy of the last observation."""
    return self._batch.observ[0]

  @property
  def action(self) -> tf.Tensor:
    """Copy of the last action."""
    return self._batch.action[0]

  @property
  def reward(self) -> tf.Tensor:
    """Copy of the last reward, float32 scalar."""
    return self._batch.reward[0]

  @property
  def done(self) -> tf.Tensor:
    """Whether the episode has ended, bool scalar."""
    return self._batch.done[0]

  @property
  def step(self) -> tf.Tensor:
    """Number of steps since the last reset, int32 scalar."""
    return tf.identity(self._step)


class _Batch(batch_env.BatchEnv):
  """Batch of one environment that checks its own actions."""

  def step(self, actions):
    return vector.stack_transitions([self[0].step(actions[0])])
