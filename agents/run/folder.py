"""Folders of runs: create, lock, find, compare, mark, and which to continue.

The systems say what the names look like, which files are in a folder, and what
keeps a run from being continued.
"""

import contextlib
import functools
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from agents.run import checkpoint, errors, files, training

# File that the process that works on a run locks.
LOCK = 'lock'
_SETTINGS = 'config.yaml'
# Number of runs that a sentence names.
_MOST_NAMED = 3


class Busy(errors.UsageError):
  """Another process works on the run."""


class Run(contextlib.ExitStack):
  """Folder of a run; what is stored there is read once, when it is needed.

  Closing it, as the end of this process does, gives up the lock.

  Args:
    folder: Path, which need not exist; None for a run that keeps nothing.
    lock: What `lock` returns; None for a run that is only read.
    reason: Sentence that says which run this is and why.

  Attributes:
    config: What the system makes of the settings and its command.
    changes: What the command changes, in words.
  """

  def __init__(
    self,
    folder: str | None,
    lock: contextlib.ExitStack | None = None,
    reason: str = '',
  ):
    super().__init__()
    self.folder = folder
    self.reason = reason
    self.config: Any = None
    self.changes: list[str] = []
    if lock:
      self.enter_context(lock)

  @classmethod
  def open(cls, folder: str, name: str = LOCK) -> 'Run':
    """Create a folder if needed, and lock it.

    Args:
      folder: Path.
      name: Name of the file to lock.

    Raises:
      Busy: If another process works there.
      UsageError: If nothing can be written.
    """
    taken = lock(folder, name)
    if not taken:
      raise Busy(
        f'Another process works on the run in {folder}. Wait until it has '
        'ended, or use another folder.'
      )
    return cls(folder, taken)

  @functools.cached_property
  def settings(self) -> dict[str, Any] | None:
    """Content of `config.yaml`, None if there is none.

    Raises:
      UsageError: If it is damaged.
    """
    if not self.folder or not has(self.folder, _SETTINGS):
      return None
    return read_settings(self.folder)

  @functools.cached_property
  def checkpoint(self) -> str | None:
    """Path of the newest whole `model.ckpt-<step>`, None if there is none.

    Raises:
      UsageError: If all are damaged.
    """
    return self.folder and checkpoint.find_variables(self.folder)

  @property
  def step(self) -> int:
    """Global step of that checkpoint, 0 without one."""
    return int(self.checkpoint.rpartition('-')[2]) if self.checkpoint else 0


def read_settings(run: str) -> dict[str, Any]:
  """Return the mapping in the `config.yaml` of a run.

  Raises:
    UsageError: If there is none, or it is damaged.
  """
  filename = os.path.join(run, _SETTINGS)
  try:
    found = files.read_yaml(filename)
    if not isinstance(found, dict):
      raise ValueError('it is not a mapping')
  except FileNotFoundError:
    raise errors.UsageError(
      f'There is no run in {run}; it has no {_SETTINGS}.'
    ) from None
  except ValueError as error:
    raise errors.UsageError(
      f'Cannot read {filename}: {error}. Repair the file, or start a new run '
      'in another folder.'
    ) from None
  return found


def create(base: str, names: Iterable[str]) -> Run:
  """Create the first folder that is free, and lock it.

  Args:
    base: Folder of the runs, created if needed.
    names: Names to try one after the other.

  Raises:
    FileExistsError: If all names are taken.
    UsageError: If nothing can be written there.
  """
  files.check_writable(base)
  for path in (os.path.join(base, x) for x in names):
    with contextlib.suppress(FileExistsError):
      os.mkdir(path)
      return Run.open(path)
  raise FileExistsError(f'All names of runs in {base} are taken.')


