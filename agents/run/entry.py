"""Common exit path of all programs: last messages and exit codes."""

import argparse
import errno
import functools
import io
import os
import re
import signal
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

from agents.run import errors, files, mpi, schema, stopping

# Seconds that other ranks wait for the first one to say what they all know. It
# ends them within 0.01 s, but may first close environments and remove a folder.
_PATIENCE = 4
# A file in the place of a folder, or the other way round.
_MISPLACED = {errno.EISDIR, errno.ENOTDIR, errno.ELOOP, errno.EEXIST}
_FULL = 'No space left on device', 'Disk quota exceeded'
# Words of TensorFlow, the second for constants, and of NumPy.
_NO_MEMORY = (
  'OOM when allocating',
  'Cannot parse tensor from proto',
  'more than 2**63 - 1 entries',
  'Dimension size overflow',
  'array is too big',
)
# Words of Python, and of the system for processes.
_NO_PROCESS = "can't start new thread", os.strerror(errno.EAGAIN)
# Words of the loader, which TensorFlow may put into an error of its own.
_NOT_LOADED = 'failed to map segment from shared object'
# Words of `tempfile`, which TensorFlow uses when it is imported.
_NO_TEMPORARY = 'No usable temporary directory'


class _Formatter(argparse.RawDescriptionHelpFormatter):
  """Adds defaults to the meanings of arguments that do not tell them."""

  def _get_help_string(self, action):
    text, default = action.help or '', action.default
    is_flag = default is False or default == argparse.SUPPRESS
    if is_flag or default in (None, '', []) or 'default' in text:
      return text
    return f'{text} (default %(default)s)'


class Parser(argparse.ArgumentParser):
  """Command line parser that raises `UsageError`.

  The description is printed unchanged, so it can be a program's docstring. The
  epilog may be a function that `--help` calls, which also tells defaults.
  Argument types may be `seed`, `count`, `positive` and `rate` from
  `agents.run.schema`, and `path`, which is not empty, see
  `agents.run.files.expand`.
  """

  def __init__(self, **options: Any) -> None:
    super().__init__(**{'formatter_class': _Formatter, **options})
    for name in ('count', 'positive', 'rate', 'seed'):
      parse = functools.partial(_parse, getattr(schema, name.capitalize()))
      self.register('type', name, functools.partial(_convert, parse))
    self.register('type', 'path', functools.partial(_convert, _expand))

  def format_help(self) -> str:
    if callable(self.epilog):
      self.epilog = self.epilog()
    return super().format_help()

  def error(self, message: str) -> NoReturn:
    raise errors.UsageError(
      f'{message[:1].upper()}{message[1:]}. See {self.prog} --help.'
    )


def _parse(kind, text):
  return schema.convert(kind, schema.parse_value(text), 'it')


def _expand(text):
  if not text:
    raise errors.UsageError('it is empty; give the path of a folder')
  return files.expand(text)


def _convert(function, text):
  """Call a function; argparse adds the name of the argument to its error."""
  try:
    return function(text)
  except errors.UsageError as error:
    raise argparse.ArgumentTypeError(str(error).rstrip('.')) from None


def run(function: Callable[[], object]) -> int:
  """Call the main function of a program and return its exit code.

  If one MPI process fails, all of them exit with its exit code, and only the
  lowest rank with a message prints it.

  The current folder is added at the end of the search path, so that programs
  installed by pip also find the user's modules there.

  Args:
    function: Function without arguments that may return an exit code.

  Returns:
    The result of the function; 0 if that is None or the user asked to stop.
    The `code` of a `UsageError` or `Failure`, whose message is printed. 130
    after Ctrl-C in a program that has nothing to save. 1 for system errors,
    such as a full disk, and when the reader of the output has gone, as after
    `| head`. Other errors are raised.
  """
  if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
    signal.signal(signal.SIGINT, signal.default_int_handler)
  if '' not in sys.path and _is_somewhere():
    sys.path.append('')
  out = sys.stdout
  if isinstance(out, io.TextIOWrapper) and out.errors == 'strict':
    # The encoding may not know all characters of a path.
    out.reconfigure(errors='backslashreplace')
  try:
    try:
      code = function()
    finally:
      # Flush now, also after `--help`, which argparse ends with SystemExit: at
      # the exit of Python, an error would be a traceback.
      print(end='', flush=True)
    return _leave(code if type(code) is int else 0)
  except KeyboardInterrupt:
    return _leave(128 + signal.SIGINT)
  except stopping.StopRequested as stop:
    _say(f'Stopped. {stop.advice}', 0)
    return 0
  except Exception as error:
    if isinstance(error, BrokenPipeError):
      # Python writes the rest of its buffer when it exits.
      if stopping.replace_unread_output(os.devnull):
        return _leave(1)
    code, words = explain(error)
    if words:
      _say(words, code)
      return _leave(code)
    if _ranks() == 1:
      raise
    _say(traceback.format_exc(), code)
    return _leave(code)
  except SystemExit as end:
    if end.code is None:
      # The end of `tf.app.run`.
      return _leave(0)
    _leave(end.code if isinstance(end.code, int) else int(bool(end.code)))
    raise


