"""Cut sequences into chunks of equal length."""

from collections.abc import Mapping

from agents.tools import nested
from agents.tools.tf1 import tf


def chunk_sequence(
  sequence: Mapping[str, tf.Tensor],
  chunk_length: int,
  randomize: bool = True,
  num_chunks: int | None = None,
) -> dict[str, tf.Tensor]:
  """Cut a sequence into consecutive chunks.

  Args:
    sequence: Dict of tensors [time, ...]. An entry `length` holds the number
      of steps to use; all by default.
    chunk_length: Steps per chunk.
    randomize: Whether to start at a uniformly random step instead of the first.
    num_chunks: Number of chunks; by default as many as fit, or one less, but at
      least one, with `randomize`.

  Returns:
    Dict of tensors [chunks, chunk_length, ...], and `length` int32 [chunks].

  Raises:
    tf.errors.InvalidArgumentError: During execution, if a sequence is too
      short.
  """
  with tf.device('/cpu:0'):
    sequence = dict(sequence)
    length = sequence.pop('length', None)
    if length is None:
      length = tf.shape(nested.flatten(sequence)[0])[0]
    if num_chunks is None:
      num_chunks = length // chunk_length
      if randomize:
        num_chunks = tf.maximum(1, num_chunks - 1)
    used = num_chunks * chunk_length
    with tf.control_dependencies(
      [
        tf.Assert(
          used <= length,
          [
            'Episode of',
            length,
            'steps is too short for chunks of',
            chunk_length,
            'steps; use a smaller batch_shape.',
          ],
        )
      ]
    ):
      if randomize:
        offset = tf.random_uniform((), 0, length - used + 1, tf.int32)
      else:
        offset = tf.constant(0)
    chunks = nested.map(
      lambda x: _cut(x, offset, num_chunks, chunk_length), sequence
    )
    chunks['length'] = chunk_length * tf.ones((num_chunks,), tf.int32)
    return chunks


def _cut(tensor, offset, num_chunks, chunk_length):
  part = tensor[offset : offset + num_chunks * chunk_length]
  rest = tensor.shape.as_list()[1:]
  part = tf.reshape(
    part, tf.concat([[num_chunks, chunk_length], tf.shape(tensor)[1:]], 0)
  )
  count = num_chunks if isinstance(num_chunks, int) else None
  part.set_shape([count, chunk_length] + rest)
  return part
