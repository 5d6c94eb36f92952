"""Synchronize updates, ends of phases and stops of processes."""

from typing import Any

from agents.run import stopping

# What a process waits for: an update, the end of the phase, or the end.
FULL, END, STOP = range(3)


def sync(comm: Any, kind: int) -> bool:
  """Wait until every process has reached such a point.

  If all have a full memory, they update. If some are at the end of the phase,
  those with a full memory continue to it, and the others wait for them there.
  If some were asked to stop, all stop.

  Args:
    comm: MPI communicator.
    kind: Event that this process waits for.

  Returns:
    Whether to update now.

  Raises:
    StopRequested: If a process was asked to stop.
  """
  while True:
    kinds = comm.allgather(kind)
    if STOP in kinds:
      raise stopping.StopRequested('A process was asked to stop.')
    if kind == FULL or FULL not in kinds:
      return END not in kinds
