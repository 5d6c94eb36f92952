"""Logs of a run: messages, statistics and times as JSON, scalars."""

import contextlib
import copy
import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from agents.run import errors, log, messages, names, references

LEVELS = ('DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL')
_COLORS = ('\033[90m', '', '\033[33m', '\033[31m', '\033[1;31m')


class Logger(logging.Logger):
  """Prints lines with the time since the start, and writes them to a file.

  Args:
    path: File to append to, or None.
    level: Index in `LEVELS` of the least severe messages to write; 5 or more
      for none.
  """

  warn = logging.Logger.warning

  def __init__(self, path: str | None = None, level: int = 1):
    super().__init__(__name__, 10 * (level + 1))
    start = time.monotonic()
    for place in (None, path) if path else (None,):
      handler = messages.TextHandler(place)
      handler.setFormatter(_Formatter(handler, start))
      self.addHandler(handler)


class _Formatter(logging.Formatter):
  """Adds the seconds since the start, and colors on terminals."""

  def __init__(self, handler, start):
    super().__init__()
    self._handler, self._start = handler, start

  def format(self, record):
    number, stream = record.levelno // 10 - 1, self._handler.stream
    seconds = time.monotonic() - self._start
    text = f'[{seconds:.2f}s, {LEVELS[number]}] {record.getMessage()}'
    if stream is not None and stream.isatty() and _COLORS[number]:
      text = f'{_COLORS[number]}{text}\033[0m'
    return text


class Monitor:
  """Collect values by name and write their statistics periodically.

  Statistics are `num`, `sum`, `min`, `max` and `std`, the standard deviation
  of the sample (divided by `num` - 1; 0 for a single value).

  Args:
    path: File of JSON lines, or None. An existing file is appended to.

  Attributes:
    last: Dict from name to its newest statistics.
    listeners: List of functions of name, statistics and `meta`.
  """

  def __init__(self, path: str | None = None):
    self.last: dict[str, dict] = {}
    self.listeners: list[Callable[[str, dict, dict], None]] = []
    self._path = path
    # Per name: the window, and the values that are not written yet.
    self._values: dict[str, tuple[int, list[float]]] = {}
    self._packed: dict[str, dict] = {}
    self._meta: dict[str, Any] = {}
    self._start = time.monotonic()
    self._lines = 0
    if path:
      log.append(path, '')
      self._lines = len(_read_rows(path))

  @property
  def meta(self) -> dict[str, Any]:
    """Position in the run; `clock` is in seconds and includes earlier parts.

    Setting `clock` replaces the stopwatch.
    """
    return {'clock': time.monotonic() - self._start, **self._meta}

  def __call__(self, name: str, value: float, window: int = -1) -> None:
    """Add a value.

    Args:
      name: Name such as `/reward/train/episodic`.
      value: Number.
      window: Number of values per line, the same in all calls; -1 to write
        them in `pack`.
    """
    window, values = self._values.setdefault(name, (window, []))
    values.append(float(value))
    if 0 <= window <= len(values):
      self._write([name])

  def set_meta(self, key: str, value: Any) -> None:
    """Set a position: `epoch`, `frame`, `episode` or `clock`."""
    self._meta[key] = references.to_plain(value)

  def discard_key(self, name: str) -> None:
    """Discard the values of a name since the last `pack`, if any."""
    self._values.pop(name, None)

  def pack(self) -> dict[str, dict]:
    """Write all names without a window as one line and clear them.

    Returns:
      Dict from name to the newest statistics since the last call, including
      those of full windows.
    """
    self._write([k for k, (window, _) in self._values.items() if window < 0])
    packed, self._packed = self._packed, {}
    return packed

  def merge(self, states: Iterable[Mapping[str, Any]]) -> None:
    """Combine the values of several monitors in this one.

    Includes only names without a window; each monitor writes the others when
    their windows are full.

    Args:
      states: Results of `state_dict` of all monitors, including this one.
    """
    merged: dict[str, tuple[int, list[float]]] = {}
    for state in states:
      for name, (window, values) in state['values'].items():
        if window < 0:
          merged.setdefault(name, (window, []))[1].extend(values)
    self._values.update(merged)

  def state_dict(self) -> dict[str, Any]:
    """Return plain data to restore the monitor from."""
    return {
      'values': copy.deepcopy(self._values),
      'last': dict(self.last),
      'meta': self.meta,
      'lines': self._lines,
    }

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Continue from the state of another monitor.

    Lines that it wrote after that state will be repeated; a mark in the file
    tells `read` to skip them.
    """
    self._values = copy.deepcopy(state['values'])
    self.last = dict(state['last'])
    self._meta = dict(state['meta'])
    self._start = time.monotonic() - self._meta.pop('clock')
    if self._path and self._lines > state['lines']:
      self._lines = state['lines']
      append_json(self._path, {'meta': self.meta, 'keep_lines': self._lines})

  def _write(self, names):
    data = {name: _describe(self._values.pop(name)[1]) for name in names}
    meta = self.meta
    self.last.update(data)
    self._packed.update(data)
    if self._path and data:
      append_json(self._path, {'meta': meta, 'data': data})
      self._lines += 1
    for name, statistics in data.items():
      for listener in self.listeners:
        listener(name, statistics, meta)


def _describe(values):
  """Return the statistics of a list of numbers."""
  with np.errstate(invalid='ignore'):
    std = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
  found = {'std': std, 'num': len(values), 'sum': sum(values)}
  return {**found, 'min': min(values), 'max': max(values)}


class Profiler:
  """Count and time nested scopes.

  `with profiler('train'), profiler('envstep'):` adds to `/train/envstep`. The
  empty name is the root `/`, which contains all others. A scope costs about a
  microsecond. Use it only in the main thread.

  Args:
    path: File of JSON lines to append to, or None.
    level: Maximum depth of scopes to record: 0 for the root only, -1 for all.
  """

  def __init__(self, path: str | None = None, level: int = -1) -> None:
    self._path = path
    self._level = level
    self._current, self._depth = '', 0
    self._totals: dict[str, tuple[int, float]] = {}
    self._outside = 0.0

  @contextlib.contextmanager
  def __call__(self, name: str) -> Iterator[None]:
    """Time a scope within the current one."""
    outer, depth = self._current, self._depth
    assert name or not outer, ('the root is within', outer)
    self._current = path = f'{outer.rstrip("/")}/{name}'
    # What is outside of the root has the same paths, and the same depth.
    self._depth += bool(name)
    began = time.perf_counter()
    try:
      yield
    finally:
      seconds = time.perf_counter() - began
      if not 0 <= self._level < self._depth:
        occurs, before = self._totals.get(path, (0, 0.0))
        self._totals[path] = occurs + 1, before + seconds
        if name and not outer:
          self._outside += seconds
      self._current, self._depth = outer, depth

  def pack(
    self, meta: Mapping[str, Any] | None = None
  ) -> dict[str, dict[str, float]]:
    """Write a line with all scopes that have ended, and start over.

    Args:
      meta: Position in the run, see `Monitor.meta`.

    Returns:
      Dict from path to dict of `occurs` and `seconds`. The root also has
      `outside`, the seconds of scopes such as `/test` that ran outside of it.
    """
    data = {
      path: {'occurs': occurs, 'seconds': seconds}
      for path, (occurs, seconds) in self._totals.items()
    }
    if '/' in data:
      data['/']['outside'] = self._outside
    if self._path and data:
      append_json(self._path, {'meta': dict(meta or {}), 'data': data})
    self._totals, self._outside = {}, 0.0
    return data


class Writer:
  """Send scalars to TensorBoard and other outputs.

  Args:
    *outputs: Objects with `write(step, scalars)`, where `scalars` is a dict
      from tag to number.

  Attributes:
    outputs: List of outputs, which can be extended.
  """

  def __init__(self, *outputs: Any):
    self.outputs = list(outputs)

  def add_scalar(self, tag: str, value: float, step: int) -> None:
    """Write the value of a tag, such as `loss/critic`, at a step."""
    for output in self.outputs:
      output.write(int(step), {tag: float(value)})

  def add_statistics(
    self, name: str, statistics: Mapping[str, Any], meta: Mapping[str, Any]
  ) -> None:
    """Write the mean of a monitor's statistics; use it as its listener."""
    step = meta.get('frame', meta.get('epoch', 0))
    self.add_scalar(names.plain_name(name.strip('/')), mean(statistics), step)


