"""Arrays that hold the data of a batch of environments in shared memory."""

import os
from collections.abc import Mapping
from multiprocessing import shared_memory
from typing import Any

import numpy as np

from agents.envs import hosts
from agents.run import errors


class Arrays:
  """Arrays of zeros as attributes, in memory that other processes can share.

  Args:
    layout: Dict from name to shape and dtype.
    shared: Whether they can be sent to other processes.
    name: Name of shared memory that another process created.
  """

  def __init__(
    self,
    layout: Mapping[str, tuple[tuple[int, ...], Any]],
    shared: bool,
    name: str | None = None,
  ):
    self._layout, self._is_owner = layout, name is None
    self._block: Any = None
    # Rounded up to whole cache lines.
    sizes = [
      -(-int(np.prod(shape)) * np.dtype(dtype).itemsize // 64) * 64
      for shape, dtype in layout.values()
    ]
    buffer: Any = np.zeros(sum(sizes), np.uint8)
    if shared:
      hosts.start_tracker()
      if self._is_owner:
        self._block = _create_block(sum(sizes))
      else:
        self._block = shared_memory.SharedMemory(name)
      buffer = self._block.buf
    offsets = np.cumsum([0, *sizes])
    for (key, (shape, dtype)), offset in zip(layout.items(), offsets):
      setattr(self, key, np.ndarray(shape, dtype, buffer, offset))

  def __getattr__(self, name: str) -> Any:
    raise AttributeError(name)  # Tells type checkers of the arrays.

  def __reduce__(self):
    return type(self), (self._layout, True, self._block.name)

  def forget_name(self) -> None:
    """Let the memory end with the last process that has it.

    Nothing of it stays even if all of them are killed at once, but no further
    process can get it.
    """
    if self._block and self._is_owner:
      self._block.unlink()
      self._is_owner = False

  def close(self) -> None:
    """Detach; the process that created shared arrays also removes them."""
    # The memory can be released once nothing points to it.
    for key in self._layout:
      delattr(self, key)
    self._layout = {}
    if self._block:
      self._block.close()
      if self._is_owner:
        self._block.unlink()
      self._block = None


def _create_block(size):
  try:
    block: Any = shared_memory.SharedMemory(create=True, size=size)
    try:
      # Or the first use of memory that is not there ends the process.
      if hasattr(os, 'posix_fallocate'):  # not on macOS
        os.posix_fallocate(block._fd, 0, size)
    except OSError:
      block.close()
      block.unlink()
      raise
  except OSError as error:
    raise errors.Failure(
      f'Cannot create {size} bytes of shared memory for the environments: '
      f'{error.strerror}. Free or enlarge /dev/shm (docker run --shm-size=1g), '
      'or use fewer environments.'
    ) from None
  return block
