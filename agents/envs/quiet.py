"""Silence the output of old libraries."""

import contextlib
import ctypes
import io
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator

# What pygame prints when it is imported, and the packages that it imports.
os.environ.setdefault('PYGAME_HIDE_SUPPORT_PROMPT', '1')
warnings.filterwarnings('ignore', message='pkg_resources is deprecated')
# Our wrappers step past the end if an episode must be long enough.
warnings.filterwarnings('ignore', message=r".*You are calling 'step\(\)' even")


@contextlib.contextmanager
def quietly() -> Iterator[None]:
  """Silence old libraries and undo their changes to the module search path.

  gym advertises its successor, and PyBullet prints its location. PyBullet also
  puts itself first on Python's search path, where it has another package named
  `agents` that would replace ours in new processes.

  Yields:
    Nothing.
  """
  path = list(sys.path)
  if 'pybullet_envs' in sys.modules:
    # Its modules import each other without naming the package.
    sys.path.extend(sys.modules['pybullet_envs'].__path__)
  with (
    contextlib.redirect_stderr(io.StringIO()),
    contextlib.redirect_stdout(io.StringIO()),
    warnings.catch_warnings(),
    hold_back(1, 2),
  ):
    warnings.simplefilter('ignore')
    try:
      yield
    finally:
      sys.path[:] = path


@contextlib.contextmanager
def hold_back(*streams: int) -> Iterator[None]:
  """Hold back output that libraries write to a stream, unless they fail.

  Args:
    *streams: 1 for standard output, 2 for standard error.

  Yields:
    Nothing.
  """
  saved = [os.dup(x) for x in streams]
  with tempfile.TemporaryFile() as held:
    for stream in streams:
      os.dup2(held.fileno(), stream)
    try:
      yield
    except BaseException:
      held.seek(0)
      os.write(saved[-1], held.read())
      raise
    finally:
      # What waits in the buffers of C would be printed at the end otherwise.
      with contextlib.suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).fflush(None)
      for stream, copy in zip(streams, saved):
        os.dup2(copy, stream)
        os.close(copy)
