"""Files that are either complete or absent, and plain data in YAML files."""

import contextlib
import errno
import json
import os
import re
import tempfile
import uuid
from collections.abc import Iterator
from typing import IO, Any

from agents.run import errors, locks, released, yaml_text


def expand(path: str | bytes | os.PathLike[str]) -> str:
  """Return a path with the home of the user in place of `~`.

  Raises:
    UsageError: If it is not a path of this machine but an address, such as
      gs://bucket, if it is not a path at all, or if there is no such home.
  """
  if not isinstance(path, str | bytes | os.PathLike):
    raise errors.UsageError(
      f'{path!r:.80} is not a path; give a string or a pathlib.Path.'
    )
  path = os.path.expanduser(os.fsdecode(path))
  if re.match(r'[A-Za-z][\w+.-]+:/', path):
    raise errors.UsageError(
      f'{path} is an address, and files are only read and written in folders '
      'of this machine. Give a path, and copy the folder afterwards, or mount '
      'the storage.'
    )
  if path.startswith('~'):
    home = path.partition('/')[0]
    raise errors.UsageError(
      f'There is no home directory for {home} in {path}. Give a path without '
      f'{home}, or set HOME.'
    )
  return path


def absolute(path: str | os.PathLike[str]) -> str:
  """Return the absolute path for one that `expand` accepts."""
  return os.path.abspath(expand(path))


@contextlib.contextmanager
def atomic_path(filename: str) -> Iterator[str]:
  """Yield a path to write to, which gets its final name on success.

  The content goes to a hidden file in the same folder first, so a process
  killed at any time leaves the old file or none. Missing folders are created.

  Args:
    filename: Final path.

  Yields:
    Temporary path with the same file extension.

  Raises:
    Lost: If it belongs to a run whose folder is not there any more.
  """
  filename = absolute(filename)
  locks.check(filename)
  os.makedirs(os.path.dirname(filename), exist_ok=True)
  temporary = _hidden(filename)
  try:
    yield temporary
    os.replace(temporary, filename)
  finally:
    with contextlib.suppress(FileNotFoundError):
      os.remove(temporary)


def _hidden(filename):
  folder, name = os.path.split(filename)
  return os.path.join(folder, f'.{uuid.uuid4().hex[:8]}.{name}')


@contextlib.contextmanager
def atomic_write(filename: str, mode: str = 'w') -> Iterator[IO[Any]]:
  """Open a file that gets its final name only when it is complete.

  Args:
    filename: Final path.
    mode: Mode for `open`, `w` or `wb`.

  Yields:
    The open file.
  """
  encoding = None if 'b' in mode else 'utf-8'
  with (
    atomic_path(filename) as temporary,
    open(temporary, mode, encoding=encoding) as file_,
  ):
    yield file_


def check_writable(logdir: str, advice: str = 'Choose another one.') -> None:
  """Create a folder and check that it is writable.

  Args:
    logdir: Path of the folder.
    advice: Sentence that says what to do if it is not.

  Raises:
    UsageError: If it is not, or TensorFlow cannot read files there.
  """
  path = os.path.abspath(logdir)
  reasons = [f'its path contains {x}' for x in '[\\' if x in path]
  if path.encode(errors='ignore').decode() != path:
    reasons.append('its path is not in UTF-8, or LC_ALL or LANG is not')
  if reasons:
    raise errors.UsageError(
      f'TensorFlow cannot read files in {logdir}: {reasons[0]}. Choose another '
      'one.'
    )
  try:
    os.makedirs(logdir, exist_ok=True)
    tempfile.TemporaryFile(dir=logdir).close()
  except OSError as error:
    reason, missing = error.strerror, first_missing(path)
    place = os.path.dirname(missing) if missing else path
    if os.path.islink(place) and not os.path.exists(place):
      reason = f'{place} is a link to {os.readlink(place)}, which is missing'
    raise errors.UsageError(
      f'Cannot write to the folder {logdir}: {reason}. {advice}'
    ) from None


def check_creatable(folder: str, *advice: str) -> None:
  """Check that a folder can be created, or is writable if it exists.

  Args:
    folder: Path of the folder.
    *advice: See `check_writable`.

  Raises:
    UsageError: If it cannot.
  """
  _check_length(folder)
  missing = first_missing(folder)
  check_writable(os.path.dirname(missing) if missing else folder, *advice)


def check_creatable_file(filename: str) -> None:
  """Check that a file can be written, with the folders that it needs.

  Args:
    filename: Path of the file, which may exist.

  Raises:
    UsageError: If it cannot, or is a folder.
  """
  path = absolute(filename)
  if os.path.isdir(path):
    raise errors.UsageError(f'{filename} is a folder; give a file.')
  _check_length(_hidden(path), filename)
  check_creatable(os.path.dirname(path))


def _check_length(path, shown=None):
  """Check that the system accepts so long a path and its parts."""
  # The system does not look at what follows a missing folder.
  for part in (path, *path.split(os.sep)):
    try:
      os.lstat(part)
    except OSError as error:
      if error.errno == errno.ENAMETOOLONG:
        raise errors.UsageError(
          f'Cannot write to {shown or path}: {error.strerror}. Choose a '
          'shorter one.'
        ) from None


def first_missing(folder: str) -> str | None:
  """Return the first missing part of a path, None if all of it exists."""
  folder, missing = os.path.abspath(folder), None
  while not os.path.lexists(folder):
    folder, missing = os.path.dirname(folder), folder
  return missing


def list_folder(folder: str) -> list[str]:
  """Return the sorted names in a folder, none if there is no such folder.

  Raises other errors of the system, which `glob` hides: what is there counts.

  Args:
    folder: Path of the folder.
  """
  try:
    return sorted(os.listdir(folder))
  except OSError as error:
    # No folder has a name that is too long.
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
      return []
    raise


def write_yaml(filename: str, data: Any) -> None:
  """Write built-in types as block-style YAML, completely or not at all.

  Keeps the order of keys.
  """
  from ruamel import yaml

  writer: Any = yaml.YAML(typ='safe', pure=True)
  writer.default_flow_style = False
  writer.sort_base_mapping_type_on_output = False
  with atomic_write(filename) as file_:
    writer.dump(data, file_)


def write_json(filename: str, data: Any, indent: int | None = None) -> None:
  """Write built-in types as JSON, completely or not at all."""
  with atomic_write(filename) as file_:
    json.dump(data, file_, indent=indent)


def write_plain(filename: str, data: Any) -> None:
  """Write built-in types as YAML, or as JSON if the name ends in `.json`."""
  write = write_json if filename.endswith('.json') else write_yaml
  write(filename, data)


def read_plain(filename: str) -> Any:
  """Return the data that `write_plain` has written.

  Raises:
    OSError: If there is no such file.
    ValueError: If it is not valid.
  """
  if not filename.endswith('.json'):
    return read_yaml(filename)
  with open(expand(filename), encoding='utf-8-sig') as file_:
    return json.load(file_)


def read_yaml(filename: str) -> Any:
  """Return plain data from a YAML file, including one of the original PPO.

  Raises:
    OSError: If there is no such file.
    ValueError: If it is not valid YAML.
  """
  with open(expand(filename), encoding='utf-8-sig') as file_:
    text = file_.read()
  if text.startswith('!!python/object'):
    return released.parse(text)
  return yaml_text.parse(text)