def lock(run: str, name: str = LOCK) -> contextlib.ExitStack | None:
  """Keep other processes away from a run.

  A training of this process that has locked it, see `agents.run.training`, is
  saved and gives it up.

  Args:
    run: Folder of the run, created if needed.
    name: Name of the file to lock.

  Returns:
    `contextlib.ExitStack` that unlocks the run when it is closed, as the end of
    this process does; None if another process has locked it.

  Raises:
    UsageError: If nothing can be written there.
  """
  files.check_writable(run)
  path = os.path.join(run, name)
  locked = files.try_lock(path)
  if not locked and training.take_over(path):
    locked = files.try_lock(path)
  if not locked:
    return None
  training.hold(path)
  stack = contextlib.ExitStack()
  stack.callback(locked.release)
  return stack


@contextlib.contextmanager
def removed_if_refused(
  run: str, missing: str | None, has_begun: Callable[[], bool]
) -> Iterator[None]:
  """Leave nothing of a new run that is refused before it has begun.

  Args:
    run: Folder that this process has locked.
    missing: What `files.first_missing` has said of it before it was locked.
    has_begun: Function that says whether there is something to keep.

  Yields:
    Nothing.
  """
  try:
    yield
  except (errors.UsageError, errors.Failure):
    if missing and not has_begun():
      folder = os.path.abspath(run)
      shutil.rmtree(folder, ignore_errors=True)
      # Others may have begun to write beside it.
      with contextlib.suppress(OSError):
        while folder != missing:
          folder = os.path.dirname(folder)
          os.rmdir(folder)
    raise


def find(base: str, marker: str, suffix: str = '') -> list[str]:
  """Return the sorted folders in a folder that have a file.

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
  folders: Iterable[str], why_not: Callable[[Run], str | None]
) -> tuple[Run | None, str]:
  """Choose the first run that can be continued, and lock it.

  Args:
    folders: Folders of runs, the most wanted first.
    why_not: Function from a run to the words that say why it cannot be
      continued, or None.

  Returns:
    Tuple of the run, None if there is none, and words about what is in the way
    of those before.
  """
  reasons: list[str] = []
  run = None
  for folder in folders:
    reason = why_not(Run(folder))
    if not reason:
      taken = lock(folder)
      run = Run(folder, taken)
      # The process that had the lock until now may have finished the run.
      reason = why_not(run) if taken else 'is in use by another process'
      if not reason:
        break
      run.close()
      run = None
    reasons.append(f'{os.path.basename(folder)} {reason}')
  others = len(reasons) - _MOST_NAMED
  if others > 0:
    reasons[_MOST_NAMED:] = [f'{others} older cannot be continued either']
  return run, '; '.join(reasons)


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


def find_changes(
  run: str,
  stored: Mapping[str, Any],
  given: Mapping[str, Any],
  fixed: Callable[[str], str | None],
) -> dict[str, list[Any]]:
  """Return what a command changes in the settings of a run.

  Args:
    run: Folder of the run.
    stored: Settings of the run, plain data.
    given: Settings that the command names, plain data.
    fixed: Function from the name of a setting to why a run keeps it, or None.

  Returns:
    Dict from names to lists of the old and the new value.

  Raises:
    UsageError: If something has to stay as it is.
  """
  changed = compare(stored, given, given)
  refused = [
    f'{name}: {old} -> {new} ({fixed(name)})'
    for name, (old, new) in changed.items()
    if fixed(name)
  ]
  if refused:
    raise errors.UsageError(
      f'The run in {run} cannot go on with {"; ".join(refused)}. Leave that as '
      'it is, or use another folder.'
    )
  return changed


def describe(differences: Mapping[str, list[Any]]) -> str:
  """Put what `compare` returns into words: `steps 100 instead of 200`."""
  words = []
  for name, values in differences.items():
    if not any(isinstance(x, (dict, list)) for x in values):
      old, new = ('unset' if x is None else x for x in values)
      name = f'{name} {old} instead of {new}'
    # Trees would fill the screen.
    words.append(name)
  return ', '.join(words)


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
