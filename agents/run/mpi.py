"""Optional MPI: the same calls with and without mpi4py."""

import collections
import contextlib
import dataclasses
import functools
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from agents.run import errors, limits

# Variables with the number of processes and with the number of this one.
_SIZES = (
  'OMPI_COMM_WORLD_SIZE',  # Open MPI.
  'PMI_SIZE',  # MPICH, Intel MPI, srun --mpi=pmi2.
)
_RANKS = ('PMI_RANK', 'PMIX_RANK', 'SLURM_PROCID')

_Result = TypeVar('_Result')

# From here on, steps of Slurm are the scripts and shells of allocations.
_FIRST_SHELL = 0xFFFFFFF0


class SingleComm:
  """Communicator of a single process, with the interface of mpi4py."""

  def Get_rank(self) -> int:
    return 0

  def Get_size(self) -> int:
    return 1

  def Allreduce(
    self, source: np.ndarray, target: np.ndarray, op: Any = None
  ) -> None:
    np.copyto(target, source)

  def Bcast(self, array: np.ndarray, root: int = 0) -> None:
    pass

  def Barrier(self) -> None:
    pass

  def bcast(self, value: Any, root: int = 0) -> Any:
    return value

  def allgather(self, value: Any) -> list[Any]:
    return [value]


@functools.cache
def world() -> Any:
  """Return the communicator of all processes of this job.

  Imports mpi4py only if a launcher has set its environment variables. These
  are used only to cross-check what mpi4py reports.

  Returns:
    `mpi4py.MPI.COMM_WORLD`, or a `SingleComm`.

  Raises:
    UsageError: If a launcher started several processes that cannot connect,
      because mpi4py is missing or belongs to another MPI.
  """
  variable, size = _launched()
  if size == 1:
    return SingleComm()
  said = f'A launcher has set {variable}={os.environ[variable]}'
  # Ranks that wait leave the cores to others; Open MPI reads this.
  os.environ.setdefault('OMPI_MCA_mpi_yield_when_idle', '1')
  try:
    from mpi4py import MPI
  except ImportError as error:
    raise errors.UsageError(
      f'{said}, so there may be several processes, but mpi4py cannot be '
      f'imported ({error}). Run {errors.how_to_install("mpi")}, or start one '
      f'process without a launcher and unset {variable}.'
    ) from None
  if MPI.COMM_WORLD.Get_size() == 1 and size > 1:
    raise errors.UsageError(
      f'{said}, but mpi4py sees only one process, so each process would train '
      'a separate agent in the same log directory. The launcher and mpi4py '
      'belong to different MPI installations: use the mpirun of this Python, '
      f'or another --mpi of srun. If this is intended, unset {variable}.'
    )
  return MPI.COMM_WORLD


def is_first() -> bool:
  """Return whether this process is the first of its job, or the only one.

  Trusts the launcher, and connects to no other process.
  """
  ranks = ('OMPI_COMM_WORLD_RANK', *_RANKS)
  return _launched()[1] == 1 or not any(_read(x) > 0 for x in ranks)


def find_mpirun(what: str) -> str:
  """Return the mpirun of this Python or of the system.

  Raises:
    UsageError: If there is none, which names what needs it.
  """
  beside = os.path.join(os.path.dirname(sys.executable), 'mpirun')
  if mpirun := shutil.which(beside) or shutil.which('mpirun'):
    return mpirun
  how = errors.how_to_install('mpi')
  raise errors.UsageError(f'{what} needs mpirun, which is missing: {how}.')


def on_first_rank(comm: Any, function: Callable[[], _Result]) -> _Result:
  """Call a function on the first rank and return its result on all ranks.

  All ranks raise its `UsageError`; other errors end the job.

  Args:
    comm: Communicator.
    function: Function to call on the first rank only.
  """
  result = error = None
  if comm.Get_rank() == 0:
    try:
      result = function()
    except errors.UsageError as failure:
      error = failure
  result, error = comm.bcast((result, error))
  if error is not None:
    raise error
  return result


