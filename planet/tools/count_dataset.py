"""Count recorded episodes."""

import os

import numpy as np

from agents.tools.tf1 import tf
from planet.tools import loaders


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
    return np.int32(len(loaders.list_episodes(directory)))

  amount = tf.py_func(count, [], tf.int32)
  amount.set_shape(())
  return amount
