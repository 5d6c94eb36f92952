"""Algorithm with random actions, for tests."""

from collections.abc import Sequence
from typing import Any

from agents.tools.tf1 import tf


class MockAlgorithm:
  """Draw uniform actions and learn nothing.

  Args:
    envs: List of environments; the first one defines the action space.
  """

  def __init__(self, envs: Sequence[Any]):
    self._envs = envs

  def begin_episode(self, unused_indices: tf.Tensor) -> tf.Tensor:
    return tf.constant('')

  def perform(
    self, indices: tf.Tensor, unused_observ: tf.Tensor
  ) -> tuple[tf.Tensor, tf.Tensor]:
    space = self._envs[0].action_space
    shape = tf.concat([tf.shape(indices), space.shape], 0)
    share = tf.random_uniform(shape)
    return share * (space.high - space.low) + space.low, tf.constant('')

  def experience(
    self, unused_indices: tf.Tensor, *unused_transition: tf.Tensor
  ) -> tf.Tensor:
    return tf.constant('')

  def end_episode(self, unused_indices: tf.Tensor) -> tf.Tensor:
    return tf.constant('')
