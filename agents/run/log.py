"""Scalars of runs: records of epochs, JSON lines, tables and event files.

All lines that a run adds to a file go through `append`. The systems define the
names and columns of their files and pass rows to the writers here.
"""

import contextlib
import csv
import fcntl
import io
import itertools
import json
import logging
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from agents.run import files, locks, names, training

_logger = logging.getLogger(__name__)

_count = itertools.count()
# Damaged lines may be longer than the usual limit, even the first one.
csv.field_size_limit(2**31 - 1)

# Values of a table row by column; missing ones are None.
Row = dict[str, str | None]


def append(path: str, text: str) -> None:
  """Append complete lines to a file, which is created if needed.

  First removes an incomplete last line, left by a process that was killed. The
  file is closed again, so that nothing is lost if this process is killed.
  Several processes may append to the same file.

  Args:
    path: File in a folder that exists.
    text: Lines that end with a line break; '' to only repair the file.

  Raises:
    Lost: If it belongs to a run whose folder is not there any more.
  """
  locks.check(path)
  with open(path, 'ab+') as file_:
    # Some file systems have no locks.
    with contextlib.suppress(OSError):
      fcntl.flock(file_, fcntl.LOCK_EX)
    if file_.seek(0, os.SEEK_END):
      file_.seek(-1, os.SEEK_END)
      if file_.read() != b'\n':
        file_.seek(0)
        file_.truncate(file_.read().rfind(b'\n') + 1)
    file_.write(text.encode())


def append_json(path: str, row: Mapping[str, Any]) -> None:
  """Append an object of built-in types as one JSON line."""
  append(path, json.dumps(row) + '\n')


def read_json(
  path: str, fits: Callable[[Any], bool] = lambda row: True
) -> list[Any]:
  """Return the objects in a file of JSON lines.

  Skips lines that are not valid JSON, left by killed processes, or that do not
  fit, and logs a warning with their number.

  Args:
    path: File with one object per line.
    fits: Function that returns whether an object has the expected form.

  Raises:
    OSError: If the file cannot be read.
  """
  rows, skipped = [], 0
  with open(path, encoding='utf-8-sig', errors='replace') as file_:
    for line in file_:
      try:
        row = json.loads(line)
        if not fits(row):
          raise ValueError(row)
        rows.append(row)
      except (ValueError, RecursionError):
        skipped += 1
  if skipped:
    _logger.warning('Skipped unreadable lines in %s: %s.', path, skipped)
  return rows


def cut_json(path: str, keep: Callable[[Any], bool]) -> None:
  """Remove objects from a file, completely or not at all.

  Args:
    path: File with one object per line.
    keep: Function that returns whether to keep an object.
  """
  rows = [x for x in read_json(path) if keep(x)]
  with files.atomic_write(path) as file_:
    file_.writelines(json.dumps(x) + '\n' for x in rows)


class Table:
  """CSV file with a column for every key seen so far.

  Appends to an existing file. Rewrites it, completely or not at all, when
  columns are added.

  Args:
    path: File in a folder that exists.
    columns: Initial columns.
    keep: Function that returns whether to keep an earlier row; all by default.
  """

  def __init__(
    self,
    path: str,
    columns: Iterable[str] = (),
    keep: Callable[[Row], bool] | None = None,
  ):
    append(path, '')
    self._path = path
    with open(
      path, encoding='utf-8-sig', errors='replace', newline=''
    ) as file_:
      self._columns = next(csv.reader(file_), [])
    new = [x for x in columns if x not in self._columns]
    if new or keep:
      self._rewrite(new, keep)

  def append(self, row: Mapping[str, Any]) -> None:
    """Add a row; columns that are missing or None stay empty."""
    new = sorted(set(row) - set(self._columns))
    if new:
      self._rewrite(new)
    append(self._path, format_rows([map(row.get, self._columns)]))

  def _rewrite(
    self, new: list[str], keep: Callable[[Row], bool] | None = None
  ) -> None:
    """Add columns and drop rows."""
    rows = [x for x in read_table(self._path) if keep is None or keep(x)]
    self._columns += new
    lines = [map(row.get, self._columns) for row in rows]
    write_table(self._path, self._columns, lines)


def write_table(
  path: str, columns: Iterable[str], rows: Iterable[Iterable[Any]]
) -> None:
  """Write a CSV file, completely or not at all."""
  with files.atomic_write(path) as file_:
    file_.write(format_rows([columns, *rows]))


def read_table(path: str, numbers: Iterable[str] = ()) -> Iterator[Row]:
  """Yield the rows of a CSV file.

  Skips rows that are not valid, and logs a warning with their number.

  Args:
    path: File with the names of the columns in the first line.
    numbers: Columns that hold finite numbers or nothing in a valid row.

  Raises:
    OSError: If the file cannot be read.
    KeyError: If one of these columns is missing.
  """
  numbers, skipped = list(numbers), 0
  with open(path, encoding='utf-8-sig', errors='replace', newline='') as file_:
    rows = csv.DictReader(file_)
    while True:
      try:
        row = next(rows)
        for name in numbers:
          if not math.isfinite(float(row[name] or 0)):
            raise ValueError(row)
      except StopIteration:
        break
      except (csv.Error, ValueError):
        skipped += 1
        continue
      yield {key: value for key, value in row.items() if key}
  if skipped:
    _logger.warning('Skipped unreadable lines in %s: %s.', path, skipped)


