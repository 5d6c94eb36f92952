"""Checkpoints of several processes that hold the episodes of all of them."""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from agents.tools.tf1 import tf


class Gathering:
  """Collects the episodes of all processes in the first one.

  Every process has a memory of its own, but only the first one writes. All
  episodes fit into its memory, as an update takes place as soon as they would
  fill it. So a checkpoint looks like that of a single process, and any number
  of processes can continue it: no episode is lost or counts twice.

  All processes have to make the same calls.

  Args:
    memory: `EpisodeMemory` of this process.
    index: Variable with the number of its episodes.
    comm: MPI communicator.
  """

  def __init__(self, memory: Any, index: Any, comm: Any) -> None:
    self._comm = comm
    data, length = memory.data(tf.range(index))
    self._own = [*data, length]
    self._values = [tf.placeholder(x.dtype, x.shape) for x in self._own]
    *data, length = self._values
    with tf.control_dependencies([memory.clear()]):
      replace = memory.replace(data, length, tf.range(tf.size(length)))
    with tf.control_dependencies([replace]):
      self._load = index.assign(tf.size(length)).op

  @contextlib.contextmanager
  def gathered(self, sess: Any) -> Iterator[None]:
    """Let the memory of the first process hold the episodes of all.

    Args:
      sess: Session.
    """
    own = sess.run(self._own)
    parts = self._comm.gather(own)
    if parts is None:
      yield
      return
    self._store(sess, [np.concatenate(x) for x in zip(*parts)])
    try:
      yield
    finally:
      self._store(sess, own)

  def keep_once(self, sess: Any) -> None:
    """Forget the episodes of all processes but the first one.

    To be called when all have restored the same checkpoint.

    Args:
      sess: Session.
    """
    if self._comm.Get_rank() > 0:
      self._store(sess, [x[:0] for x in sess.run(self._own)])

  def _store(self, sess, values):
    sess.run(self._load, dict(zip(self._values, values)))
