"""Messages and tables, to the terminal and to files.

There is one current logger per process. Values are gathered with `logkv` and
written as one row by `dumpkvs`.
"""

import contextlib
import datetime
import os
import tempfile
import time
from collections import defaultdict

from agents.run import errors
from agents.run import mpi
from baselines_her import log_formats

DEBUG, INFO, WARN, ERROR, DISABLED = 10, 20, 30, 40, 50


class Logger:
  """Writes messages and tables to several outputs.

  Args:
    dir: Folder of the files, or None.
    output_formats: List of the outputs of `baselines_her.log_formats`.
    comm: Communicator to average values over when they are dumped, or None.

  Attributes:
    DEFAULT: Logger for the terminal; None before it is needed.
    CURRENT: Logger that the functions of this module use; None before one of
      them is called.
  """

  DEFAULT = None
  CURRENT = None

  def __init__(self, dir, output_formats, comm=None):
    self.dir = dir
    self.output_formats = output_formats
    self.comm = comm
    self.level = INFO
    self.values = defaultdict(float)
    self.counts = defaultdict(int)

  def logkv(self, key, value):
    self.values[key] = value

  def logkv_mean(self, key, value):
    mean, count = self.values[key], self.counts[key]
    self.values[key] = mean * count / (count + 1) + value / (count + 1)
    self.counts[key] = count + 1

  def dumpkvs(self):
    if self.level == DISABLED:
      return None
    values = dict(self.values)
    if self.comm and self.comm.Get_size() > 1:
      values = self._average(values)
    for output in self.output_formats:
      if values and hasattr(output, 'writekvs'):
        output.writekvs(values)
    self.values.clear()
    self.counts.clear()
    return values

  def log(self, *args, level=INFO):
    if self.level <= level:
      for output in self.output_formats:
        if hasattr(output, 'writeseq'):
          output.writeseq([str(x) for x in args])

  def close(self):
    for output in self.output_formats:
      output.close()

  def _average(self, values):
    """Means over the ranks that have a value, weighted by their counts."""
    rows = self.comm.gather(
      {k: (v, self.counts.get(k, 1)) for k, v in values.items()}
    )
    if self.comm.Get_rank() != 0:
      return {}
    total, weight = defaultdict(float), defaultdict(float)
    for row in rows:
      for key, (value, count) in row.items():
        if hasattr(value, '__float__'):
          total[key] += float(value) * count
          weight[key] += count
    means = {key: total[key] / weight[key] for key in total}
    return {key: means.get(key, value) for key, value in values.items()}


def get_current():
  """The logger in use; one for the terminal before `configure` is called."""
  if Logger.CURRENT is None:
    if Logger.DEFAULT is None:
      Logger.DEFAULT = Logger(None, [log_formats.HumanOutput(None)])
    Logger.CURRENT = Logger.DEFAULT
  return Logger.CURRENT


def configure(dir=None, format_strs=None, comm=None, log_suffix=''):
  """Log to a folder from now on.

  Args:
    dir: Folder; OPENAI_LOGDIR or a new one for temporary files by default.
    format_strs: List of `stdout`, `log`, `csv`, `json` and `tensorboard`;
      by default OPENAI_LOG_FORMAT of the first rank, OPENAI_LOG_FORMAT_MPI of
      others, separated by commas.
    comm: Communicator to average values over.
    log_suffix: Appended to the names of files.

  Raises:
    UsageError: If the folder cannot be written or a format is not known.
  """
  rank = mpi.world().Get_rank()
  dir = os.path.expanduser(
    dir or os.getenv('OPENAI_LOGDIR') or _temporary_folder()
  )
  if rank > 0:
    log_suffix += f'-rank{rank:03d}'
  if format_strs is None:
    name = 'OPENAI_LOG_FORMAT_MPI' if rank else 'OPENAI_LOG_FORMAT'
    default = 'log' if rank else 'stdout,log,csv'
    format_strs = os.getenv(name, default).split(',')
  try:
    os.makedirs(dir, exist_ok=True)
    outputs = [
      log_formats.make_output_format(x, dir, log_suffix)
      for x in format_strs
      if x
    ]
  except OSError as error:
    raise errors.UsageError(
      f'Cannot write logs to {dir!r}: {error.strerror}. Choose another folder '
      'with --log_path.'
    ) from None
  Logger.CURRENT = Logger(dir, outputs, comm)
  if outputs:
    log(f'Logging to {dir}')


def reset():
  """Close the files and log to the terminal again."""
  if Logger.CURRENT not in (None, Logger.DEFAULT):
    Logger.CURRENT.close()
  Logger.CURRENT = None


@contextlib.contextmanager
def scoped_configure(dir=None, format_strs=None, comm=None):
  """Log to a folder for the duration of a block."""
  previous = Logger.CURRENT
  configure(dir, format_strs, comm)
  try:
    yield
  finally:
    Logger.CURRENT.close()
    Logger.CURRENT = previous


def logkv(key, value):
  """Note a value for the next row; a later one replaces it."""
  get_current().logkv(key, value)


def logkv_mean(key, value):
  """Note a value whose mean until the next row is to be logged."""
  get_current().logkv_mean(key, value)


def logkvs(values):
  """Note a dict of values."""
  for key, value in values.items():
    logkv(key, value)


def dumpkvs():
  """Write the row of all values noted; returns it as a dict."""
  return get_current().dumpkvs()


def getkvs():
  """Values noted since the last row."""
  return get_current().values


record_tabular = logkv
dump_tabular = dumpkvs


def log(*args, level=INFO):
  """Write words, joined by spaces, unless the level is below the logger's."""
  get_current().log(*args, level=level)


def debug(*args):
  log(*args, level=DEBUG)


def info(*args):
  log(*args, level=INFO)


def warn(*args):
  log(*args, level=WARN)


def error(*args):
  log(*args, level=ERROR)


def set_level(level):
  """Leave out messages below a level."""
  get_current().level = level


def get_dir():
  """Folder of the current logger, None if it has none."""
  return get_current().dir


@contextlib.contextmanager
def profile_kv(name):
  """Add the seconds that a block takes to `wait_<name>`."""
  began = time.time()
  try:
    yield
  finally:
    get_current().values[f'wait_{name}'] += time.time() - began


read_csv = log_formats.read_csv
read_json = log_formats.read_json
read_tb = log_formats.read_tb


def _temporary_folder():
  now = datetime.datetime.now().strftime('openai-%Y-%m-%d-%H-%M-%S-%f')
  return os.path.join(tempfile.gettempdir(), now)
