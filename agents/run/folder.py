"""Log directories of runs: create, lock, find, compare, mark and continue.

Each system defines the names, the files in a log directory, and what prevents
a run from being continued.
"""

import contextlib
import functools
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from typing_extensions import Self

from agents.run import (
  checkpoint,
  errors,
  files,
  locks,
  references,
  training,
)

# File that the process that works on a run locks.
LOCK = 'lock'
_SETTINGS = 'config.yaml'
# Files that are together in a run of PPO or PlaNet, and in a session.
_KINDS = (
  (_SETTINGS, 'metrics.jsonl'),
  (_SETTINGS, 'PING'),
  ('params.yaml', 'cpanel.json'),
)
# Number of runs that a sentence names.
_MOST_NAMED = 3


class Busy(errors.UsageError):
  """Another process is using the run."""


class Run(contextlib.ExitStack):
  """Log directory of a run, whose files are read lazily and once.

  Closing it releases the lock, as does the end of this process.

  Args:
    folder: Path, which need not exist; None for a run that keeps nothing.
    reason: Sentence that says which run this is and why it was chosen.

  Attributes:
    missing: First part of the path that `take` or `create` had to create, None
      if there was none; see `removed_if_refused`.
    was_changed: Whether another training has changed the run between the
      creation of this object and `take`.
    config: What the system makes of the settings and the command.
    changes: Sentences about what the command changes.
    over: Sentence that says that nothing is left to do, None otherwise.
    filename: Name of the file with the settings.
  """

  filename = _SETTINGS

  def __init__(self, folder: str | None, reason: str = ''):
    super().__init__()
    self.folder = folder
    self.reason = reason
    self.missing: str | None = None
    self.config: Any = None
    self.changes: list[str] = []
    self.over: str | None = None
    self.was_changed = False
    self._version = self._find_version()

  @classmethod
  def open(cls, folder: str, name: str = LOCK) -> Self:
    """Create a log directory if needed, and lock it; see `claim`."""
    run = cls(folder)
    run.claim(name)
    return run

  def claim(self, name: str = LOCK) -> None:
    """Lock the run, see `take`.

    Raises:
      Busy: If another process is using it.
      UsageError: If it is not writable.
    """
    if not self.take(name):
      who = locks.find_holder(os.path.join(self.folder or '', name))
      raise Busy(
        f'Another process is using the run in {self.folder}{who}. Wait until '
        'it has finished, or choose another log directory.'
      )

  def take(self, name: str = LOCK) -> bool:
    """Lock the run unless another process is using it; return whether it is.

    Forgets what was read before if another training has changed the run since.

    Args:
      name: Name of the lock file.

    Raises:
      UsageError: If it is not writable.
    """
    assert self.folder
    self.missing = files.first_missing(self.folder)
    taken = lock(self.folder, name)
    if not taken:
      return False
    self.enter_context(taken)
    version = self._find_version()
    self.was_changed = version != self._version
    if self.was_changed:
      self._version = version
      for fact in ('settings', 'checkpoint'):
        vars(self).pop(fact, None)
    return True

  def list_checkpoints(self) -> list[str]:
    """Return the paths of all checkpoints, oldest first."""
    return checkpoint.list_variables(self.folder) if self.folder else []

  def _find_version(self):
    """Return what differs once another training has worked on the run."""
    names = self.list_checkpoints()
    with contextlib.suppress(OSError):
      found = os.stat(os.path.join(self.folder or '', self.filename))
      return names, found.st_mtime_ns, found.st_size
    return names

  @functools.cached_property
  def settings(self) -> dict[str, Any] | None:
    """Content of the file with the settings, None if it does not exist.

    Raises:
      UsageError: If it is damaged.
    """
    if not self.folder or not has(self.folder, self.filename):
      return None
    return read_settings(self.folder, self.filename)

  @functools.cached_property
  def checkpoint(self) -> str | None:
    """Path of the newest complete `model.ckpt-<step>`, None if there is none.

    Raises:
      UsageError: If all are damaged.
    """
    return self.folder and checkpoint.find_variables(self.folder)

  @property
  def step(self) -> int:
    """Global step of `checkpoint`, 0 if there is none."""
    return checkpoint.step_of(self.checkpoint)


