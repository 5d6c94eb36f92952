"""Count recorded episodes."""

import glob
import os

from agents.tools.tf1 import tf


def count_dataset(directory: str, key: str = 'reward') -> tf.Tensor:
  """Count the episodes in a directory at the time of execution.

  Args:
    directory: Folder of .npz files.
    key: Unused, as in the original.

  Returns:
    Int32 tensor.

  Raises:
    ValueError: If the directory does not exist.
  """
  del key
  directory = os.path.expanduser(directory)
  if not os.path.isdir(directory):
    raise ValueError(f'Directory of episodes {directory!r} does not exist.')

  def count():
    pattern = os.path.join(glob.escape(directory), '*.npz')
    return tf.int32.as_numpy_dtype(len(glob.glob(pattern)))

  amount = tf.py_func(count, [], tf.int32)
  amount.set_shape(())
  return amount
