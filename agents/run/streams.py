"""Standard streams that are silent in some threads and not in others."""

import contextlib
import ctypes
import os
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

_NAMES = 'stdout', 'stderr'
# Never closed, not even by Python, which would warn about it when it ends:
# silent threads keep the streams that they find.
_nowhere = open(os.open(os.devnull, os.O_WRONLY), 'w', closefd=False)
_own = threading.local()
# Number of contexts that need `_PerThread` streams, and how to undo that.
_users, _undo, _changing = 0, contextlib.ExitStack(), threading.Lock()


class _PerThread:
  """Text stream that writes to another one, which depends on the thread.

  It can still be used after the end of the context that has made it.

  Args:
    stream: Stream of threads that are not silent.

  Attributes:
    others: Stream of those threads that do not hold back a file descriptor
      either, None for `stream`.
  """

  def __init__(self, stream: Any):
    self.stream, self.others = stream, None

  def __getattr__(self, name: str) -> Any:
    stream = self.stream
    if is_silent():
      stream = _nowhere
    elif self.others and not getattr(_own, 'holds', False):
      stream = self.others
    return getattr(stream, name)


def is_silent() -> bool:
  """Return whether this thread is silent."""
  return getattr(_own, 'silent', False)


@contextlib.contextmanager
def silent(value: bool = True) -> Iterator[None]:
  """Make this thread silent, or not, within the contexts of `silence`."""
  before = is_silent()
  _own.silent = value
  try:
    yield
  finally:
    _own.silent = before


@contextlib.contextmanager
def silence() -> Iterator[None]:
  """Drop what this thread prints; others print as before."""
  with _per_thread(), silent():
    yield


@contextlib.contextmanager
def beside(copies: Mapping[int, int]) -> Iterator[None]:
  """Let the other threads print while this one holds back descriptors.

  Args:
    copies: Dict from descriptors, 1 or 2, to copies to print to meanwhile.
  """
  with _per_thread():
    found = [getattr(sys, x) for x in _NAMES]
    # A context around this one has better copies.
    routers = [x for x in found if isinstance(x, _PerThread)]
    mine = [x for x in routers if not x.others]
    for router in mine:
      router.others = _copy(router.stream, copies)
    before, _own.holds = getattr(_own, 'holds', False), True
    try:
      yield
    finally:
      _own.holds = before
      for router in mine:
        router.others = None


@contextlib.contextmanager
def hold_back(*descriptors: int) -> Iterator[None]:
  """Hold back output that libraries write to a stream, unless they fail.

  Other threads print as before, but what they write without Python's streams
  is held back, too.

  Args:
    *descriptors: 1 for standard output, 2 for standard error.

  Yields:
    Nothing.
  """
  saved = [os.dup(x) for x in descriptors]
  with (
    tempfile.TemporaryFile() as held,
    beside(dict(zip(descriptors, saved))),
  ):
    for descriptor in descriptors:
      os.dup2(held.fileno(), descriptor)
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
      for descriptor, copy in zip(descriptors, saved):
        os.dup2(copy, descriptor)
        os.close(copy)


def _copy(stream, copies):
  """Return a stream like one of a descriptor, None for others.

  Nothing of it waits in a buffer, as another thread may use it to the end.
  """
  try:
    stream.flush()
    copy = os.dup(copies[stream.fileno()])
  except (AttributeError, KeyError, OSError, ValueError):
    # The stream has no descriptor, such as that of a notebook.
    return None
  kind = {'encoding': stream.encoding, 'errors': stream.errors}
  made = open(copy, 'w', buffering=1, closefd=False, **kind)
  # Python would warn of a file that its last user leaves open.
  weakref.finalize(made, os.close, copy).atexit = False
  return made


@contextlib.contextmanager
def _per_thread():
  """Replace the standard streams by those that know the thread.

  Does not touch them at the end if the user has replaced them meanwhile.
  """
  global _users
  with _changing:
    for name in _NAMES:
      stream = getattr(sys, name)
      # Some programs with windows have no streams.
      if stream is not None and not isinstance(stream, _PerThread):
        router = _PerThread(stream)
        setattr(sys, name, router)
        _undo.callback(_restore, name, router)
    _users += 1
  try:
    yield
  finally:
    with _changing:
      _users -= 1
      if not _users:
        _undo.close()


def _restore(name, router):
  if getattr(sys, name) is router:
    setattr(sys, name, router.stream)
