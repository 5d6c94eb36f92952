"""How much memory and how many cores this process may use."""

import math
import os
from collections.abc import Iterable

_MEMORY = (
  '/sys/fs/cgroup/memory.max',
  '/sys/fs/cgroup/memory/memory.limit_in_bytes',
)
# A file with limit and period in microseconds, or one for each.
_CORES = (
  ('/sys/fs/cgroup/cpu.max',),
  (
    '/sys/fs/cgroup/cpu/cpu.cfs_quota_us',
    '/sys/fs/cgroup/cpu/cpu.cfs_period_us',
  ),
)


def allowed_memory(cgroup_files: Iterable[str] = _MEMORY) -> int:
  """Return the memory limit of the machine or its container in bytes.

  Args:
    cgroup_files: Files with the limit of the container; a missing file or one
      without a number means no limit.
  """
  limits = [os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')]
  limits += [int(x) for path in cgroup_files for x in _read_numbers([path])]
  return min(limits)


def allowed_cores() -> float:
  """Return the number of cores that this process may use."""
  return min(len(list_cores()), cpu_quota())


def cpu_quota(cgroup_files: Iterable[Iterable[str]] = _CORES) -> float:
  """Return how many cores the processes of the container may use together.

  Args:
    cgroup_files: See `allowed_memory`.
  """
  limits = [math.inf]
  for paths in cgroup_files:
    match _read_numbers(paths):
      case [limit, period] if limit > 0 and period > 0:
        limits.append(limit / period)
  return min(limits)


def list_cores() -> list[int]:
  """Return the numbers of the cores that this process may run on."""
  if hasattr(os, 'sched_getaffinity'):
    return sorted(os.sched_getaffinity(0))
  return list(range(os.cpu_count() or 1))


def _read_numbers(paths):
  """Return the numbers in files, none if one is missing or has other words."""
  try:
    words = []
    for path in paths:
      with open(path) as file_:
        words += file_.read().split()
    return [int(x) for x in words]
  except (OSError, ValueError):
    return []
