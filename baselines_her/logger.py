"""Messages and tables, on the terminal and in files.

Connects the interface of Baselines to `logging` of the standard library and to
the writers of `agents.run.log`. Every thread has one current logger. `logkv`
collects values and `dumpkvs` writes them as one row.
"""

import contextlib
import datetime
import functools
import logging
import os
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from agents.run import errors, files, messages, mpi
from agents.run import log as log_lib

DEBUG, INFO, WARN, ERROR, DISABLED = 10, 20, 30, 40, 50
# Only for files: what few people want to read at the start.
DETAIL = 21
_WIDTH = 30


class HumanOutput(messages.TextHandler):
  """Human-readable messages and tables.

  Args:
    path: File to append to; the terminal if None or `sys.stdout`.
  """

  def __init__(self, path: Any = None):
    super().__init__(None if path is sys.stdout else path)

  def emit(self, record: logging.LogRecord) -> None:
    """Write a message, on the terminal without details."""
    if record.levelno != DETAIL or not self.stream:
      super().emit(record)

  def writekvs(self, values: Mapping[str, Any]) -> None:
    """Write a table."""
    rows = {_cut(key): _cut(_format(value)) for key, value in values.items()}
    width = max(map(len, rows)), max(map(len, rows.values()))
    rule = '-' * (sum(width) + 7)
    lines = [
      f'| {key:{width[0]}} | {value:{width[1]}} |'
      for key, value in sorted(rows.items(), key=lambda row: row[0].lower())
    ]
    self.write('\n'.join([rule, *lines, rule]))


class CSVOutput:
  """Table with a column for every key seen so far.

  Appends to an existing file.

  Args:
    path: File to write.
  """

  def __init__(self, path: str):
    self.writekvs = log_lib.Table(path).append


class JSONOutput:
  """One JSON object per line.

  Args:
    path: File to append to.
  """

  def __init__(self, path: str):
    self._path = path
    log_lib.append(path, '')

  def writekvs(self, values: Mapping[str, Any]) -> None:
    """Append a line; array scalars become floats."""
    row = {k: float(v) if hasattr(v, 'dtype') else v for k, v in values.items()}
    log_lib.append_json(self._path, row)


class TensorBoardOutput:
  """Event file with one scalar per key.

  The step is the number of the row, from 1. Rows with `epoch` keep the step of
  their epoch if they are repeated after a crash.

  Args:
    folder: Folder of the file.
  """

  def __init__(self, folder: str):
    self._step = len(read_tb(folder)) if os.path.isdir(folder) else 0
    self._events = log_lib.Events(folder)
    self.close = self._events.close

  def writekvs(self, values: Mapping[str, Any]) -> None:
    """Write the values that are numbers."""
    self._step = int(values.get('epoch', self._step)) + 1
    numbers = {k: float(v) for k, v in values.items() if _is_number(v)}
    self._events.write(self._step, numbers)
    self._events.flush()


HumanOutputFormat, CSVOutputFormat = HumanOutput, CSVOutput
JSONOutputFormat, TensorBoardOutputFormat = JSONOutput, TensorBoardOutput
# File and output of each format.
_FORMATS: dict[str, tuple[str, Callable[[str], Any]]] = {
  'stdout': ('', lambda unused_path: HumanOutput()),
  'log': ('log%s.txt', HumanOutput),
  'csv': ('progress%s.csv', CSVOutput),
  'json': ('progress%s.json', JSONOutput),
  'tensorboard': ('tb%s', TensorBoardOutput),
}


def make_output_format(format: str, ev_dir: str, log_suffix: str = '') -> Any:
  """Create an output by its name.

  Args:
    format: One of `stdout`, `log`, `csv`, `json` and `tensorboard`.
    ev_dir: Folder of the files.
    log_suffix: Suffix of the file names.

  Raises:
    UsageError: If the name is unknown.
  """
  name, make = errors.find('Log format', format, _FORMATS)
  return make(os.path.join(ev_dir, name.replace('%s', log_suffix)))


def read_csv(path: str) -> list[dict[str, float | str | None]]:
  """Return the rows, dicts from column to number, text, or None if empty."""
  return [
    {key: _parse(value) for key, value in row.items()}
    for row in log_lib.read_table(path)
  ]


def _is_number(value):
  return hasattr(value, '__float__')


def _format(value):
  return f'{float(value):<8.3g}' if _is_number(value) else str(value)


def _cut(text):
  return text if len(text) <= _WIDTH else text[: _WIDTH - 3] + '...'


def _parse(text):
  try:
    return float(text)
  except (TypeError, ValueError):
    return text or None


