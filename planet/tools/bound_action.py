"""Keep actions within [-1, 1]; not used by this project."""

from agents.tools.tf1 import tf


def bound_action(action: tf.Tensor, strategy: str) -> tf.Tensor:
  """Bound actions by one of several strategies.

  Args:
    action: Float tensor.
    strategy: `none` keeps actions, `clip` clips them with a straight-through
      gradient, `tanh` squashes them.

  Raises:
    NotImplementedError: For any other strategy.
  """
  if strategy == 'none':
    return action
  if strategy == 'clip':
    clipped = tf.clip_by_value(action, -1, 1)
    return action + tf.stop_gradient(clipped - action)
  if strategy == 'tanh':
    return tf.tanh(action)
  raise NotImplementedError(
    f"Unknown strategy {strategy!r}; use 'none', 'clip' or 'tanh'."
  )
