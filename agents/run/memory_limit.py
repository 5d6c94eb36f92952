"""How much memory this process may use."""

import os
from collections.abc import Iterable

_CGROUP_FILES = (
  '/sys/fs/cgroup/memory.max',
  '/sys/fs/cgroup/memory/memory.limit_in_bytes',
)


def allowed_memory(cgroup_files: Iterable[str] = _CGROUP_FILES) -> int:
  """Return the bytes of the machine, or of its container if these are fewer.

  Args:
    cgroup_files: Files with the limit of the container, which may be missing
      or hold no number if there is no limit.
  """
  limits = [os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')]
  for filename in cgroup_files:
    try:
      with open(filename) as file_:
        limits.append(int(file_.read()))
    except (OSError, ValueError):
      continue
  return min(limits)
