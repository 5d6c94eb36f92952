"""Files that are either complete or absent, and plain YAML in them."""

import contextlib
import logging
import os
import tempfile
import uuid
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

from agents.run import errors

if TYPE_CHECKING:
  import filelock


@contextlib.contextmanager
def atomic_path(filename: str) -> Iterator[str]:
  """Path to write to, which becomes the final path when all went well.

  The content goes to a hidden file in the same folder first, so that a
  process killed at any moment leaves the old file or none. Missing folders
  are created.

  Args:
    filename: Final path.

  Yields:
    Temporary path with the same ending.
  """
  filename = os.path.abspath(os.path.expanduser(filename))
  folder, name = os.path.split(filename)
  os.makedirs(folder, exist_ok=True)
  temporary = os.path.join(folder, f'.{uuid.uuid4().hex[:8]}.{name}')
  try:
    yield temporary
    os.replace(temporary, filename)
  finally:
    with contextlib.suppress(FileNotFoundError):
      os.remove(temporary)


@contextlib.contextmanager
def atomic_write(filename: str, mode: str = 'w') -> Iterator[IO[Any]]:
  """Open a file that appears under its name only when it is complete.

  Args:
    filename: Final path.
    mode: Mode for `open`, `w` or `wb`.

  Yields:
    The open file.
  """
  with atomic_path(filename) as temporary, open(temporary, mode) as file_:
    yield file_


def check_writable(logdir: str) -> None:
  """Create a folder and make sure that files can be written there.

  Raises:
    UsageError: If they cannot.
  """
  try:
    os.makedirs(logdir, exist_ok=True)
    tempfile.TemporaryFile(dir=logdir).close()
  except OSError as error:
    raise errors.UsageError(
      f'Cannot write to the logdir {logdir}: {error.strerror}. Choose '
      'another folder.'
    ) from None


def check_creatable(folder: str) -> None:
  """Make sure that a folder can be created, or written to if it exists.

  Raises:
    UsageError: If it cannot.
  """
  missing = first_missing(folder)
  check_writable(os.path.dirname(missing) if missing else folder)


def first_missing(folder: str) -> str | None:
  """Return the first part of a path that does not exist, None if all do."""
  folder, missing = os.path.abspath(folder), None
  while not os.path.lexists(folder):
    folder, missing = os.path.dirname(folder), folder
  return missing


def try_lock(filename: str) -> 'filelock.BaseFileLock | None':
  """Lock a file, which is created if needed, unless another process has it.

  The lock ends with `release`, or with this process, however that ends.

  Returns:
    The held `filelock.FileLock`, or None if there is another holder.
  """
  import filelock

  lock = filelock.FileLock(filename, thread_local=False)
  try:
    lock.acquire(timeout=0)
  except (filelock.Timeout, PermissionError):
    return None
  except (NotImplementedError, OSError) as error:
    logging.getLogger(__name__).warning(
      'Cannot lock %s (%s); take care that only one process works there.',
      filename,
      error or 'the file system knows no locks',
    )
  return lock


def parse_yaml(text: str) -> Any:
  """Plain data from YAML 1.2 text, in which `5e7` and `1e-3` are numbers.

  Raises:
    ValueError: If the text is not YAML, with the parser's explanation.
  """
  from ruamel import yaml

  try:
    return yaml.YAML(typ='safe', pure=True).load(text)
  except yaml.YAMLError as error:
    raise ValueError(' '.join(str(error).split())) from None


def write_yaml(filename: str, data: Any) -> None:
  """Write built-in types as block style YAML, completely or not at all.

  The order of keys is kept.
  """
  from ruamel import yaml

  writer: Any = yaml.YAML(typ='safe', pure=True)
  writer.default_flow_style = False
  writer.sort_base_mapping_type_on_output = False
  with atomic_write(filename) as file_:
    writer.dump(data, file_)


def read_yaml(filename: str) -> Any:
  """Plain data from a YAML file.

  Raises:
    OSError: If there is no such file.
    ValueError: If its content is not YAML.
  """
  with open(os.path.expanduser(filename)) as file_:
    return parse_yaml(file_.read())