def on_all_ranks(comm: Any, function: Callable[[], _Result]) -> _Result:
  """Call a function on each rank and return its result there.

  If it raises a `UsageError` or a `Failure` on some ranks, it does so on all:
  those without one raise the error of the lowest rank that has one. Then the
  first rank can remove what it has created.

  Args:
    comm: Communicator; all ranks must make this call.
    function: Function that communicates with no other rank.
  """
  error: errors.UsageError | errors.Failure | None = None
  try:
    result = function()
  except (errors.UsageError, errors.Failure) as failure:
    error = failure
  found = comm.allgather(error)
  if error is not None:
    raise error
  for rank, other in enumerate(found):
    if other is not None:
      other.args = f'Rank {rank}: {other}', *other.args[1:]
      raise other
  return result


def check_even(size: int, name: str, amount: int) -> None:
  """Check that processes can share an amount evenly.

  Args:
    size: Number of processes.
    name: Name of the parameter that is the amount.
    amount: Its value.

  Raises:
    UsageError: If they cannot.
  """
  if amount % size:
    raise errors.UsageError(
      f'{size} processes cannot share {name} {amount} evenly; change it, or '
      'the number of processes.'
    )


def check_shared(comm: Any, folder: str) -> None:
  """Check that all ranks see the folder of the first one.

  Args:
    comm: Communicator; all ranks must make this call.
    folder: Path, which the first rank may write to.

  Raises:
    UsageError: On all ranks, if one of them does not.
  """
  with contextlib.ExitStack() as stack:
    probe = None
    if comm.Get_rank() == 0 and comm.Get_size() > 1:
      probe = stack.enter_context(tempfile.NamedTemporaryFile(dir=folder)).name
    probe = comm.bcast(probe)
    sees = probe is None or os.path.exists(probe)
    found = comm.allgather((sees, socket.gethostname()))
  for rank, (sees, host) in enumerate(found):
    if not sees:
      raise errors.UsageError(
        f'Rank {rank} of {len(found)} cannot find the folder {folder} of rank '
        f'0 on {host}; use one that all machines share.'
      )


def abort_on_errors() -> None:
  """End all processes of the job with a traceback when this one fails.

  For programs that do not start through `agents.run.entry`.
  """
  previous = sys.excepthook

  def hook(kind, error, trace):
    previous(kind, error, trace)
    if world().Get_size() > 1:
      world().Abort(1)

  sys.excepthook = hook


@dataclasses.dataclass(frozen=True)
class HostShare:
  """Share of a machine that a process may use.

  Attributes:
    rank: Rank of this process among those on the same machine.
    size: Number of processes on the same machine.
    cores: Number of cores for this process; a core shared by several processes
      counts as a fraction for each.
  """

  rank: int
  size: int
  cores: float

  @property
  def threads(self) -> int:
    """Number of threads for an operation that uses all of these cores."""
    return max(1, round(self.cores))


def find_share(comm: Any) -> HostShare:
  """Return the share of this process; all processes must call this."""
  mine = (socket.gethostname(), limits.list_cores())
  found = comm.allgather(mine)
  here = [x for x, (host, _) in enumerate(found) if host == mine[0]]
  users = collections.Counter(core for x in here for core in found[x][1])
  cores = sum(1 / users[core] for core in mine[1])
  cores = min(cores, limits.cpu_quota() / len(here))
  return HostShare(here.index(comm.Get_rank()), len(here), cores)


def _launched():
  """Return the number of processes according to environment variables.

  The innermost launcher counts, because mpirun may use srun to start its
  daemons on other machines.

  Returns:
    Tuple of the name of the variable, None if there is no launcher, and the
    number: a lower bound if only the rank of this process is known, zero if
    that is unknown, too.
  """
  environ = os.environ
  in_shell = _read('SLURM_STEP_ID') >= _FIRST_SHELL
  sizes = list(_SIZES)
  if not in_shell:
    sizes.append('SLURM_STEP_NUM_TASKS')
    # Without srun it is the size of the allocation.
    if 'SLURM_STEP_ID' in environ or 'PMIX_RANK' in environ:
      sizes.append('SLURM_NTASKS')
  for name in sizes:
    if name in environ:
      return name, _read(name)
  for name in _RANKS:
    if _read(name) > 0:
      return name, _read(name) + 1
  for name in ('PMI_RANK', 'PMIX_RANK'):
    if name in environ and not in_shell:
      return name, 0
  return None, 1


def _read(name):
  try:
    return int(os.environ.get(name, 0))
  except ValueError:
    return 0
