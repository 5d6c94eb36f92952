"""Scalars over steps: TensorBoard events, a table, and live mirrors."""

import contextlib
import csv
import os
import time

_FLUSH_SECONDS = 5.0
COLUMNS = ('tag', 'step', 'value', 'wall_time')


class Writer:
  """Send scalars to all outputs; without any, this does nothing.

  Args:
    tensorboard_dir: Folder for event files, or None. TensorFlow is imported
      with the first scalar.
    csv_path: File with the columns `COLUMNS`, or None. A file that exists is
      continued.
    mirrors: Objects with `add_scalar(tag, value, step)` and `close()`.
  """

  def __init__(self, tensorboard_dir=None, csv_path=None, mirrors=()):
    self._outputs = list(mirrors)
    if csv_path:
      self._outputs.append(_Table(csv_path))
    if tensorboard_dir:
      self._outputs.append(_Events(tensorboard_dir))

  def add_scalar(self, tag, value, step):
    """Note the value of a tag, such as `loss/critic`, at a step."""
    value, step = float(value), int(step)
    for output in self._outputs:
      output.add_scalar(tag, value, step)

  def flush(self):
    """Make sure that readers of the files see everything."""
    for output in self._outputs:
      if hasattr(output, 'flush'):
        output.flush()

  def close(self):
    """Close the files and end the mirrors, also if one of them fails."""
    with contextlib.ExitStack() as stack:
      while self._outputs:
        stack.callback(self._outputs.pop(0).close)


def read(path):
  """Contents of a table of scalars.

  Where a run was resumed and came to the same step again, the later value
  counts. Incomplete lines are left out.

  Args:
    path: File of a `Writer`.

  Returns:
    Dict from tag to dict from step to value, in the order of steps.

  Raises:
    OSError: If the file cannot be read.
  """
  curves = {}
  with open(path, encoding='utf-8', errors='replace', newline='') as file_:
    for row in csv.DictReader(file_):
      try:
        step, value = int(row['step']), float(row['value'])
        float(row['wall_time'])
      except (KeyError, TypeError, ValueError):
        continue
      curves.setdefault(row['tag'], {})[step] = value
  return {tag: dict(sorted(x.items())) for tag, x in curves.items()}


class _Table:
  """Lines of comma separated values, on disk after some seconds at most."""

  def __init__(self, path):
    new = not os.path.exists(path) or not os.path.getsize(path)
    self._file = open(path, 'a+', encoding='utf-8', newline='')
    self._writer = csv.writer(self._file, lineterminator='\n')
    if new:
      self._writer.writerow(COLUMNS)
    else:
      self._finish_line()
    self.flush()

  def add_scalar(self, tag, value, step):
    now = time.time()
    self._writer.writerow((tag, step, repr(value), f'{now:.3f}'))
    if now - self._flushed > _FLUSH_SECONDS:
      self.flush()

  def flush(self):
    self._file.flush()
    self._flushed = time.time()

  def close(self):
    self._file.close()

  def _finish_line(self):
    """Give what follows a line of its own after a process was killed."""
    with open(self._file.name, 'rb') as file_:
      file_.seek(-1, os.SEEK_END)
      if file_.read() != b'\n':
        self._file.write('\n')


class _Events:
  """Event file of TensorBoard."""

  def __init__(self, folder):
    self._folder = folder
    self._tf = None
    self._writer = None

  def add_scalar(self, tag, value, step):
    if self._writer is None:
      from agents.tools.tf1 import tf

      self._tf, self._writer = tf, tf.summary.FileWriter(self._folder)
    scalar = self._tf.Summary.Value(tag=tag, simple_value=value)
    self._writer.add_summary(self._tf.Summary(value=[scalar]), step)

  def flush(self):
    if self._writer:
      self._writer.flush()

  def close(self):
    if self._writer:
      self._writer.close()
