"""Optional MPI: the same calls with and without mpi4py."""

import functools
import os
import sys
import traceback

import numpy as np

from agents.tools import errors

# What launchers tell the processes they start: number of processes, number
# of this one.
_LAUNCHERS = (
  ('OMPI_COMM_WORLD_SIZE', 'OMPI_COMM_WORLD_RANK'),  # Open MPI.
  ('PMI_SIZE', 'PMI_RANK'),  # MPICH, Intel MPI, Slurm.
)


class SingleComm:
  """Communicator of one process, with the interface of mpi4py."""

  def Get_rank(self):
    return 0

  def Get_size(self):
    return 1

  def Allreduce(self, source, target, op=None):
    np.copyto(target, source)

  def Bcast(self, array, root=0):
    pass

  def Barrier(self):
    pass

  def allreduce(self, value, op=None):
    return value

  def bcast(self, value, root=0):
    return value

  def allgather(self, value):
    return [value]

  def gather(self, value, root=0):
    return [value]

  def Abort(self, code=1):
    sys.exit(code)


@functools.cache
def world():
  """Communicator of all processes of this job.

  mpi4py is imported only if a launcher has started several processes.

  Returns:
    `mpi4py.MPI.COMM_WORLD`, or a `SingleComm`.

  Raises:
    UsageError: If a launcher has started several processes that do not find
      each other, because mpi4py is missing or belongs to another MPI.
  """
  size = launched_size()
  if size <= 1:
    return SingleComm()
  try:
    from mpi4py import MPI
  except ImportError as error:
    raise errors.UsageError(
      f'mpirun has started {size} processes, but mpi4py cannot be imported '
      f"({error}): pip install 'reference-agents[mpi]', or start one process "
      'without mpirun.'
    ) from None
  comm = MPI.COMM_WORLD
  if comm.Get_size() != size:
    raise errors.UsageError(
      f'The launcher has started {size} processes, but mpi4py sees a world of '
      f'{comm.Get_size()}: they would train {size} separate agents. The '
      'launcher and mpi4py belong to different MPI installations; use the '
      'mpirun beside this Python.'
    )
  return comm


def launched_size() -> int:
  """Number of processes that a launcher has started, 1 without one."""
  return max(_read(size) for size, _ in _LAUNCHERS) or 1


def launched_rank() -> int:
  """Number of this process according to the launcher, 0 without one."""
  return max(_read(rank) for _, rank in _LAUNCHERS)


def abort_on_errors() -> None:
  """End all processes of the job when this one fails, with its traceback.

  Otherwise the others would wait for it for ever.
  """
  comm = world()
  if comm.Get_size() == 1:
    return
  previous = sys.excepthook

  def hook(kind, error, trace):
    previous(kind, error, trace)
    print(
      f'Rank {comm.Get_rank()} of {comm.Get_size()} failed; ending the job.',
      file=sys.stderr,
      flush=True,
    )
    traceback.clear_frames(trace)
    comm.Abort(1)

  sys.excepthook = hook


def _read(name):
  try:
    return int(os.environ.get(name, 0))
  except ValueError:
    return 0