class Events:
  """TensorBoard event file with scalars.

  The first write imports TensorFlow.

  Args:
    folder: Folder of the file.
  """

  def __init__(self, folder: str):
    self._folder = folder
    self._writer: Any = None

  def write(self, step: int, scalars: Mapping[str, float]) -> None:
    """Add a dict from tag to number."""
    from agents.run.tf1 import tf

    locks.check(os.path.join(self._folder, 'events'))
    if not self._writer:
      # Two writers within a second would have the same file.
      suffix = f'.{os.getpid()}.{next(_count)}'
      self._writer = tf.summary.FileWriter(self._folder, filename_suffix=suffix)
    pairs = scalars.items()
    values = [tf.Summary.Value(tag=k, simple_value=x) for k, x in pairs]
    self._writer.add_summary(tf.Summary(value=values), step)

  def flush(self) -> None:
    """Make everything written so far visible to readers."""
    if self._writer:
      self._writer.flush()

  def close(self) -> None:
    """Close the file."""
    if self._writer:
      self._writer.close()
      self._writer = None


def iterate_events(folder: str) -> Iterator[tuple[float, int, str, float]]:
  """Yield wall time, step, tag and value of all scalars in file order.

  Raises:
    OSError: If the folder does not exist.
  """
  from agents.run.tf1 import tf

  for name in sorted(os.listdir(folder)):
    if 'tfevents' not in name:
      continue
    path = os.path.join(folder, name)
    try:
      for event in tf.train.summary_iterator(path):
        for value in event.summary.value:
          if value.HasField('simple_value'):
            yield event.wall_time, event.step, value.tag, value.simple_value
    except tf.errors.DataLossError as error:
      # A file may end within an event, as its writer is at work or was killed.
      if 'truncated' not in str(error):
        _logger.warning('%s is damaged; its rest is left out: %s', path, error)


def read_events(folder: str) -> list[dict[str, float]]:
  """Return dicts from tag to number, one per step, in the order of steps.

  Raises:
    OSError: If the folder does not exist.
  """
  rows: dict[int, dict[str, float]] = {}
  for _, step, tag, value in iterate_events(folder):
    rows.setdefault(step, {})[tag] = value
  return [rows[step] for step in sorted(rows)]


def read_summary(summary: bytes) -> dict[str, float]:
  """Return a dict from tag to number from a serialized TensorFlow summary."""
  from agents.run.tf1 import tf

  proto = tf.Summary.FromString(summary)
  return {
    x.tag: x.simple_value for x in proto.value if x.HasField('simple_value')
  }


def clean_summary(summary: bytes) -> bytes:
  """Return a summary without scalars, with the names that users see.

  The scalars are in `metrics.jsonl` and `scalars`, see `MetricsWriter`.

  Args:
    summary: Serialized TensorFlow summary.

  Returns:
    Serialized summary, empty if there were only scalars.
  """
  from agents.run.tf1 import tf

  proto = tf.Summary.FromString(summary)
  kept = [x for x in proto.value if not x.HasField('simple_value')]
  used: set[str] = set()
  for value in kept:
    name = names.plain_name(value.tag)
    value.tag = value.tag if name in used else name
    used.add(value.tag)
  return tf.Summary(value=kept).SerializeToString()


class MetricsWriter:
  """Append one JSON object per line to `metrics.jsonl`.

  Every line holds `phase`, `step` of the phase, `global_step`, `wall_time`,
  `env_steps`, and the scalars by the names that users see, see
  `agents.run.names`. Leaves out infinite values and NaN. Trainings that
  continue first remove what they repeat, see `cut_metrics`.

  The scalars also go to event files in the folder `scalars`, indexed by
  environment steps. `Training.log` writes here, too.

  Args:
    logdir: Log directory; created if needed.
    mirrors: Objects with `write(step, scalars)` and `close()` that also receive
      all scalars; see `agents.run.wandb_mirror`.
  """

  def __init__(self, logdir: str, mirrors: Iterable[Any] = ()):
    os.makedirs(logdir, exist_ok=True)
    self._path = os.path.join(logdir, 'metrics.jsonl')
    self._events = Events(os.path.join(logdir, 'scalars'))
    self._mirrors = list(mirrors)
    self._place = (0, 0, 0)
    training.receive(self._write_own)

  def write(
    self,
    phase: str,
    step: int,
    global_step: int,
    scalars: Mapping[str, float],
    env_steps: int,
  ) -> None:
    """Append a line.

    Args:
      phase: Name of the phase.
      step: Step of the summary.
      global_step: Step over all phases.
      scalars: Dict from tag to number.
      env_steps: Environment steps so far.
    """
    named = names.rename(scalars, phase)
    finite = {k: float(v) for k, v in named.items() if math.isfinite(v)}
    step, global_step, env_steps = map(int, (step, global_step, env_steps))
    self._place = step, global_step, env_steps
    line = {
      'phase': phase,
      'step': step,
      'global_step': global_step,
      'wall_time': round(time.time(), 3),
      'env_steps': env_steps,
    }
    append_json(self._path, {**line, **finite})
    if not finite:
      return
    self._events.write(env_steps, finite)
    self._events.flush()
    for mirror in self._mirrors:
      mirror.write(env_steps, finite)

  def close(self) -> None:
    """Close the event files and the mirrors."""
    training.receive(None)
    self._events.close()
    while self._mirrors:
      self._mirrors.pop().close()

  def _write_own(self, scalars):
    """Write scalars of the user at the place of the newest line."""
    step, global_step, env_steps = self._place
    self.write(names.OWN, step, global_step, scalars, env_steps)


