"""Predict distributions with dense layers."""

import math
from collections.abc import Callable, Sequence

from tensorflow_probability import distributions as tfd

from agents.tools import layers
from agents.tools.tf1 import tf
from planet.tools.shape import shape


def feed_forward(
  state: tf.Tensor,
  data_shape: Sequence[int],
  num_layers: int = 2,
  activation: Callable | None = None,
  mean_activation: Callable | None = None,
  stop_gradient: bool = False,
  trainable: bool = True,
  units: int = 100,
  std: float | str = 1.0,
  low: float = -1.0,
  high: float = 1.0,
  dist: str = 'normal',
) -> tfd.Distribution:
  """Predict a distribution from features.

  Args:
    state: Features float32 [..., features].
    data_shape: Shape of one value, [] for scalars.
    num_layers: Number of hidden layers.
    activation: Activation of the hidden layers; `tf.nn.relu` by default.
    mean_activation: Activation of the mean; linear by default.
    stop_gradient: Whether to stop gradients to the features.
    trainable: Whether the output layers are trainable.
    units: Units of the hidden layers.
    std: Standard deviation, or `learned`.
    low: Lower limit of `truncated_normal`.
    high: Upper limit of `truncated_normal`.
    dist: One of `normal`, `truncated_normal`, `tanh_normal` and
      `deterministic`.

  Returns:
    Distribution with batch shape [...] and event shape `data_shape`.

  Raises:
    NotImplementedError: If the distribution is unknown.
  """
  hidden = tf.stop_gradient(state) if stop_gradient else state
  for _ in range(num_layers):
    hidden = layers.dense(hidden, units, activation or tf.nn.relu)
  size = math.prod(data_shape)
  mean = layers.dense(hidden, size, mean_activation, trainable=trainable)
  mean = _split_last_dim(mean, data_shape)
  if std == 'learned':
    std = layers.dense(hidden, size, trainable=trainable)
    std = tf.nn.softplus(_split_last_dim(std, data_shape) + 0.55) + 0.01
  return tfd.Independent(
    _define_dist(dist, mean, std, low, high), len(data_shape)
  )


def _define_dist(name, mean, std, low, high):
  if name == 'normal':
    return tfd.Normal(mean, std)
  if name == 'truncated_normal':
    return tfd.TruncatedNormal(mean, std, low, high)
  if name == 'tanh_normal':
    from tensorflow_probability import bijectors

    return tfd.TransformedDistribution(tfd.Normal(mean, std), bijectors.Tanh())
  if name == 'deterministic':
    return tfd.Deterministic(mean)
  raise NotImplementedError(
    f"Unknown distribution {name!r}; use 'normal', 'truncated_normal', "
    "'tanh_normal' or 'deterministic'."
  )


def _split_last_dim(tensor, data_shape):
  split = tf.reshape(tensor, tf.stack(shape(tensor)[:-1] + list(data_shape)))
  split.set_shape(tensor.shape.as_list()[:-1] + list(data_shape))
  return split
