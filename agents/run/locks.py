"""Locks of folders in which one process at a time may write.

A lock is an flock, which ends with its process. Where the file system has
none, it is a lease: a file that its holder touches every few seconds, and that
others take over once it has not changed for a while.
"""

import contextlib
import logging
import os
import pwd
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from agents.run import errors, stopping

if TYPE_CHECKING:
  import filelock

_logger = logging.getLogger(__name__)

# Added to the name of a lock file for the lease.
LEASE = '.lease'
# Seconds without a sign of life after which a lease is taken over.
LEASE_SECONDS = 15.0
# Signs of life in that time.
_BEATS = 5
# Longest line of a lock file.
_MOST_READ = 300
# Lock files of this process, and functions that raise `Lost`.
_watched: dict[str, Callable[[], None]] = {}


class Lost(errors.Failure):
  """The folder of a run is not there any more, or belongs to another one."""


class Lock:
  """Lock that this process holds; see `try_lock`.

  Args:
    path: Absolute path of the lock file.
    held: The acquired lock of `filelock`.
  """

  def __init__(self, path: str, held: 'filelock.BaseFileLock'):
    self._held = held
    self._renewing = threading.Lock()
    now = time.strftime('%Y-%m-%d %H:%M:%S')
    words = f'process {os.getpid()} on {socket.gethostname()} since {now}'
    # The holder of a lock may not write there on every file system.
    with contextlib.suppress(OSError), open(path, 'w') as file_:
      file_.write(words + '\n')
    self._stack = contextlib.ExitStack()
    self._stack.callback(held.release)
    self._stack.enter_context(watch(path, words, self._renew))

  def release(self) -> None:
    """Let others have it; may be called again."""
    self._stack.close()

  def _renew(self):
    """Get a lease back that could not be touched in time; return whether."""
    import filelock

    lease = self._held
    with self._renewing:
      if not isinstance(lease, filelock.SoftFileLease) or not lease.compromise:
        return True
      lease.release()
      with contextlib.suppress(filelock.Timeout, OSError):
        lease.acquire(timeout=0)
      return lease.is_locked


@contextlib.contextmanager
def watch(
  path: str,
  words: str | None = None,
  is_ours: Callable[[], bool] = lambda: True,
) -> Iterator[None]:
  """Let `check` tell whether a folder is still that of this process.

  Args:
    path: Absolute path of the file in the folder that says who works there.
    words: Its text; by default, it only has to be there.
    is_ours: Function that returns whether no other process has taken over.

  Yields:
    Nothing.
  """
  folder = os.path.dirname(path)
  known = words and _read(path) == words

  def check():
    found = _read(path)
    if found is None:
      raise Lost(
        f'The folder {folder} was moved or deleted while a run wrote there. '
        'What is saved is where the folder is now; continue the run there.'
      )
    if (known and found != words) or not is_ours():
      raise Lost(
        f'Another process{find_holder(path)} has taken over the run in '
        f'{folder}, as this one gave no sign of life for too long.'
      )

  _watched[path] = check
  try:
    yield
  finally:
    _watched.pop(path, None)


def try_lock(filename: str) -> Lock | None:
  """Lock a file, created if needed, unless another process holds the lock.

  The lock ends with `release` or with this process, even if that is killed. The
  file says who holds it. Without flock, first waits until the holder gives a
  sign of life, or for `LEASE_SECONDS`.

  Args:
    filename: Path in a folder that exists.

  Returns:
    The acquired lock, or None if another process holds it.

  Raises:
    UsageError: If the file of another user may not be written.
  """
  import filelock

  path = os.path.abspath(filename)
  held: filelock.BaseFileLock = filelock.FileLock(
    path, thread_local=False, fallback_to_soft=False
  )
  try:
    held.acquire(timeout=0)
    return Lock(path, held)
  except filelock.Timeout:
    return None
  except PermissionError as error:
    # An error without a file name is that of flock, which is not permitted.
    if error.filename:
      raise errors.UsageError(
        f'Cannot write {path}, which belongs to {_find_owner(path)} '
        f'({error.strerror}). Work as that user, let them share their files, '
        'or choose another folder.'
      ) from None
  except (NotImplementedError, OSError):
    pass
  try:
    lease = _lease(path)
    return lease and Lock(path, lease)
  except OSError as error:
    _logger.warning(
      'Cannot lock %s (%s); make sure that only one process uses it.',
      path,
      error,
    )
  return Lock(path, held)


def find_holder(path: str) -> str:
  """Return the words in a lock file that say who holds it, in brackets."""
  words = _read(path) or ''
  return f' ({words})' if words.startswith('process ') else ''


def check(path: str) -> None:
  """Check that a file to write is not in a folder that this process has lost.

  Args:
    path: Path of the file.

  Raises:
    Lost: If the folder was moved or deleted, or another process has taken it
      over.
  """
  path = os.path.abspath(path)
  for watched, check_folder in list(_watched.items()):
    if path.startswith(os.path.dirname(watched) + os.sep):
      check_folder()


def _lease(path):
  """Acquire the lease of a lock file; None if its holder is alive."""
  import filelock

  lease = filelock.SoftFileLease(path + LEASE, thread_local=False)
  owner = lease.owner
  # All processes must agree on it, also if versions have other defaults.
  seconds = owner and owner.lease_duration or LEASE_SECONDS
  lease = filelock.SoftFileLease(
    path + LEASE,
    thread_local=False,
    lease_duration=seconds,
    heartbeat_interval=seconds / _BEATS,
  )
  before, waits = _last_change(path), False
  while True:
    with contextlib.suppress(filelock.Timeout):
      lease.acquire(timeout=0)
      if owner:
        _logger.warning(
          'Taking over %s: the process that used it%s is gone.',
          os.path.dirname(path),
          find_holder(path),
        )
      return lease
    # None: it has just become free. Before filelock 4.3, one call removes the
    # lease of who is gone, and the next one gets it.
    alive = _last_change(path) not in (None, before)
    if alive or lease.is_lock_held_by_us or stopping.requested():
      return None
    if not waits:
      waits = True
      _logger.warning(
        'Another process had the lock of %s%s; waiting up to %g seconds for a '
        'sign of life.',
        os.path.dirname(path),
        find_holder(path),
        seconds,
      )
    stopping.sleep(min(0.5, seconds / _BEATS))


def _find_owner(path):
  """Return the name of the user that a file belongs to, or the number."""
  try:
    number = os.stat(path).st_uid
    return pwd.getpwuid(number).pw_name
  except KeyError:
    return f'user {number}'
  except OSError:
    return 'another user'


def _last_change(path):
  """Return what a sign of life changes."""
  with contextlib.suppress(OSError):
    found = os.stat(path + LEASE)
    return found.st_ino, found.st_mtime_ns
  return None


def _read(path):
  """Return the first line of a file; None if it is not there."""
  try:
    with open(path, errors='replace') as file_:
      return file_.readline(_MOST_READ).strip()
  except (FileNotFoundError, NotADirectoryError):
    return None