def read(path: str) -> dict[str, dict[str, np.ndarray]]:
  """Read a file of JSON lines written by this package.

  Skips incomplete lines of killed processes, and lines that were repeated after
  resuming. Of files of digideep, leaves out vectors, such as the load per core.

  Args:
    path: File of a `Monitor`, a `Profiler` or a `ResourceThread`.

  Returns:
    Dict from name to dict of arrays [packs] of equal length, one per key of
    the meta data and statistics. Missing values are NaN.

  Raises:
    OSError: If the file cannot be read.
    UsageError: If it contains anything else.
  """
  table: dict[str, list[dict]] = {}
  for row in _read_rows(path):
    for name, values in row.items():
      table.setdefault(name, []).append(values)
  columns = {}
  for name, rows in table.items():
    keys = dict.fromkeys(key for row in rows for key in row)
    columns[name] = {
      key: np.array([row.get(key, math.nan) for row in rows]) for key in keys
    }
  return columns


def mean(statistics: Mapping[str, Any]) -> float:
  """Return the mean of a `Monitor`'s statistics."""
  return statistics['sum'] / statistics['num']


def append_json(path: str, row: Mapping[str, Any]) -> None:
  """Append plain data as one line; NaN and infinity become null."""
  log.append_json(path, _without_nan(row))


def _read_rows(path):
  """Dict from name to values for each line."""
  rows: list[dict[str, dict[str, float]]] = []
  try:
    for row in log.read_json(path):
      if 'keep_lines' in row:
        del rows[row['keep_lines'] :]
        continue
      packs = {
        k: {**row['meta'], **v}
        for k, v in row['data'].items()
        if not _is_vector(v)
      }
      rows.append({k: _to_floats(v) for k, v in packs.items()})
  except (AttributeError, KeyError, TypeError, ValueError) as error:
    raise errors.UsageError(
      f'{path} is damaged ({type(error).__name__}: {error}); move it away.'
    ) from None
  return rows


def _is_vector(values):
  """Return whether these are statistics of vectors, which only digideep has."""
  return any(isinstance(x, list) and len(x) != 1 for x in values.values())


def _to_floats(values):
  # Digideep calls totals seconds.
  names = {'totals': 'seconds'}
  return {names.get(k, k): _to_float(x) for k, x in values.items()}


def _to_float(value):
  (value,) = value if isinstance(value, list) else [value]
  return math.nan if value is None else float(value)


def _without_nan(value):
  if isinstance(value, dict):
    return {key: _without_nan(x) for key, x in value.items()}
  if isinstance(value, float) and not math.isfinite(value):
    return None
  return value
