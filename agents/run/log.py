"""Scalars of runs: JSON lines, tables and event files.

All line-based files of a run are written through `append`. The systems define
the names and columns of their files and pass rows to the writers here.
"""

import contextlib
import csv
import fcntl
import io
import json
import logging
import math
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from agents.run import files, locks

_logger = logging.getLogger(__name__)

# Plain names of scalars, whose tags in graphs tell where they were made:
# patterns of tags, and names in which {0}, {1} are the groups of the pattern.
_NAMES = (
  # PlaNet: mean returns of an epoch, returns of one collection, and what is
  # minimised or maximised, which is why it is not called a loss.
  (r'(train|test)_return', 'returns/{0}'),
  (r'.*/((?:train|test)_[\w.-]+)/return', 'returns/{0}'),
  (r'.*/objectives/(\w+)', 'objectives/{0}/{phase}'),
  (r'.*/grad_norm', 'gradients/norm'),
  # PPO.
  (r'.*/mean_score', 'returns/{phase}'),
  (r'.*/mean_length', 'lengths/{phase}'),
  (r'.*/avg_(value|policy|surr)_loss', 'losses/{0}'),
  (r'.*/avg_(kl_penalty)', 'losses/{0}'),
  (r'.*/(value|policy)_gradient_norm', 'gradients/{0}_norm'),
  (r'.*/adjust_penalty/(kl_change|penalty)', 'policy/{0}'),
)

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
    # Not every file system knows locks.
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
  with open(path, encoding='utf-8', errors='replace') as file_:
    for line in file_:
      try:
        row = json.loads(line)
        if not fits(row):
          raise ValueError(row)
        rows.append(row)
      except ValueError:
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
  with files.atomic_path(path) as temporary:
    append(temporary, ''.join(json.dumps(x) + '\n' for x in rows))


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
    with open(path, encoding='utf-8', errors='replace', newline='') as file_:
      self._columns = next(csv.reader(file_), [])
    new = [x for x in columns if x not in self._columns]
    if new or keep:
      self._rewrite(new, keep)

  def append(self, row: Mapping[str, Any]) -> None:
    """Add a row; columns that are missing or None stay empty."""
    new = sorted(set(row) - set(self._columns))
    if new:
      self._rewrite(new)
    append(self._path, _format_rows([map(row.get, self._columns)]))

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
  with files.atomic_path(path) as temporary:
    append(temporary, _format_rows([columns, *rows]))


def read_table(path: str) -> Iterator[Row]:
  """Yield the rows of a CSV file.

  Raises:
    OSError: If the file cannot be read.
  """
  with open(path, encoding='utf-8', errors='replace', newline='') as file_:
    for row in csv.DictReader(file_):
      yield {key: value for key, value in row.items() if key}


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
    from agents.tools.tf1 import tf

    self._writer = self._writer or tf.summary.FileWriter(self._folder)
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
  from agents.tools.tf1 import tf

  for name in sorted(os.listdir(folder)):
    if 'tfevents' not in name:
      continue
    # DataLossError: the file ends within an event, as its writer is at work
    # or was killed.
    with contextlib.suppress(tf.errors.DataLossError):
      for event in tf.train.summary_iterator(os.path.join(folder, name)):
        for value in event.summary.value:
          if value.HasField('simple_value'):
            yield event.wall_time, event.step, value.tag, value.simple_value


def read_events(folder: str) -> list[dict[str, float]]:
  """Return dicts from tag to number, one per step, in file order.

  Raises:
    OSError: If the folder does not exist.
  """
  rows: dict[int, dict[str, float]] = {}
  for _, step, tag, value in iterate_events(folder):
    rows.setdefault(step, {})[tag] = value
  return [rows[step] for step in sorted(rows)]


def read_summary(summary: bytes) -> dict[str, float]:
  """Return a dict from tag to number from a serialized TensorFlow summary."""
  from agents.tools.tf1 import tf

  proto = tf.Summary.FromString(summary)
  return {
    x.tag: x.simple_value for x in proto.value if x.HasField('simple_value')
  }


