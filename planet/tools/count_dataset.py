"""Count recorded episodes."""

import os

import numpy as np

from agents.run import files
from agents.tools import graph_errors
from agents.tools.tf1 import tf
from planet.tools import loaders


def count_dataset(directory: str, key: str = 'reward') -> tf.Tensor:
  """Define an operation that counts the episodes in a folder.

  Args:
    directory: Folder of .npz files.
    key: Unused, as in the original.

  Returns:
    Int32 tensor.

  Raises:
    ValueError: If the folder does not exist.
  """
  del key
  directory = files.expand(directory)
  if not os.path.isdir(directory):
    raise ValueError(f'Episode folder {directory!r} does not exist.')

  @graph_errors.remember
  def count():
    return np.int32(len(loaders.list_episodes(directory)))

  amount = tf.py_func(count, [], tf.int32)
  amount.set_shape(())
  return amount
