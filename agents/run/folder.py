"""Folders of runs: create, hold, find, compare, mark, and which to continue.

The systems say what the names look like, which files are in a folder, and what
keeps a run from being continued.
"""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from agents.run import errors, files

# File that the process that works on a run holds a lock on.
LOCK = 'lock'
# Number of runs that a sentence names.
_MOST_NAMED = 3


def create(
  base: str, names: Iterable[str], lock: str = LOCK
) -> tuple[str, contextlib.ExitStack]:
  """Create the first folder that is free, and keep others away from it.

  Args:
    base: Folder of the runs, created if needed.
    names: Names to try one after the other.
    lock: Name of the file to lock.

  Returns:
    Tuple of the folder and what `hold` returns.

  Raises:
    FileExistsError: If all names are taken.
    UsageError: If nothing can be written there.
  """
  files.check_writable(base)
  for name in names:
    run = os.path.join(base, name)
    with contextlib.suppress(FileExistsError):
      os.mkdir(run)
      held = hold(run, lock)
      if held:
        return run, held
  raise FileExistsError(f'All names of runs in {base} are taken.')


def hold(run: str, lock: str = LOCK) -> contextlib.ExitStack | None:
  """Keep other processes away from a run.

  Args:
    run: Folder of the run, created if needed.
    lock: Name of the file to lock.

  Returns:
    `contextlib.ExitStack` that gives the run back when it is closed, as the
    end of this process does; None if somebody else holds the run.

  Raises:
    UsageError: If nothing can be written there.
  """
  files.check_writable(run)
  locked = files.try_lock(os.path.join(run, lock))
  if not locked:
    return None
  held = contextlib.ExitStack()
  held.callback(locked.release)
  return held


@contextlib.contextmanager
def removed_if_refused(
  run: str, missing: str | None, has_begun: Callable[[], bool]
) -> Iterator[None]:
  """Leave nothing of a new run that is refused before it has begun.

  Args:
    run: Folder that this process holds.
    missing: What `files.first_missing` has said of it before it was held.
    has_begun: Function that says whether there is something to keep.

  Yields:
    Nothing.
  """
  try:
    yield
  except errors.UsageError:
    if missing and not has_begun():
      folder = os.path.abspath(run)
      shutil.rmtree(folder, ignore_errors=True)
      # Others may have begun to write beside it.
      with contextlib.suppress(OSError):
        while folder != missing:
          folder = os.path.dirname(folder)
          os.rmdir(folder)
    raise


def is_held(run: str, lock: str = LOCK) -> bool:
  """Whether somebody holds a run; nothing is written."""
  if not has(run, lock):
    return False
  locked = files.try_lock(os.path.join(run, lock))
  if locked:
    locked.release()
  return not locked


def take(run: str, held: contextlib.ExitStack | None) -> bool:
  """Hold a run until a stack is closed; without one, see if it is free."""
  if held is None:
    return not is_held(run)
  own = hold(run)
  if own:
    held.enter_context(own)
  return own is not None


def find(base: str, marker: str, suffix: str = '') -> list[str]:
  """Return the sorted folders in a folder that hold a file.

  Args:
    base: Folder of the runs, which need not exist.
    marker: Name of the file.
    suffix: End of the names of the folders.
  """
  names = sorted(os.listdir(base)) if os.path.isdir(base) else []
  runs = [os.path.join(base, x) for x in names if x.endswith(suffix)]
  return [x for x in runs if has(x, marker)]


def find_single(logdir: str) -> str:
  """Find the run in a folder that is its own, or that of a single run.

  Raises:
    UsageError: If there is none, or more than one.
  """
  logdir = os.path.abspath(os.path.expanduser(logdir))
  is_run = has(logdir, 'config.yaml')
  found = [logdir] if is_run else find(logdir, 'config.yaml')
  if not found:
    raise errors.UsageError(
      f'There is no run in {logdir}; give the --logdir of the training.'
    )
  if len(found) > 1:
    raise errors.UsageError(
      f'There are {len(found)} runs in {logdir}; choose one of them, such as '
      f'--logdir={found[-1]}.'
    )
  return found[0]


def choose(
  runs: Iterable[str],
  find_obstacle: Callable[[str], str | None],
  held: contextlib.ExitStack | None,
) -> tuple[str | None, str]:
  """Choose the first run that can be continued, and hold it.

  Args:
    runs: Folders, the most wanted first.
    find_obstacle: Function from the folder of a run to the words that say why
      it cannot be continued, or None.
    held: See `take`.

  Returns:
    Tuple of the folder, None if there is none, and words about what is in the
    way of those before.
  """
  obstacles: list[str] = []
  for run in runs:
    obstacle = find_obstacle(run)
    if not obstacle and not take(run, held):
      obstacle = 'is in use by another process'
    # The process that had the lock until now may have finished the run.
    obstacle = obstacle or find_obstacle(run)
    if not obstacle:
      break
    obstacles.append(f'{os.path.basename(run)} {obstacle}')
  else:
    run = None
  words = '; '.join(obstacles[:_MOST_NAMED])
  others = len(obstacles) - _MOST_NAMED
  if others > 0:
    words += f'; {others} older cannot be continued either'
  return run, words


def compare(
  stored: Mapping[str, Any],
  given: Mapping[str, Any],
  names: Iterable[str] | None = None,
) -> dict[str, list[Any]]:
  """Compare the settings of a run with those of a command.

  Args:
    stored: Settings of the run, plain data.
    given: Settings of the command; what is missing counts as None.
    names: What to compare; everything by default.

  Returns:
    Dict from the sorted names of what differs to lists of the stored and the
    given value.
  """
  names = {*stored, *given} if names is None else names
  pairs = {x: [stored.get(x), given.get(x)] for x in sorted(names)}
  return {x: pair for x, pair in pairs.items() if pair[0] != pair[1]}


def describe(differences: Mapping[str, list[Any]]) -> str:
  """Put what `compare` returns into words: `steps 100 instead of 200`."""
  return ', '.join(
    # Trees would fill the screen.
    name
    if isinstance(old, (dict, list)) or isinstance(new, (dict, list))
    else f'{name} {_name(old)} instead of {_name(new)}'
    for name, (old, new) in differences.items()
  )


def check_same(
  run: str, differences: Mapping[str, list[Any]], advice: str
) -> None:
  """Refuse to continue a run with other settings.

  Args:
    run: Folder of the run.
    differences: What `compare` returns.
    advice: Sentence that says what to do.

  Raises:
    UsageError: If something differs.
  """
  if differences:
    raise errors.UsageError(
      f'The run in {run} has {describe(differences)}. {advice}'
    )


def has(run: str, marker: str) -> bool:
  """Whether a run has a file or folder, such as the mark of its end."""
  return os.path.exists(os.path.join(run, marker))


def mark(run: str, marker: str, text: str = '\n') -> None:
  """Write a small file that says what became of a run."""
  with files.atomic_write(os.path.join(run, marker)) as file_:
    file_.write(text)


def unmark(run: str, marker: str) -> None:
  """Remove what `mark` has written, if it is there."""
  with contextlib.suppress(FileNotFoundError):
    os.remove(os.path.join(run, marker))


def _name(value):
  return 'unset' if value is None else value