def explain(error: Exception) -> tuple[int, str | None]:
  """Return the exit code, and what to print; None for a traceback."""
  if isinstance(error, errors.UsageError | errors.Failure):
    words = f'Error: {error}{error.advice}\n{error.details}'
    return error.code, words.strip()
  if any(x in str(error) for x in _FULL):
    return 1, 'Error: The disk is full. Free some space to continue.'
  if os.strerror(errno.EFBIG) in str(error):
    return 1, (
      'Error: The disk is full, or rather the largest size of a file is '
      'reached. Raise the limit (ulimit -f) to continue.'
    )
  if _NO_TEMPORARY in str(error):
    return 1, (
      f'Error: {getattr(error, "strerror", error)}: all are missing, read-only '
      'or full. Set TMPDIR to a folder with free space to continue.'
    )
  if _NOT_LOADED in str(error):
    return 1, (
      'Error: A library cannot be loaded: there is too little memory (ulimit '
      '-v, or that of the job), or its folder is mounted with noexec.'
    )
  if any(x in str(error) for x in _NO_PROCESS):
    return 1, (
      'Error: The system starts no more processes or threads. End some, raise '
      'their limit (ulimit -u, or docker run --pids-limit), or use fewer '
      'environments. Repeat the command to continue.'
    )
  lacks = [x for x in _NO_MEMORY if x in str(error)]
  if isinstance(error, MemoryError) or lacks:
    lines = str(error).splitlines() or ['']
    usual = '' if lacks else lines[0]
    details = next((x for x in lines if _NO_MEMORY[0] in x), usual)
    return 1, (
      'Error: There is not enough memory. Lower what needs most of it, such as '
      f'the batch size. {details}'.strip()
    )
  if isinstance(error, FileNotFoundError) and not _is_somewhere():
    return 1, (
      'Error: The current folder is not there any more. Change to another one, '
      'and repeat the command.'
    )
  number, path = _find_cause(error)
  if number:
    # Name the file in the place of a folder, not a path below it.
    while number == errno.ENOTDIR and path and not os.path.lexists(path):
      path = os.path.dirname(path)
    where = f' ({path})' if path else ''
    wrong = 'Move it away. ' if number in _MISPLACED else ''
    again = f'{wrong}Repeat the command to continue.'
    return 1, f'Error: {os.strerror(number)}{where}. {again}'
  return 1, None


def _is_somewhere():
  """Return whether the current folder exists."""
  try:
    return bool(os.getcwd())
  except FileNotFoundError:
    return False


def _find_cause(error):
  """Return the number of an error of the system, 0 for others, and the file.

  TensorFlow only has the words, after the file.
  """
  known = errors.SYSTEM | _MISPLACED
  if isinstance(error, OSError):
    number = error.errno if error.errno in known else 0
    # `filename2` is the final name of a file that is written under another.
    return number, error.filename2 or error.filename
  if type(error).__module__.startswith('tensorflow.'):
    text = str(error).replace(' is not a directory', '; Not a directory')
    for number in known:
      found = re.search(f'(/.*); {os.strerror(number)}$', text, re.MULTILINE)
      if found:
        return number, re.sub(r'\.tmp[0-9a-f]{32}$', '', found[1])
  return 0, None


def _ranks():
  """Return the number of MPI processes, 1 if they are not connected."""
  try:
    return mpi.world().Get_size()
  except errors.UsageError:
    return 1


def _say(words, code):
  """Print, unless the first rank will print the same and end the job."""
  rank = mpi.world().Get_rank() if _ranks() > 1 else 0
  if rank and not code:
    return
  if rank:
    time.sleep(_PATIENCE + min(rank, _PATIENCE))
    words = f'Rank {rank}: {words}'
  print(words, file=sys.stderr, flush=True)


def _leave(code):
  """End all processes of the job if this one leaves with an error."""
  if code and _ranks() > 1:
    sys.stderr.flush()
    mpi.world().Abort(code)
  return code
