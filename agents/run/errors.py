"""Errors that the user can fix."""

import difflib
import errno
import os
import sys
from collections.abc import Iterable, Mapping
from importlib import util
from typing import TypeVar

# Numbers of errors for which the system, not the program or its files, may be
# the reason. Programs tell them in a sentence.
SYSTEM = {
  *(errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE, errno.EROFS),
  *(errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.ENOMEM),
  # Of network drives and removed disks.
  *(errno.ETIMEDOUT, errno.ENOTCONN, errno.EHOSTDOWN, errno.ENODEV),
  errno.EBUSY,
}
_MOST_LISTED = 20
_Value = TypeVar('_Value')


class UsageError(ValueError):
  """Bad input; the message says what was given, what is allowed, what to do.

  Programs print the message without a traceback and exit with `code`.
  """

  code = 2
  advice = ''
  details = ''


class MissingFile(UsageError, FileNotFoundError):
  """A file that the user named does not exist; `IOError` catches it, too."""


class Failure(RuntimeError):
  """The program cannot continue, for a reason outside of it.

  Programs print the message and the details, and exit with code 1.

  Args:
    sentence: What failed, and what to do about it.
    details: Further lines, such as the traceback of an environment.

  Attributes:
    advice: Text that programs append to the message.
  """

  code = 1
  advice = ''

  def __init__(self, sentence: str, details: str = ''):
    super().__init__(sentence, details)
    self.details = details

  def __str__(self) -> str:
    return self.args[0]


class WorkerDeath(Failure):
  """A process that environments need has died; the message says how."""

  advice = ' Repeat the command to continue.'


class EnvError(Failure):
  """An environment broke its interface or raised an error."""


class NotFinite(Failure):
  """Training diverged: weights or scores are infinite or not a number."""


def how_to_install(extra: str) -> str:
  """Return the command that installs an extra, and where to read on."""
  command = f"pip install 'reference-agents[{extra}]'"
  missing = {'pybullet': (3, 12), 'dmc': (3, 13), 'carla': (3, 13)}
  if sys.version_info < missing.get(extra, (4,)):
    return command
  return f'{command}; docs/install.md lists what it does not include'


def check_installed(package: str, what: str, command: str, instead: str) -> str:
  """Return the folder of an optional package, without importing it.

  Args:
    package: Name to import.
    what: What needs it.
    command: Command that installs it, see `how_to_install`.
    instead: What to do without it.

  Raises:
    UsageError: If it is not installed.
  """
  spec = util.find_spec(package)
  # A folder on the search path, such as the logs of wandb, also looks like one.
  if not spec or not spec.origin:
    raise UsageError(
      f'{what} needs the package {package}, which is not installed. Run '
      f'{command}, or {instead}.'
    )
  return os.path.dirname(spec.origin)


def reason_of(error: Exception) -> str:
  """Return why a file cannot be read, without its path, which sentences name.

  Args:
    error: Error of the system, of a format, or for a key that is missing.
  """
  if isinstance(error, KeyError):
    return f'it has no {error}'
  return getattr(error, 'strerror', None) or str(error)


def find(kind: str, name: str, known: Mapping[str, _Value]) -> _Value:
  """Return the object with a given name.

  Raises:
    UsageError: If the name is unknown; `kind` is its kind in the message.
  """
  if name not in known:
    raise UsageError(f'{kind} {name!r} is unknown. {suggest(name, known)}')
  return known[name]


def suggest(name: str, known: Iterable[str]) -> str:
  """Return a sentence that suggests similar names, or lists known ones."""
  known = sorted(set(known))
  close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
  if close:
    return f'Did you mean {" or ".join(close)}?'
  if len(known) > _MOST_LISTED:
    listed = ', '.join(known[:: len(known) // _MOST_LISTED][:_MOST_LISTED])
    return f'There are {len(known)} known names, such as {listed}.'
  return f'Known names: {", ".join(known)}.'
