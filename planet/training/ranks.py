"""Processes of MPI that train one model together, each on its share."""

import hashlib
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from agents.run import limits, mpi, mpi_ops, stopping
from agents.tools import devices
from agents.tools.tf1 import tf
from planet.tools.attr_dict import AttrDict
from planet.tools.bind import bind

# Seconds between two looks at whether the other ranks have arrived.
_SHORTEST_PAUSE, _LONGEST_PAUSE = 1e-4, 0.01


class Ranks:
  """Processes of MPI that run the same graph; without MPI, only this one.

  Every rank has to call the same methods in the same order. Within the graph,
  gradients and losses are averaged before episodes are played, so that a rank
  that is asked to stop while it plays has nothing left to exchange there.

  Args:
    comm: Communicator, see `agents.run.mpi.world`; None for one process.

  Attributes:
    comm: Communicator.
    rank: Number of this process.
    size: Number of processes.
    is_first: Whether this process writes checkpoints, events and metrics.
    host: Share that this process has of its machine.
  """

  def __init__(self, comm: Any = None) -> None:
    self.comm: Any = comm or mpi.SingleComm()
    self.rank: int = self.comm.Get_rank()
    self.size: int = self.comm.Get_size()
    self.is_first = self.rank == 0
    self.host = mpi.find_share(self.comm)
    self._stop = False

  def should_stop(self) -> bool:
    """Whether a rank was asked to stop, the same on all ranks."""
    return stopping.requested() if self.size == 1 else self._stop

  def share(self, amount: int, turn: int = 0) -> tuple[int, int]:
    """Split a number of things over the ranks as evenly as possible.

    Args:
      amount: Number of things.
      turn: Rank, modulo their number, that is the first to get one more.

    Returns:
      Tuple of the number of the first thing of this rank, and how many it has.
    """
    least, more = divmod(amount, self.size)
    ranks = range(self.size)
    counts = [least + ((rank - turn) % self.size < more) for rank in ranks]
    return sum(counts[: self.rank]), counts[self.rank]

  def average(self, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Average tensors of one dtype over all ranks, in a single message."""
    if self.size == 1:
      return list(tensors)
    sums = mpi_ops.allreduce_all(list(tensors), self.comm)
    return [x / self.size for x in sums]

  def sync(self, interrupted: bool = False) -> None:
    """Wait for all ranks, and exchange whether one was asked to stop.

    Args:
      interrupted: Whether this rank cannot go on.

    Raises:
      StopRequested: On all ranks, if one of them cannot go on.
    """
    flags = [(interrupted, stopping.requested())]
    if self.size > 1:
      # Sleep while others play episodes, instead of taking their cores.
      request, pause = self.comm.Ibarrier(), _SHORTEST_PAUSE
      while not request.Test():
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
      flags = self.comm.allgather(flags[0])
    self._stop = any(stop for _, stop in flags)
    if any(left for left, _ in flags):
      raise stopping.StopRequested('A rank was asked to stop.')

  def run(self, function: Callable[[], Any]) -> Any:
    """Call a function on each rank; all leave if one was asked to stop.

    Raises:
      StopRequested: On all ranks, if the function raises it on one of them.
    """
    try:
      result = function()
    except stopping.StopRequested:
      self.sync(interrupted=True)
      raise
    self.sync()
    return result

  def average_score(self, score: float, weight: float) -> float:
    """Return the mean of the scores of all ranks.

    Args:
      score: Mean return of what this rank has played.
      weight: Part that this rank has in the episodes of all.
    """
    pairs = [x for x in self.comm.allgather((score, weight)) if x[1]]
    total = sum(weight for _, weight in pairs)
    return sum(x * weight for x, weight in pairs) / total if pairs else score

  def broadcast(self, sess: tf.Session) -> None:
    """Give all variables the values that they have on the first rank.

    Variables of environments differ, as do those that follow from what a rank
    plays. They stay as they are.
    """
    if self.size == 1:
      return
    variables = {x.op.name: x for x in tf.global_variables()}
    own = {(name, *x.shape.as_list()) for name, x in variables.items()}
    common = set.intersection(*self.comm.allgather(own))
    names = sorted(name for name, *_ in common)
    missing = {x.op.name for x in tf.trainable_variables()} - set(names)
    assert not missing, missing
    mpi_ops.define_broadcast([variables[x] for x in names], self.comm)(sess)

  def check_same(self, sess: tf.Session) -> None:
    """Make sure that all ranks have the same weights, bit for bit.

    Raises:
      RuntimeError: If they do not.
    """
    if self.size == 1:
      return
    digest = hash_values(sess.run(tf.trainable_variables()))
    digests = self.comm.allgather(digest)
    other = [rank for rank, x in enumerate(digests) if x != digests[0]]
    if other:
      raise RuntimeError(
        f'Rank {other[0]} of {self.size} has other weights than the first '
        'rank, as if their processors computed differently. Use machines of '
        'one kind, and the same libraries on all; the same command goes on '
        'from the last checkpoint.'
      )

  def session_options(self) -> tf.ConfigProto:
    """Return options that share cores and GPUs with ranks on this machine.

    The environment variables of TensorFlow set other numbers of threads.
    """
    options = tf.ConfigProto(allow_soft_placement=True)
    options.gpu_options.allow_growth = True
    if self.size == 1:
      return options
    if 'TF_NUM_INTRAOP_THREADS' not in os.environ:
      options.intra_op_parallelism_threads = self._threads
    count = len(devices.list_usable())
    if count > 1:
      options.gpu_options.visible_device_list = str(self.host.rank % count)
    return options

  def describe(self) -> str:
    """Return one or two sentences on the ranks."""
    used = self.host.cores * self.host.size
    cores = min(os.cpu_count() or 1, limits.cpu_quota())
    return (
      f'{self.size} processes train together, {self.host.size} of them on this '
      f'machine. These may use {used:.3g} of {cores} cores, {self._threads} '
      'each; mpirun --bind-to none lets them use all.'
    )

  @property
  def _threads(self):
    return max(1, round(self.host.cores))


def own_config(config: AttrDict, ranks: Ranks) -> AttrDict:
  """Return a configuration with what this rank plays and keeps in memory.

  The environments of a collection are split over the ranks. The next
  collection begins with the rank after the last one that has got one more.

  Args:
    config: Configuration of the run.
    ranks: Ranks.
  """
  if ranks.size == 1:
    return config
  loader = config.data_loader
  if getattr(loader, 'keywords', {}).get('max_bytes', 0) is None:
    # Ranks of a machine share its memory, each with two loaders.
    size = limits.allowed_memory() // (4 * ranks.host.size)
    loader = bind(loader, max_bytes=size)
  train, test = config.train_collects, config.test_collects
  return AttrDict(
    config,
    data_loader=loader,
    train_collects=_own_collects(train, ranks, config.collect_per_rank),
    test_collects=_own_collects(test, ranks, False),
  )


def hash_values(values: Sequence[np.ndarray]) -> str:
  """Return a text that differs when a bit of the arrays does."""
  digest = hashlib.sha256()
  for value in values:
    digest.update(np.ascontiguousarray(value).tobytes())
  return digest.hexdigest()


def _own_collects(collects, ranks, each):
  """Collections of this rank, with what part of each it is.

  Args:
    collects: Collections of all ranks.
    ranks: Ranks.
    each: Whether every rank plays all of them.
  """
  own, turn = AttrDict(_unlocked=True), 0
  for name, params in collects.items():
    amount = params.num_agents
    first, count = ranks.share(amount * ranks.size if each else amount, turn)
    turn += amount
    if count:
      own[name] = AttrDict(
        params, num_agents=count, first_agent=first, part=count / amount
      )
  own.lock()
  return own