class MetricsWriter:
  """Append one JSON object per line to `metrics.jsonl`.

  Every line holds `phase`, `step` (as in the TensorBoard event),
  `global_step`, `wall_time`, `env_steps`, and the scalars by their tags.
  Leaves out infinite values and NaN. If a killed run repeats steps after a
  restart, they appear twice, and the later line counts.

  Scalars with a plain name, see `plain_name`, also go to event files in the
  folder `scalars`, indexed by environment steps.

  Args:
    logdir: Log directory; created if needed.
    mirrors: Objects with `write(step, scalars)` and `close()` that also receive
      all scalars, by their plain names if they have one; see
      `agents.run.wandb_mirror`.
  """

  def __init__(self, logdir: str, mirrors: Iterable[Any] = ()):
    os.makedirs(logdir, exist_ok=True)
    self._path = os.path.join(logdir, 'metrics.jsonl')
    self._events = Events(os.path.join(logdir, 'scalars'))
    self._mirrors = list(mirrors)

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
    finite = {k: float(v) for k, v in scalars.items() if math.isfinite(v)}
    line = {
      'phase': phase,
      'step': int(step),
      'global_step': int(global_step),
      'wall_time': round(time.time(), 3),
      'env_steps': int(env_steps),
    }
    append_json(self._path, {**line, **finite})
    names = {tag: plain_name(tag, phase) for tag in finite}
    plain = {name: finite[tag] for tag, name in names.items() if name}
    if plain:
      self._events.write(env_steps, plain)
      self._events.flush()
    for mirror in self._mirrors if finite else ():
      named = {names[tag] or tag: value for tag, value in finite.items()}
      mirror.write(env_steps, named)

  def close(self) -> None:
    """Close the event files and the mirrors."""
    self._events.close()
    while self._mirrors:
      self._mirrors.pop().close()


def read_metrics(logdir: str) -> list[dict[str, Any]]:
  """Return the lines of `metrics.jsonl`, an empty list without that file.

  Merges lines of the same phase and global step; later values win. (The step
  of a phase may fall when a run continues with longer epochs.)
  """
  path = os.path.join(logdir, 'metrics.jsonl')
  rows: dict[tuple[Any, Any], dict[str, Any]] = {}
  for row in read_json(path, _is_metric) if os.path.exists(path) else ():
    rows.setdefault((row['phase'], row['global_step']), {}).update(row)
  return list(rows.values())


def cut_metrics(logdir: str, step: int) -> None:
  """Remove lines of `metrics.jsonl` after a global step, if there are any."""
  path = os.path.join(logdir, 'metrics.jsonl')
  if any(x['global_step'] > step for x in read_metrics(logdir)):
    cut_json(path, lambda x: _is_metric(x) and x['global_step'] <= step)


def plain_name(tag: str, phase: str) -> str | None:
  """Return the plain name of a tag, such as `returns/test`.

  Args:
    tag: Tag of a summary, or a key of `metrics.jsonl`.
    phase: Phase in which it was written.

  Returns:
    The name, or None if the tag has none.
  """
  for pattern, name in _NAMES:
    if match := re.fullmatch(pattern, tag):
      return name.format(*match.groups(), phase=phase)
  return None


def _is_metric(row: Any) -> bool:
  """Whether an object is what `MetricsWriter` writes: numbers of a phase."""
  if not isinstance(row, dict) or not {'step', 'global_step'} <= set(row):
    return False
  numbers = [value for key, value in row.items() if key != 'phase']
  phase = row.get('phase')
  return isinstance(phase, str) and all(
    isinstance(x, (int, float)) for x in numbers
  )


def _format_rows(rows: Iterable[Iterable[Any]]) -> str:
  """Return lines of comma separated values."""
  text = io.StringIO()
  csv.writer(text, lineterminator='\n').writerows(rows)
  return text.getvalue()