def read_settings(run: str, name: str = _SETTINGS) -> dict[str, Any]:
  """Return the mapping in the `config.yaml` of a run.

  Args:
    run: Log directory of the run.
    name: Name of the file, if it is another one.

  Raises:
    MissingFile: If there is no such file.
    UsageError: If it is damaged.
  """
  filename = os.path.join(run, name)
  try:
    found = files.read_plain(filename)
    if not isinstance(found, dict):
      raise ValueError('it is not a mapping')
  except FileNotFoundError:
    raise errors.MissingFile(
      f'There is no run in {run}: {name} is missing.'
    ) from None
  except ValueError as error:
    raise errors.UsageError(
      f'Cannot read {filename}: {error}. Repair the file, or start a new run '
      'in another log directory.'
    ) from None
  return found


def check_origin(
  run: str | None, stored: Mapping[str, Any], name: str, system: str
) -> None:
  """Refuse the settings of a run that another system has written.

  Args:
    run: Log directory of the run.
    stored: Settings of the run.
    name: Name that the settings of the system always have.
    system: Name of the system.

  Raises:
    UsageError: If they do not have it.
  """
  if name not in stored:
    raise errors.UsageError(
      f'The run in {run} is not a {system} run; use the program that wrote it.'
    )


def check_free(run: str) -> None:
  """Refuse a folder in which PPO, PlaNet or a session keeps its run.

  HER writes to the folder itself, so its new run would replace their files.

  Raises:
    UsageError: If there is such a run.
  """
  for names in _KINDS:
    if all(has(run, x) for x in names):
      raise errors.UsageError(
        f'There is a run of another program in {run}, with {names[0]} and '
        f'{names[1]}; choose another log directory.'
      )


def create(base: str, names: Iterable[str]) -> Run:
  """Create the first folder whose name is free, and lock it.

  Args:
    base: Folder of the runs, created if needed.
    names: Names to try in order.

  Raises:
    FileExistsError: If all names are taken.
    UsageError: If the folder is not writable.
  """
  missing = files.first_missing(base)
  files.check_writable(base)
  for path in (os.path.join(base, x) for x in names):
    with contextlib.suppress(FileExistsError):
      os.mkdir(path)
      run = Run.open(path)
      run.missing = missing or path
      return run
  raise FileExistsError(f'All run names in {base} are taken.')


def lock(run: str, name: str = LOCK) -> contextlib.ExitStack | None:
  """Lock a run against other processes.

  If a training of this process holds the lock, see `agents.run.training`, that
  training is saved and releases it.

  Args:
    run: Log directory of the run, created if needed.
    name: Name of the lock file.

  Returns:
    `contextlib.ExitStack` that unlocks the run when it is closed, which also
    happens when the process ends; None if another process holds the lock.

  Raises:
    UsageError: If the log directory is not writable.
  """
  files.check_writable(run)
  path = os.path.join(run, name)
  locked = locks.try_lock(path)
  if not locked and training.take_over(path):
    locked = locks.try_lock(path)
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
  """Remove the log directory of a new run that cannot start.

  Settings may have been refused, or the machine lacks something.

  Args:
    run: Log directory that this process has locked.
    missing: First part of its path that this process has created, None if
      there was none.
    has_begun: Function that returns whether there is anything to keep.

  Yields:
    Nothing.
  """
  try:
    yield
  except locks.Lost:
    raise
  except (errors.UsageError, errors.Failure, OSError):
    if missing and not has_begun():
      remove(run, missing)
    raise


def remove(run: str, missing: str, beside: str = '') -> None:
  """Remove the log directory of a new run, and the folders made for it.

  Args:
    run: Log directory.
    missing: First part of its path that this process has created.
    beside: Name of an empty file that this process has created beside it.
  """
  folder = os.path.abspath(run)
  shutil.rmtree(folder, ignore_errors=True)
  # Other processes may have begun to write beside it.
  with contextlib.suppress(OSError):
    while folder != missing:
      folder = os.path.dirname(folder)
      if beside and os.listdir(folder) == [beside]:
        os.remove(os.path.join(folder, beside))
      os.rmdir(folder)


def find(base: str, marker: str, suffix: str = '') -> list[str]:
  """Return the subfolders that contain a given file, sorted.

  Args:
    base: Folder of the runs, which need not exist.
    marker: Name of the file.
    suffix: Required end of the folder names.
  """
  names = files.list_folder(base)
  runs = [os.path.join(base, x) for x in names if x.endswith(suffix)]
  return [x for x in runs if has(x, marker)]


