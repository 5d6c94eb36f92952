"""Outputs of the logger: text with tables, CSV, JSON, TensorBoard."""

import csv
import json
import os
import sys

from agents.run import errors
from agents.run import files

_WIDTH = 30


class HumanOutput:
  """Lines and tables for people.

  Args:
    path: File to append to; the terminal if None.
  """

  def __init__(self, path):
    self._path = path
    self._file = open(path, 'a') if path else None

  def writekvs(self, values):
    rows = {_cut(key): _cut(_format(value)) for key, value in values.items()}
    if not rows:
      return
    width = max(map(len, rows)), max(map(len, rows.values()))
    rule = '-' * (sum(width) + 7)
    lines = [
      f'| {key:{width[0]}} | {value:{width[1]}} |'
      for key, value in sorted(rows.items(), key=lambda row: row[0].lower())
    ]
    self._write('\n'.join([rule, *lines, rule]))

  def writeseq(self, words):
    self._write(' '.join(words))

  def close(self):
    if self._file:
      self._file.close()

  def _write(self, text):
    # Look up the terminal late, as it may be redirected.
    print(text, file=self._file or sys.stdout, flush=True)


class CSVOutput:
  """Table with a column for every key that has appeared so far.

  A file that exists is continued.

  Args:
    path: File to write.
  """

  def __init__(self, path):
    self._path = path
    self._keys = []
    if os.path.exists(path):
      with open(path) as file_:
        self._keys = next(csv.reader(file_), [])
    else:
      open(path, 'w').close()

  def writekvs(self, values):
    new = sorted(set(values) - set(self._keys))
    if new:
      self._add_columns(new)
    row = [str(values[k]) if k in values else '' for k in self._keys]
    with open(self._path, 'a') as file_:
      file_.write(','.join(row) + '\n')

  def close(self):
    pass

  def _add_columns(self, new):
    self._keys += new
    with open(self._path) as file_:
      rows = file_.read().splitlines()[1:]
    with files.atomic_write(self._path) as file_:
      file_.write(','.join(self._keys) + '\n')
      file_.writelines(row + ',' * len(new) + '\n' for row in rows)


class JSONOutput:
  """One object per line.

  Args:
    path: File to append to.
  """

  def __init__(self, path):
    self._file = open(path, 'a')

  def writekvs(self, values):
    row = {k: float(v) if hasattr(v, 'dtype') else v for k, v in values.items()}
    self._file.write(json.dumps(row) + '\n')
    self._file.flush()

  def close(self):
    self._file.close()


class TensorBoardOutput:
  """Event file with one scalar per key; steps count the rows.

  Args:
    folder: Folder of the file.
  """

  def __init__(self, folder):
    from agents.tools.tf1 import tf

    self._tf = tf
    self._step = len(read_tb(folder)) if os.path.isdir(folder) else 0
    self._writer = tf.summary.FileWriter(folder)

  def writekvs(self, values):
    self._step += 1
    scalars = [
      self._tf.Summary.Value(tag=key, simple_value=float(value))
      for key, value in values.items()
      if hasattr(value, '__float__')
    ]
    self._writer.add_summary(self._tf.Summary(value=scalars), self._step)
    self._writer.flush()

  def close(self):
    self._writer.close()


def make_output_format(name, folder, suffix=''):
  """Output by its name.

  Args:
    name: One of `stdout`, `log`, `csv`, `json` and `tensorboard`.
    folder: Folder of the files.
    suffix: Appended to the names of files.

  Raises:
    UsageError: If the name is not known.
  """

  def place(pattern):
    return os.path.join(folder, pattern % suffix)

  makers = {
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


def read_csv(path):
  """List of rows, dicts from column to number, text, or None if empty."""
  with open(path) as file_:
    return [
      {key: _parse(value) for key, value in row.items() if key}
      for row in csv.DictReader(file_)
    ]


def read_json(path):
  """List of the objects of a file."""
  with open(path) as file_:
    return [json.loads(line) for line in file_ if line.strip()]


def read_tb(folder):
  """List of rows by step, dicts from tag to number."""
  from agents.tools.tf1 import tf

  rows = {}
  for name in sorted(os.listdir(folder)):
    if name.startswith('events'):
      for event in tf.train.summary_iterator(os.path.join(folder, name)):
        for value in event.summary.value:
          rows.setdefault(event.step, {})[value.tag] = value.simple_value
  return [rows[step] for step in sorted(rows)]


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
