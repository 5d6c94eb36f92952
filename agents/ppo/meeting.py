"""Which finished episodes of several processes an update takes."""

import numpy as np


def divide(ends: np.ndarray, wanted: int) -> np.ndarray:
  """Count the episodes that processes have as if they told of each at once.

  Processes meet now and then only, but episodes count in the order in which
  they ended; of those that ended together, that of the first process comes
  first. The first ones make an update as soon as they are enough. Those that
  ended in the same step as the last of these are dropped, as in a single
  process. Later ones wait for the next update.

  Args:
    ends: When the episodes of each process ended, in their order, int
      [processes, episodes]; negative behind the last one.
    wanted: Number of episodes that an update needs.

  Returns:
    Numbers of episodes int32 [processes, 3]: the first ones of a process,
    which an update takes now, those after them that are dropped, and those
    after these that wait. Nothing is taken if the episodes do not suffice. Of
    those that wait there are fewer than wanted, the rest is dropped.
  """
  shares = np.zeros([len(ends), 4], np.int32)
  processes = np.nonzero(ends >= 0)[0]
  ends = ends[ends >= 0]
  order = np.argsort(ends, kind='stable')
  fates = np.full(len(order), 2)
  if len(order) >= wanted:
    fates[ends[order] == ends[order[wanted - 1]]] = 1
    fates[:wanted] = 0
  # Beyond the last column is what no memory would hold.
  fates[np.cumsum(fates == 2) >= wanted] = 3
  np.add.at(shares, (processes[order], fates), 1)
  return shares[:, :3]
