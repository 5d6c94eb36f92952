"""Outputs of the logger: text with tables, CSV, JSON, TensorBoard."""

import os
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from agents.run import errors, log, messages

_WIDTH = 30


class Output(Protocol):
  """What the rows of the logger are written to."""

  def writekvs(self, values: Mapping[str, Any]) -> None:
    """Write a row, a dict from key to value."""

  def close(self) -> None:
    """Close the files."""


class HumanOutput(messages.TextHandler):
  """Messages and tables for people.

  Args:
    path: File to append to; the terminal if None.
  """

  def writekvs(self, values: Mapping[str, Any]) -> None:
    """Write a table."""
    rows = {_cut(key): _cut(_format(value)) for key, value in values.items()}
    if not rows:
      return
    width = max(map(len, rows)), max(map(len, rows.values()))
    rule = '-' * (sum(width) + 7)
    lines = [
      f'| {key:{width[0]}} | {value:{width[1]}} |'
      for key, value in sorted(rows.items(), key=lambda row: row[0].lower())
    ]
    self.write('\n'.join([rule, *lines, rule]))


class CSVOutput:
  """Table with a column for every key that has appeared so far.

  A file that exists is continued.

  Args:
    path: File to write.
  """

  def __init__(self, path: str):
    self._table = log.Table(path)

  def writekvs(self, values: Mapping[str, Any]) -> None:
    """Append a line."""
    self._table.append(values)

  def close(self) -> None:
    """Do nothing; the file is closed after each row."""


class JSONOutput:
  """One object per line.

  Args:
    path: File to append to.
  """

  def __init__(self, path: str):
    self._path = path
    log.append(path, '')

  def writekvs(self, values: Mapping[str, Any]) -> None:
    """Append a line; scalars of arrays become floats."""
    row = {k: float(v) if hasattr(v, 'dtype') else v for k, v in values.items()}
    log.append_json(self._path, row)

  def close(self) -> None:
    """Do nothing; the file is closed after each row."""


class TensorBoardOutput:
  """Event file with one scalar per key; steps count the rows.

  Args:
    folder: Folder of the file.
  """

  def __init__(self, folder: str):
    self._step = len(read_tb(folder)) if os.path.isdir(folder) else 0
    self._events = log.Events(folder)

  def writekvs(self, values: Mapping[str, Any]) -> None:
    """Write the numbers among the values."""
    self._step += 1
    scalars = {
      key: float(value)
      for key, value in values.items()
      if hasattr(value, '__float__')
    }
    self._events.write(self._step, scalars)
    self._events.flush()

  def close(self) -> None:
    """Close the file."""
    self._events.close()


def make_output_format(name: str, folder: str, suffix: str = '') -> Output:
  """Create an output by its name.

  Args:
    name: One of `stdout`, `log`, `csv`, `json` and `tensorboard`.
    folder: Folder of the files.
    suffix: Appended to the names of files.

  Raises:
    UsageError: If the name is not known.
  """

  def place(pattern):
    return os.path.join(folder, pattern % suffix)

  makers: dict[str, Callable[[], Output]] = {
    'stdout': lambda: HumanOutput(None),
    'log': lambda: HumanOutput(place('log%s.txt')),
    'csv': lambda: CSVOutput(place('progress%s.csv')),
    'json': lambda: JSONOutput(place('progress%s.json')),
    'tensorboard': lambda: TensorBoardOutput(place('tb%s')),
  }
  if name not in makers:
    raise errors.UsageError(
      f'Log format {name!r} is unknown. {errors.suggest(name, makers)}'
    )
  return makers[name]()


def read_csv(path: str) -> list[dict[str, float | str | None]]:
  """Return rows, dicts from column to number, text, or None if empty."""
  return [
    {key: _parse(value) for key, value in row.items()}
    for row in log.read_table(path)
  ]


read_json = log.read_json
read_tb = log.read_events


def _format(value):
  if hasattr(value, '__float__'):
    return f'{float(value):<8.3g}'
  return str(value)


def _cut(text):
  return text if len(text) <= _WIDTH else text[: _WIDTH - 3] + '...'


def _parse(text):
  try:
    return float(text)
  except (TypeError, ValueError):
    return text or None
