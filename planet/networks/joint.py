"""Encoder for images together with vectors."""

from collections.abc import Callable, Sequence

from agents.tools.tf1 import tf


def encoder(
  obs: dict[str, tf.Tensor], encoders: Sequence[Callable]
) -> tf.Tensor:
  """Encode observations by several encoders.

  Args:
    obs: Dict of float32 tensors [batch, time, ...].
    encoders: Functions from `obs` to embeddings [batch, time, size].

  Returns:
    Concatenated embeddings, float32 [batch, time, sum of sizes].
  """
  return tf.concat([encode(obs) for encode in encoders], -1)
