"""Communication between MPI processes as graph operations."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from agents.tools.tf1 import tf


def allreduce(tensor: tf.Tensor, comm: Any) -> tf.Tensor:
  """Return the sum of a tensor over all processes.

  Every process must execute the operation, and all such operations must run in
  the same order; use control dependencies.

  Args:
    tensor: Tensor of the same shape in all processes.
    comm: Communicator, see `agents.run.mpi.world`.

  Returns:
    Tensor of the same shape and dtype.
  """
  if comm is None or comm.Get_size() == 1:
    return tensor
  tensor = tf.convert_to_tensor(tensor)

  def reduce(value):
    source = np.ascontiguousarray(value)
    result = np.empty_like(source)
    comm.Allreduce(source, result)
    return result.reshape(value.shape)

  result = tf.py_func(reduce, [tensor], tensor.dtype, name='allreduce')
  result.set_shape(tensor.shape)
  return result


def allreduce_all(tensors: list[tf.Tensor], comm: Any) -> list[tf.Tensor]:
  """Return the sums of several tensors over all processes, in one message.

  Args:
    tensors: List of tensors of one dtype with known shapes, the same in all
      processes.
    comm: Communicator, see `agents.run.mpi.world`.

  Returns:
    List of tensors of the same shapes.
  """
  if comm is None or comm.Get_size() == 1:
    return tensors
  flat = tf.concat([tf.reshape(x, [-1]) for x in tensors], 0)
  sizes = [x.shape.num_elements() for x in tensors]
  parts = tf.split(allreduce(flat, comm), sizes)
  return [tf.reshape(x, y.shape) for x, y in zip(parts, tensors)]


def define_broadcast(
  variables: list[tf.Variable], comm: Any
) -> Callable[[tf.Session], None]:
  """Copy the values of variables from the first process to all others.

  Args:
    variables: List of variables, the same in all processes.
    comm: Communicator, see `agents.run.mpi.world`.

  Returns:
    Function of a session; all processes must call it.
  """
  holders = [tf.placeholder(x.dtype.base_dtype, x.shape) for x in variables]
  assigns = [x.assign(y).op for x, y in zip(variables, holders)]

  def broadcast(sess):
    if comm is None or comm.Get_size() == 1:
      return
    values = comm.bcast(sess.run(variables))
    sess.run(assigns, dict(zip(holders, values)))

  return broadcast


def check_same(weights: Sequence[np.ndarray], comm: Any) -> None:
  """Check that all processes have the same weights, bit for bit.

  Args:
    weights: Arrays of this process.
    comm: Communicator; all processes must make this call.

  Raises:
    RuntimeError: In all processes, if they do not.
  """
  digests = comm.allgather(hash_values(weights))
  for rank, digest in enumerate(digests):
    if digest != digests[0]:
      raise RuntimeError(
        f'The weights of rank {rank} of {len(digests)} differ from those of '
        'the first rank. Use identical machines and libraries, and repeat the '
        'command to continue from the last checkpoint.'
      )


def hash_values(values: Sequence[np.ndarray]) -> str:
  """Return a SHA-256 digest of the bytes of all arrays."""
  digest = hashlib.sha256()
  for value in values:
    digest.update(np.ascontiguousarray(value).tobytes())
  return digest.hexdigest()
