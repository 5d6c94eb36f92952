"""MPI processes (ranks) that train one model together."""

import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from agents.run import limits, mpi, stopping
from agents.tools import devices, mpi_ops
from agents.tools.tf1 import tf
from planet.tools.attr_dict import AttrDict
from planet.tools.bind import bind

if TYPE_CHECKING:
  from planet.scripts.configs import Config

# Seconds between two checks whether the other ranks have arrived.
_SHORTEST_PAUSE, _LONGEST_PAUSE = 1e-4, 0.01


class Ranks:
  """MPI processes that run the same graph; without MPI, only this one.

  All ranks must call the same methods in the same order. The graph averages
  gradients and losses before it plays episodes, so a rank that stops while
  playing has no exchange left to do.

  Args:
    comm: Communicator, see `agents.run.mpi.world`; None for one process.

  Attributes:
    comm: Communicator.
    rank: Number of this process.
    size: Number of processes.
    is_first: Whether this process writes checkpoints, events and metrics.
    host: Share of this machine that this process may use.
  """

  def __init__(self, comm: Any = None) -> None:
    self.comm: Any = comm or mpi.SingleComm()
    self.rank: int = self.comm.Get_rank()
    self.size: int = self.comm.Get_size()
    self.is_first = self.rank == 0
    self.host = mpi.find_share(self.comm)
    self._stop = False

  def should_stop(self) -> bool:
    """Return whether any rank was asked to stop; equal on all ranks."""
    return stopping.requested() if self.size == 1 else self._stop

  def share(self, amount: int, first_rank: int = 0) -> tuple[int, int]:
    """Distribute items over the ranks as evenly as possible.

    Args:
      amount: Number of items.
      first_rank: First rank to get one more, modulo the number of ranks.

    Returns:
      Tuple of the index of the first item of this rank and its number of items.
    """
    least, more = divmod(amount, self.size)
    ranks = range(self.size)
    counts = [
      least + ((rank - first_rank) % self.size < more) for rank in ranks
    ]
    return sum(counts[: self.rank]), counts[self.rank]

  def average(self, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Average tensors of one dtype over all ranks in a single message."""
    if self.size == 1:
      return list(tensors)
    sums = mpi_ops.allreduce_all(list(tensors), self.comm)
    return [x / self.size for x in sums]

  def sync(self, interrupted: bool = False) -> None:
    """Wait for all ranks and exchange whether any was asked to stop.

    Args:
      interrupted: Whether this rank cannot continue.

    Raises:
      StopRequested: On all ranks, if one of them cannot continue.
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
    """Call a function on each rank and synchronize.

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
    """Return the weighted mean score of the ranks that have one.

    Args:
      score: Mean return of the episodes that this rank played, NaN without
        any.
      weight: Fraction of all episodes that this rank played.
    """
    pairs = self.comm.allgather((score, weight))
    pairs = [x for x in pairs if x[1] and not np.isnan(x[0])]
    total = sum(weight for _, weight in pairs)
    return sum(x * weight for x, weight in pairs) / total if pairs else score

  def broadcast(self, sess: tf.Session) -> None:
    """Copy variables from the first rank to all others.

    Skips variables that only some ranks have, such as those of environments.
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
    """Check that all ranks have the same weights, bit for bit.

    Raises:
      RuntimeError: If they do not.
    """
    if self.size > 1:
      mpi_ops.check_same(sess.run(tf.trainable_variables()), self.comm)

  def session_options(self) -> tf.ConfigProto:
    """Return session options that share cores and GPUs of this machine.

    TF_NUM_INTRAOP_THREADS overrides the number of threads.
    """
    options = devices.session_options()
    if self.size == 1:
      return options
    if 'TF_NUM_INTRAOP_THREADS' not in os.environ:
      options.intra_op_parallelism_threads = self.host.threads
    count = len(devices.list_usable())
    if count > 1:
      options.gpu_options.visible_device_list = str(self.host.rank % count)
    return options

  def describe(self) -> str:
    """Describe the ranks in two sentences."""
    used = self.host.cores * self.host.size
    cores = min(os.cpu_count() or 1, limits.cpu_quota())
    return (
      f'{self.size} processes train together, {self.host.size} of them on this '
      f'machine. They may use {used:.3g} of {cores} cores, {self.host.threads} '
      'each; use mpirun --bind-to none to use all.'
    )


def own_config(config: 'Config', ranks: Ranks) -> 'Config':
  """Return the configuration with this rank's share of episodes and memory.

  Distributes the environments of all collections over the ranks in turn.

  Args:
    config: Configuration of the run.
    ranks: Ranks.
  """
  if ranks.size == 1:
    return config
  loader = config.data_loader
  if getattr(loader, 'keywords', {}).get('max_bytes', 0) is None:
    # Ranks share the memory of their machine, and each has two loaders.
    size = limits.allowed_memory() // (4 * ranks.host.size)
    loader = bind(loader, max_bytes=size)
  train, test = config.train_collects, config.test_collects
  return config.replace(
    data_loader=loader,
    train_collects=_own_collects(train, ranks, config.collect_per_rank),
    test_collects=_own_collects(test, ranks, False),
  )


def _own_collects(collects, ranks, each):
  """Return the collections of this rank and its share of each.

  Args:
    collects: Collections of all ranks.
    ranks: Ranks.
    each: Whether every rank plays all environments.
  """
  own, first_rank = {}, 0
  for name, params in collects.items():
    amount = params.num_agents
    first, count = ranks.share(
      amount * ranks.size if each else amount, first_rank
    )
    first_rank += amount
    if count:
      own[name] = AttrDict(
        params, num_agents=count, first_agent=first, part=count / amount
      )
  return AttrDict(own)