class EpochRecord:
  """Collects what a training yields after an epoch.

  Args:
    logdir: Folder of the run, None without one.
    optional: Names of values that are NaN in a record without them.

  Attributes:
    totals: Values by name that go on in later records, such as `updates`.
    complete: Whether the epoch is done; set by the code that adds values.
  """

  def __init__(self, logdir: str | None, optional: Iterable[str] = ()):
    self.totals: dict[str, int] = {}
    self._usual = {'logdir': logdir, **dict.fromkeys(optional, math.nan)}
    self._values: dict[str, Any] = {}
    self.complete = False
    self.begin()

  def begin(self, env_steps: int | None = None) -> None:
    """Measure the seconds of the epoch from now on.

    Args:
      env_steps: Environment steps so far, None if unknown.
    """
    self._began, self._first = time.monotonic(), env_steps

  def add(self, values: Mapping[str, Any]) -> None:
    """Add values of this epoch by name, or replace them."""
    self._values.update(values)

  def summarize(self) -> dict[str, float]:
    """Return the scalars of the epoch for a `MetricsWriter`."""
    seconds = time.monotonic() - self._began
    scalars = {**self._values, **self.totals, 'seconds': seconds}
    steps = scalars.pop('environment_steps')
    del scalars['epoch']
    if self._first is not None:
      speed = (steps - self._first) / max(1e-9, seconds)
      scalars['env_steps_per_second'] = speed
    return scalars

  def take(self) -> dict[str, Any] | None:
    """Return the record if it is complete, and begin the next one."""
    if not self.complete:
      return None
    seconds = {'seconds': time.monotonic() - self._began}
    record = {**self._usual, **self._values, **self.totals, **seconds}
    self._values, self.complete = {}, False
    self.begin(record.get('environment_steps'))
    return record


def read_metrics(logdir: str) -> list[dict[str, Any]]:
  """Return the lines of `metrics.jsonl`, an empty list without that file.

  Merges lines of the same phase and global step; later values win. (The step
  of a phase may fall when a run continues with longer epochs.) The scalars of
  earlier versions get the current names.
  """
  path = os.path.join(logdir, 'metrics.jsonl')
  rows: dict[tuple[Any, Any], dict[str, Any]] = {}
  for row in read_json(path, _is_metric) if os.path.exists(path) else ():
    place = {x: row.pop(x) for x in training.RESERVED if x in row}
    key = place['phase'], place['global_step']
    scalars = names.rename(row, place['phase'])
    rows.setdefault(key, {}).update({**scalars, **place})
  return list(rows.values())


def cut_metrics(logdir: str, step: int) -> None:
  """Remove lines of `metrics.jsonl` after a global step, if there are any."""
  path = os.path.join(logdir, 'metrics.jsonl')
  if any(x['global_step'] > step for x in read_metrics(logdir)):
    cut_json(path, lambda x: _is_metric(x) and x['global_step'] <= step)


def _is_metric(row: Any) -> bool:
  """Whether an object is what `MetricsWriter` writes: numbers of a phase."""
  if not isinstance(row, dict) or not {'step', 'global_step'} <= set(row):
    return False
  numbers = [value for key, value in row.items() if key != 'phase']
  steps = row['step'], row['global_step'], row.get('env_steps', 0)
  return (
    isinstance(row.get('phase'), str)
    and all(isinstance(x, (int, float)) for x in numbers)
    # No NaN, and no integers that are too large for floats.
    and all(abs(x) < 2**63 for x in steps)
    and all(isinstance(x, float) or abs(x) < 2**63 for x in numbers)
  )


def format_rows(rows: Iterable[Iterable[Any]]) -> str:
  """Return lines of comma separated values."""
  text = io.StringIO()
  csv.writer(text, lineterminator='\n').writerows(rows)
  return text.getvalue()
