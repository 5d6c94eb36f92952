"""Messages and tables, on the terminal and in files.

Connects the interface of Baselines to the writers of `agents.run.log`. Every
thread has one current logger. `logkv` collects values and `dumpkvs` writes them
as one row.
"""

import contextlib
import datetime
import functools
import itertools
import os
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from agents.run import errors, files, messages, mpi
from agents.run import log as log_lib

DEBUG, INFO, WARN, ERROR, DISABLED = 10, 20, 30, 40, 50
# Written to files only.
DETAIL = 21
_WIDTH = 30


class KVWriter:
  """Output of tables; outputs of users derive from it, as in baselines."""

  def writekvs(self, kvs: Mapping[str, Any]) -> None:
    """Write the values of a row."""
    raise NotImplementedError

  def close(self) -> None:
    """Close open files."""


class SeqWriter:
  """Output of messages."""

  def writeseq(self, seq: Iterable[str]) -> None:
    """Write the words of a message."""
    raise NotImplementedError

  def close(self) -> None:
    """Close open files."""


class HumanOutput(KVWriter, SeqWriter):
  """Human-readable messages and tables.

  Args:
    filename_or_file: File to append to, or an open one; the terminal if None or
      `sys.stdout`.

  Attributes:
    is_terminal: Whether it writes to the terminal.
  """

  def __init__(self, filename_or_file: Any = None):
    target = None if filename_or_file is sys.stdout else filename_or_file
    self.is_terminal = target is None
    if hasattr(target, 'write'):
      self._write: Any = functools.partial(print, file=target, flush=True)
    else:
      self._write = messages.TextHandler(target).write

  def writeseq(self, seq: Iterable[str]) -> None:
    self._write(' '.join(seq))

  def writekvs(self, kvs: Mapping[str, Any]) -> None:
    """Write a table, unless it has no rows."""
    if not kvs:
      return
    rows = {_cut(key): _cut(_format(value)) for key, value in kvs.items()}
    width = max(map(len, rows)), max(map(len, rows.values()))
    rule = '-' * (sum(width) + 7)
    lines = [
      f'| {key:{width[0]}} | {value:{width[1]}} |'
      for key, value in sorted(rows.items(), key=lambda row: row[0].lower())
    ]
    self._write('\n'.join([rule, *lines, rule]))


class CSVOutput(KVWriter):
  """Table with a column for every key seen so far.

  Appends to an existing file.

  Args:
    filename: File to write.
  """

  def __init__(self, filename: str):
    self._table = log_lib.Table(filename)

  def writekvs(self, kvs: Mapping[str, Any]) -> None:
    self._table.append(kvs)


class JSONOutput(KVWriter):
  """One JSON object per line.

  Args:
    filename: File to append to.
  """

  def __init__(self, filename: str):
    self._path = filename
    log_lib.append(filename, '')

  def writekvs(self, kvs: Mapping[str, Any]) -> None:
    """Append a line; array scalars become floats."""
    row = {k: float(v) if hasattr(v, 'dtype') else v for k, v in kvs.items()}
    log_lib.append_json(self._path, row)


class TensorBoardOutput(KVWriter):
  """Event file with one scalar per key.

  The step is the number of the row, from 1. Rows with `epoch` keep the step of
  their epoch if they are repeated after a crash.

  Args:
    dir: Folder of the file.
  """

  def __init__(self, dir: str):
    self._step = len(read_tb(dir)) if os.path.isdir(dir) else 0
    self._events = log_lib.Events(dir)

  def writekvs(self, kvs: Mapping[str, Any]) -> None:
    """Write the values that are numbers."""
    self._step = int(kvs.get('epoch', self._step)) + 1
    numbers = {k: float(v) for k, v in kvs.items() if _is_number(v)}
    self._events.write(self._step, numbers)
    self._events.flush()

  def close(self) -> None:
    self._events.close()


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


class _Current(type):
  """Class whose attribute CURRENT is the logger of this thread."""

  @property
  def CURRENT(cls) -> 'Logger':
    return get_current()

  @CURRENT.setter
  def CURRENT(cls, logger: 'Logger | None') -> None:
    _own.logger = logger

  @property
  def DEFAULT(cls) -> 'Logger':
    """Logger for the terminal, to which `reset` returns."""
    if not getattr(_own, 'default', None):
      _own.default = Logger(None, [HumanOutput()])
    return _own.default


