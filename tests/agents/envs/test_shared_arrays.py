"""Shared memory of environments."""

import errno
import os

import pytest

from agents.envs import shared_arrays
from agents.run import errors


def test_no_space(monkeypatch):
  """One sentence, not the end of the process at the first use."""

  def fail(*unused):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

  created = []
  monkeypatch.setattr(os, 'posix_fallocate', fail)
  memory = shared_arrays.shared_memory.SharedMemory
  monkeypatch.setattr(
    shared_arrays.shared_memory,
    'SharedMemory',
    lambda **kwargs: created.append(memory(**kwargs)) or created[-1],
  )
  with pytest.raises(errors.Failure, match='No space.*shm-size'):
    shared_arrays.Arrays({'x': ((3,), float)}, shared=True)
  with pytest.raises(FileNotFoundError):
    memory(created[0].name)