class Logger:
  """Sends messages and tables to several outputs.

  Args:
    dir: Folder of the files, or None.
    output_formats: List of outputs of this module. Those that are `logging`
      handlers receive the messages.

  Attributes:
    values: Values of the next row.
    counts: Dict from each averaged value to its number of samples.
    level: Minimum level of messages.
  """

  def __init__(self, dir: str | None, output_formats: Sequence[Any]):
    self.dir = dir
    self.output_formats = output_formats
    self.values: dict[str, Any] = defaultdict(float)
    self.counts: dict[str, int] = defaultdict(int)
    self.level = INFO
    # Not registered, so a change of its level would not be noticed.
    self.messages = logging.Logger(__name__)
    for output in output_formats:
      if isinstance(output, logging.Handler):
        self.messages.addHandler(output)

  def logkv(self, key: str, val: Any) -> None:
    """Set a value of the next row, replacing an earlier one."""
    self.values[key] = val

  def logkv_mean(self, key: str, val: float) -> None:
    """Add a sample to a value of the next row that is logged as a mean."""
    mean, count = self.values[key], self.counts[key]
    self.values[key] = mean * count / (count + 1) + val / (count + 1)
    self.counts[key] = count + 1

  def dumpkvs(self) -> dict[str, Any] | None:
    """Write the row of all values and return it as a dict."""
    if self.level == DISABLED:
      return None
    values = dict(self.values)
    for output in self.output_formats if values else ():
      output.writekvs(values)
    self.values.clear()
    self.counts.clear()
    return values

  def log(self, *args: Any, level: int = INFO) -> None:
    """Log words, joined by spaces, unless the level is below the logger's."""
    if self.level <= level:
      self.messages.log(level, ' '.join(map(str, args)))

  def set_level(self, level: int) -> None:
    """Set the minimum level of messages."""
    self.level = level

  def get_dir(self) -> str | None:
    """Return the folder, or None."""
    return self.dir

  def close(self) -> None:
    """Close the outputs that have open files."""
    for output in self.output_formats:
      getattr(output, 'close', lambda: None)()


# Each training has its own thread.
_own = threading.local()


def get_current() -> Logger:
  """Return the logger of this thread; one for the terminal by default."""
  if not getattr(_own, 'logger', None):
    _own.logger = Logger(None, [HumanOutput()])
  return _own.logger


def configure(
  dir: str | None = None,
  format_strs: Sequence[str] | None = None,
  log_suffix: str = '',
) -> None:
  """Log to a folder from now on.

  Args:
    dir: Folder; by default OPENAI_LOGDIR or a new temporary folder.
    format_strs: List of `stdout`, `log`, `csv`, `json` and `tensorboard`; by
      default the comma-separated OPENAI_LOG_FORMAT on the first rank, and
      OPENAI_LOG_FORMAT_MPI on others.
    log_suffix: Suffix of the file names.

  Raises:
    UsageError: If a format is unknown.
  """
  rank, dir = mpi.world().Get_rank(), _choose(dir)
  if rank > 0:
    log_suffix += f'-rank{rank:03d}'
  if format_strs is None:
    name = 'OPENAI_LOG_FORMAT_MPI' if rank else 'OPENAI_LOG_FORMAT'
    default = 'log' if rank else 'stdout,log,csv'
    format_strs = os.getenv(name, default).split(',')
  os.makedirs(dir, exist_ok=True)
  outputs = [make_output_format(x, dir, log_suffix) for x in format_strs if x]
  _own.logger = Logger(dir, outputs)
  if outputs:
    log(f'Logging to {dir}')


def choose_dir(dir: str | None = None) -> str:
  """Return the folder that `configure` would log to, the same for all ranks."""
  return mpi.world().bcast(_choose(dir))


def reset() -> None:
  """Close the files and log to the terminal again."""
  get_current().close()
  _own.logger = None


@contextlib.contextmanager
def scoped_configure(
  dir: str | None = None, format_strs: Sequence[str] | None = None
) -> Iterator[None]:
  """Log to a folder for the duration of a block."""
  previous = get_current()
  configure(dir, format_strs)
  try:
    yield
  finally:
    get_current().close()
    _own.logger = previous


def logkv(key: str, val: Any) -> None:
  """Set a value of the next row, replacing an earlier one."""
  get_current().logkv(key, val)


def logkv_mean(key: str, val: float) -> None:
  """Add a sample to a value of the next row that is logged as a mean."""
  get_current().logkv_mean(key, val)


def logkvs(d: Mapping[str, Any]) -> None:
  """Set values of the next row from a dict."""
  for key, value in d.items():
    logkv(key, value)


def dumpkvs() -> dict[str, Any] | None:
  """Write the row of all values and return it as a dict."""
  return get_current().dumpkvs()


def getkvs() -> dict[str, Any]:
  """Return the values set since the last row."""
  return get_current().values


def log(*args: Any, level: int = INFO) -> None:
  """Log words, joined by spaces, unless the level is below the logger's.

  `debug`, `info`, `warn` and `error` use their own levels; `detail` writes to
  files only.
  """
  get_current().log(*args, level=level)


debug = functools.partial(log, level=DEBUG)
info = functools.partial(log, level=INFO)
detail = functools.partial(log, level=DETAIL)
warn = functools.partial(log, level=WARN)
error = functools.partial(log, level=ERROR)
record_tabular = logkv
dump_tabular = dumpkvs
read_json = log_lib.read_json
read_tb = log_lib.read_events


def set_level(level: int) -> None:
  """Set the minimum level of messages."""
  get_current().set_level(level)


def get_dir() -> str | None:
  """Return the folder of the current logger, None if it has none."""
  return get_current().get_dir()


@contextlib.contextmanager
def profile_kv(scopename: str) -> Iterator[None]:
  """Add the seconds that a block takes to the value `wait_<scopename>`."""
  began = time.monotonic()
  try:
    yield
  finally:
    get_current().values[f'wait_{scopename}'] += time.monotonic() - began


# Decorator of functions.
profile = profile_kv


def _choose(dir):
  now = datetime.datetime.now().strftime('openai-%Y-%m-%d-%H-%M-%S-%f')
  temporary = os.path.join(tempfile.gettempdir(), now)
  return files.expand(dir or os.getenv('OPENAI_LOGDIR') or temporary)
