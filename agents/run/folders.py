"""Which of the folders of runs a command works in, and nobody else does."""

import contextlib
import datetime
import glob
import os
from collections.abc import Callable

from agents.run import errors
from agents.run import files

# File that the process that works on a run holds a lock on.
_LOCK = 'lock'
# Number of runs that a sentence names.
_MOST_NAMED = 3


def choose(
  logdir: str,
  name: str,
  find_obstacle: Callable[[str], str | None],
  held: contextlib.ExitStack | None = None,
) -> tuple[str, bool, str]:
  """Choose the newest run that can be continued, or the folder of a new one.

  Args:
    logdir: Folder of the runs.
    name: Name of the configuration.
    find_obstacle: Function from the folder of a run to the words that say why
      it cannot be continued, or None.
    held: `contextlib.ExitStack` that gets the lock of the run, or None to
      neither lock nor write anything.

  Returns:
    Tuple of the folder, whether the run exists, and a sentence about why.
  """
  pattern = os.path.join(glob.escape(logdir), f'*-{name}', 'config.yaml')
  obstacles = []
  for run in sorted(map(os.path.dirname, glob.glob(pattern)), reverse=True):
    obstacle = find_obstacle(run)
    if not obstacle and not _take(run, held):
      obstacle = 'is in use by another process'
    # The process that had the lock until now may have finished the run.
    obstacle = obstacle or find_obstacle(run)
    if not obstacle:
      return (
        run,
        True,
        (
          f'Continue the run in {run}, the newest one with these settings that '
          'is neither finished nor in use.'
        ),
      )
    obstacles.append(f'{os.path.basename(run)} {obstacle}')
  run = _create(logdir, name, held)
  return run, False, f'Start a new run in {run}: {_explain(obstacles)}.'


def choose_named(
  logdir: str,
  name: str,
  timestamp: str,
  held: contextlib.ExitStack | None = None,
) -> tuple[str, bool, str]:
  """Choose the run that the user has named; see `choose`.

  Raises:
    UsageError: If another process works on it.
  """
  run = os.path.join(logdir, f'{timestamp}-{name}')
  if not _take(run, held):
    raise errors.UsageError(
      f'Another process works on the run in {run}. Wait until it has ended, '
      'or leave --timestamp away to begin another run.'
    )
  exists = os.path.exists(os.path.join(run, 'config.yaml'))
  words = 'Continue the' if exists else 'Start a new'
  return run, exists, f'{words} run in {run}, as --timestamp says.'


def _take(run, held):
  """Lock a run, or find out whether this would be possible."""
  filename = os.path.join(run, _LOCK)
  if held is None:
    lock = os.path.exists(filename) and files.try_lock(filename)
    if lock:
      lock.release()
    return lock is not None
  files.check_writable(run)
  lock = files.try_lock(filename)
  if lock:
    held.callback(lock.release)
  return lock is not None


def _create(logdir, name, held):
  """Folder named by the time, or by the next second that is free."""
  moment = datetime.datetime.now()
  while True:
    run = os.path.join(logdir, f'{moment:%Y%m%dT%H%M%S}-{name}')
    if not os.path.exists(run) and (held is None or _take_new(run, held)):
      return run
    moment += datetime.timedelta(seconds=1)


def _take_new(run, held):
  """Create a folder and lock it; False if somebody else was faster."""
  files.check_writable(os.path.dirname(run))
  try:
    os.mkdir(run)
  except FileExistsError:
    return False
  return _take(run, held)


def _explain(obstacles):
  if not obstacles:
    return 'it is the first one of this configuration'
  named = '; '.join(obstacles[:_MOST_NAMED])
  others = len(obstacles) - _MOST_NAMED
  if others > 0:
    named += f'; {others} older cannot be continued either'
  return named
