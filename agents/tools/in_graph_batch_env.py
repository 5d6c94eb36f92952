"""Batch of environments as part of a TensorFlow graph."""

from typing import Any

from agents.envs import spaces
from agents.tools import graph_errors, scopes
from agents.tools.tf1 import tf


class InGraphBatchEnv:
  """Step a batch of environments from within the graph.

  Non-trainable variables hold the last observation, action, reward and done
  flag of each environment, one row per environment.

  Args:
    batch_env: Batch environment with `step` and `reset(indices)`.
    initial_done: Value of the done flags before the first reset. With True,
      `simulate` resets all environments in its first step.

  Raises:
    NotImplementedError: If a space is neither a box nor discrete.
  """

  def __init__(self, batch_env: Any, initial_done: bool = True):
    self._batch_env = batch_env
    count = len(batch_env)
    with scopes.uncached_scope('env_temporary'):
      self._observ = _define_rows('observ', count, batch_env.observation_space)
      self._action = _define_rows('action', count, batch_env.action_space)
      self._reward = scopes.variable('reward', (count,))
      done = tf.constant_initializer(int(initial_done))
      self._done = scopes.variable('done', (count,), tf.int32, done)

  def __getattr__(self, name: str) -> Any:
    if name.startswith('_'):
      raise AttributeError(name)
    return getattr(self._batch_env, name)

  def __len__(self) -> int:
    return len(self._batch_env)

  def __getitem__(self, index: Any) -> Any:
    return self._batch_env[index]

  def simulate(self, action: tf.Tensor) -> tf.Operation:
    """Step all environments and store the results.

    Args:
      action: Tensor with one action per environment, [N, ...].

    Returns:
      Operation.
    """
    with tf.name_scope('environment/simulate'):
      action = _check_numerics(action, 'action')
      observ, reward, done = tf.py_func(
        graph_errors.remember(lambda x: self._batch_env.step(x)[:3]),
        [action],
        [self._observ.dtype.base_dtype, tf.float32, tf.bool],
        name='step',
      )
      observ = _check_numerics(observ, 'observ')
      reward = _check_numerics(reward, 'reward')
      return tf.group(
        self._observ.assign(observ),
        self._action.assign(action),
        self._reward.assign(reward),
        self._done.assign(tf.cast(done, tf.int32)),
      )

  step = simulate

  def reset(self, indices: tf.Tensor | None = None) -> tf.Tensor:
    """Reset environments and zero their rewards and done flags.

    Args:
      indices: Integer tensor of the environments to reset; all by default.

    Returns:
      Tensor of the new observations of these environments.
    """
    if indices is None:
      indices = tf.range(len(self._batch_env))
    with tf.name_scope('environment/reset'):
      observ = tf.py_func(
        graph_errors.remember(self._batch_env.reset),
        [indices],
        self._observ.dtype.base_dtype,
        name='reset',
      )
      observ = _check_numerics(observ, 'observ')
      observ.set_shape([None] + self._observ.shape.as_list()[1:])
      zeros = tf.zeros_like(indices)
      with tf.control_dependencies(
        [
          tf.scatter_update(self._observ, indices, observ),
          tf.scatter_update(self._reward, indices, tf.cast(zeros, tf.float32)),
          tf.scatter_update(self._done, indices, tf.cast(zeros, tf.int32)),
        ]
      ):
        return tf.identity(observ)

  @property
  def observ(self) -> tf.Tensor:
    """Copy of the last observations, [N, ...]."""
    return tf.identity(self._observ)

  @property
  def action(self) -> tf.Tensor:
    """Copy of the last actions, [N, ...]."""
    return tf.identity(self._action)

  @property
  def reward(self) -> tf.Tensor:
    """Copy of the last rewards, float32 [N]."""
    return tf.identity(self._reward)

  @property
  def done(self) -> tf.Tensor:
    """Whether the current episodes have ended, bool [N]."""
    return tf.cast(self._done, tf.bool)


def _check_numerics(tensor, name):
  if not tensor.dtype.is_floating:
    return tensor
  return tf.check_numerics(tensor, name)


def _define_rows(name, count, space):
  """Variable that holds an element of a space per environment."""
  if spaces.is_box(space):
    dtype = tf.uint8 if space.low.dtype == 'uint8' else tf.float32
    return scopes.variable(name, (count, *space.shape), dtype)
  if spaces.is_discrete(space):
    return scopes.variable(name, (count,), tf.int32)
  raise NotImplementedError(
    f'Spaces of type {type(space).__name__} cannot be part of the graph; use a '
    'Box or Discrete space.'
  )