class Logger(metaclass=_Current):
  """Sends messages and tables to several outputs.

  Args:
    dir: Folder of the files, or None.
    output_formats: List of outputs: `KVWriter` receive the tables, `SeqWriter`
      the messages.
    comm: MPI communicator; if given, numbers of tables are means over its
      processes, weighted by the samples.

  Attributes:
    name2val: Values of the next row, also as `values`.
    name2cnt: Dict from each averaged value to its number of samples.
    level: Minimum level of messages.
  """

  def __init__(
    self, dir: str | None, output_formats: Sequence[Any], comm: Any = None
  ):
    self.dir, self.comm = dir, comm
    self.output_formats = output_formats
    self.name2val: dict[str, Any] = defaultdict(float)
    self.name2cnt: dict[str, int] = defaultdict(int)
    self.values = self.name2val
    self.level = INFO

  def logkv(self, key: str, val: Any) -> None:
    """Set a value of the next row, replacing an earlier one."""
    self.name2val[key] = val

  def logkv_mean(self, key: str, val: float) -> None:
    """Add a sample to a value of the next row that is logged as a mean."""
    mean, count = self.name2val[key], self.name2cnt[key]
    self.name2val[key] = mean * count / (count + 1) + val / (count + 1)
    self.name2cnt[key] = count + 1

  def dumpkvs(self) -> dict[str, Any] | None:
    """Write the row of all values and return it as a dict."""
    if self.level == DISABLED:
      return None
    values = dict(self.name2val)
    if self.comm is not None:
      counted = {k: (v, self.name2cnt.get(k, 1)) for k, v in values.items()}
      values = _average(self.comm, counted)
    for output in self.output_formats if values else ():
      if hasattr(output, 'writekvs'):
        output.writekvs(values)
    self.name2val.clear()
    self.name2cnt.clear()
    return values

  def log(self, *args: Any, level: int = INFO) -> None:
    """Log words, joined by spaces, unless the level is below the logger's."""
    for output in self.output_formats if self.level <= level else ():
      terminal = level == DETAIL and getattr(output, 'is_terminal', False)
      if hasattr(output, 'writeseq') and not terminal:
        output.writeseq(map(str, args))

  def set_comm(self, comm: Any) -> None:
    """Set the communicator of the means."""
    self.comm = comm

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
  return getattr(_own, 'logger', None) or Logger.DEFAULT


def configure(
  dir: str | None = None,
  format_strs: Sequence[str] | None = None,
  comm: Any = None,
  log_suffix: str = '',
) -> None:
  """Log to a folder from now on.

  Args:
    dir: Folder; by default OPENAI_LOGDIR or a new temporary folder.
    format_strs: List of `stdout`, `log`, `csv`, `json` and `tensorboard`; by
      default the comma-separated OPENAI_LOG_FORMAT on the first rank, and
      OPENAI_LOG_FORMAT_MPI on others.
    comm: See `Logger`.
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
  _own.logger = Logger(dir, outputs, comm)
  if outputs:
    log(f'Logging to {dir}')


def choose_dir(dir: str | None = None) -> str:
  """Return the folder that `configure` would log to, the same for all ranks."""
  return mpi.world().bcast(_choose(dir))


def reset() -> None:
  """Close the files and log to the terminal again."""
  get_current().close()
  _own.logger = _own.default = None


@contextlib.contextmanager
def scoped_configure(
  dir: str | None = None,
  format_strs: Sequence[str] | None = None,
  comm: Any = None,
) -> Iterator[None]:
  """Log to a folder for the duration of a block."""
  previous = get_current()
  configure(dir, format_strs, comm)
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
  return get_current().name2val


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


def set_comm(comm: Any) -> None:
  """Set the communicator of the means, see `Logger`."""
  get_current().set_comm(comm)


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
    get_current().name2val[f'wait_{scopename}'] += time.monotonic() - began


def profile(n: str) -> contextlib.ContextDecorator:
  """Decorate a function, to log its seconds as `wait_<n>`."""
  return profile_kv(n)


def _average(comm, counted):
  """Return the means of values with counts, and what is not a number."""
  means: dict[str, Any] = {}
  parts = comm.allgather(counted)
  for name in dict.fromkeys(itertools.chain(*parts)):
    values, counts = zip(*[x[name] for x in parts if name in x])
    is_mean = all(map(_is_number, values))
    means[name] = np.average(values, weights=counts) if is_mean else values[0]
  return means


def _choose(dir):
  now = datetime.datetime.now().strftime('openai-%Y-%m-%d-%H-%M-%S-%f')
  temporary = os.path.join(tempfile.gettempdir(), now)
  # An environment may change the working directory.
  return files.absolute(dir or os.getenv('OPENAI_LOGDIR') or temporary)
