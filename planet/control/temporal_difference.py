"""Compute returns over time; not used by this project."""

from agents.tools.tf1 import tf


def discounted_return(
  reward: tf.Tensor,
  discount: float,
  bootstrap: tf.Tensor,
  axis: int,
  stop_gradient: bool = True,
) -> tf.Tensor:
  """Compute the discounted sum of future rewards.

    R_t = r_t + discount * R_{t+1}, R_T = bootstrap

  With a discount of one, returns only the total sum, as in the original.

  Args:
    reward: Float tensor with a time dimension.
    discount: Scalar in [0, 1].
    bootstrap: Value after the last step, without the time dimension; zero if
      None.
    axis: Time dimension.
    stop_gradient: Whether to treat the result as a constant.

  Returns:
    Tensor like `reward`, without the time dimension if the discount is one.
  """
  if discount == 1 and bootstrap is None:
    return_ = tf.reduce_sum(reward, axis)
  elif discount == 1:
    return_ = tf.reduce_sum(reward, axis) + bootstrap
  else:
    reward = _swap(reward, axis)
    if bootstrap is None:
      bootstrap = tf.zeros_like(reward[-1])
    add = lambda last, current: current + discount * last
    return_ = _swap(tf.scan(add, reward, bootstrap, reverse=True), axis)
  return tf.stop_gradient(return_) if stop_gradient else return_


def lambda_return(
  reward: tf.Tensor,
  value: tf.Tensor,
  bootstrap: tf.Tensor,
  discount: float,
  lambda_: float,
  axis: int,
  stop_gradient: bool = True,
) -> tf.Tensor:
  """Compute the exponentially weighted mean of all n-step returns.

    R_t = r_t + discount * ((1 - lambda) v_{t+1} + lambda R_{t+1})

  Source: Sutton and Barto, Reinforcement Learning, section 12.1.

  Args:
    reward: Float tensor with a time dimension.
    value: Values of the states, shaped like the rewards.
    bootstrap: Value after the last step, without the time dimension; zero if
      None.
    discount: Scalar in [0, 1].
    lambda_: Weight of later returns, in [0, 1].
    axis: Time dimension.
    stop_gradient: Whether to treat the result as a constant.

  Returns:
    Tensor like `reward`.
  """
  reward, value = _swap(reward, axis), _swap(value, axis)
  if bootstrap is None:
    bootstrap = tf.zeros_like(value[-1])
  next_value = tf.concat([value[1:], bootstrap[None]], 0)
  inputs = reward + discount * (1 - lambda_) * next_value
  add = lambda last, current: current + discount * lambda_ * last
  return_ = _swap(tf.scan(add, inputs, bootstrap, reverse=True), axis)
  return tf.stop_gradient(return_) if stop_gradient else return_


def fixed_step_return(
  reward: tf.Tensor,
  value: tf.Tensor | None,
  discount: float,
  steps: int,
  axis: int,
  stop_gradient: bool = True,
) -> tf.Tensor:
  """Compute n-step returns that bootstrap from the value.

    R_t = sum_{i < steps} discount^i r_{t+i} + discount^steps v_{t+steps}

  Args:
    reward: Float tensor with a time dimension.
    value: Values of the states, shaped like the rewards; zero if None.
    discount: Scalar in [0, 1].
    steps: Number of rewards per return.
    axis: Time dimension.
    stop_gradient: Whether to treat the result as a constant.

  Returns:
    Tensor like `reward`, but `steps` entries shorter in time.
  """
  reward = _swap(reward, axis)
  length = tf.shape(reward)[0] - steps
  return_ = tf.add_n(
    [discount**i * reward[i : i + length] for i in range(steps)]
  )
  if value is not None:
    return_ += discount**steps * _swap(value, axis)[steps:]
  return_ = _swap(return_, axis)
  return tf.stop_gradient(return_) if stop_gradient else return_


def _swap(tensor, axis):
  """Swap a dimension with the first one."""
  if axis == 0:
    return tensor
  order = list(range(tensor.shape.ndims))
  order[0], order[axis] = order[axis], order[0]
  return tf.transpose(tensor, order)
