"""Encoder for vector observations."""

from collections.abc import Callable

from agents.tools import layers
from agents.tools.tf1 import tf


def encoder(
  obs: dict[str, tf.Tensor],
  num_layers: int = 2,
  units: int = 100,
  activation: Callable | None = None,
) -> tf.Tensor:
  """Encode the observed vectors.

  Args:
    obs: Dict whose entry `vector` is float32 [batch, time, size].
    num_layers: Number of dense layers.
    units: Units per layer.
    activation: Activation of each layer; `tf.nn.relu` by default.

  Returns:
    Float32 tensor [batch, time, units].
  """
  hidden = obs['vector']
  for _ in range(num_layers):
    hidden = layers.dense(hidden, units, activation or tf.nn.relu)
  return hidden