def find_single(logdir: str) -> str:
  """Return the only run in a folder, which may itself be a log directory.

  Raises:
    UsageError: If there is no run, or more than one.
  """
  logdir = files.absolute(logdir)
  found = [logdir] if is_run(logdir) else find(logdir, _SETTINGS)
  if not found:
    raise errors.UsageError(
      f'There is no run in {logdir}; pass the --logdir of a training.'
    )
  if len(found) > 1:
    raise errors.UsageError(
      f'There are {len(found)} runs in {logdir}; choose one, for example '
      f'--logdir={found[-1]}.'
    )
  return found[0]


def choose(
  folders: Iterable[str], why_not: Callable[[Run], str | None]
) -> tuple[Run | None, str]:
  """Choose the first run that can be continued, and lock it.

  Args:
    folders: Log directories, in order of preference.
    why_not: Function from a run to the reason why it cannot be continued, or
      None.

  Returns:
    Tuple of the run, None if there is none, and the reasons why the runs
    before it were skipped.
  """
  reasons: list[str] = []
  run = None
  for folder in folders:
    run = Run(folder)
    reason = why_not(run)
    if not reason:
      # The process that had the lock until now may have finished the run.
      taken = run.take()
      reason = why_not(run) if taken else 'is in use by another process'
      if not reason:
        break
      run.close()
    run = None
    reasons.append(f'{os.path.basename(folder)} {reason}')
  others = len(reasons) - _MOST_NAMED
  if others > 0:
    reasons[_MOST_NAMED:] = [f'{others} more cannot be continued either']
  return run, '; '.join(reasons)


def compare(
  stored: Mapping[str, Any],
  given: Mapping[str, Any],
  names: Iterable[str] | None = None,
) -> dict[str, list[Any]]:
  """Compare the settings of a run with those of a command.

  Args:
    stored: Settings of the run, plain data.
    given: Settings of the command; missing ones count as None.
    names: Names to compare; all by default.

  Returns:
    Dict from the sorted names that differ to lists of the stored and the given
    value.
  """
  names = {*stored, *given} if names is None else names
  pairs = {x: [stored.get(x), given.get(x)] for x in sorted(names)}
  return {x: pair for x, pair in pairs.items() if not references.is_same(*pair)}


def find_changes(
  run: str,
  stored: Mapping[str, Any],
  given: Mapping[str, Any],
  fixed: Callable[[str], str | None],
) -> dict[str, list[Any]]:
  """Return what a command changes in the settings of a run.

  Args:
    run: Log directory of the run.
    stored: Settings of the run, plain data.
    given: Settings in the command, plain data.
    fixed: Function from a name to the reason why it is fixed, or None.

  Returns:
    Dict from names to lists of the old and the new value.

  Raises:
    UsageError: If a fixed setting changes.
  """
  changed = compare(stored, given, given)
  refused = [
    f'{name}: {old} -> {new} ({fixed(name)})'
    for name, (old, new) in changed.items()
    if fixed(name)
  ]
  if refused:
    raise errors.UsageError(
      f'The run in {run} cannot change {"; ".join(refused)}. Keep the old '
      'value, or choose another log directory.'
    )
  return changed


def describe(differences: Mapping[str, list[Any]]) -> str:
  """Describe the result of `compare`, such as `steps 100 instead of 200`."""
  words = []
  for name, values in differences.items():
    if not any(isinstance(x, (dict, list)) for x in values):
      old, new = ('unset' if x is None else x for x in values)
      name = f'{name} {old} instead of {new}'
    # Trees would fill the screen.
    words.append(name)
  return ', '.join(words)


def is_run(folder: str) -> bool:
  """Return whether a folder is the log directory of a run of PPO or PlaNet."""
  return has(folder, _SETTINGS)


def has(run: str, marker: str) -> bool:
  """Return whether a run has a file or folder, such as a status file."""
  return os.path.exists(os.path.join(run, marker))


def mark(run: str, marker: str, text: str = '\n') -> None:
  """Write a small file that records the status of a run."""
  with files.atomic_write(os.path.join(run, marker)) as file_:
    file_.write(text)


def unmark(run: str, marker: str) -> None:
  """Remove the file that `mark` wrote, if it exists."""
  with contextlib.suppress(FileNotFoundError):
    os.remove(os.path.join(run, marker))
