"""Scalars over steps: TensorBoard events, a table, and live mirrors."""

import contextlib
import time
from collections.abc import Iterable
from typing import Any

from agents.run import log

_FLUSH_SECONDS = 5.0
COLUMNS = ('tag', 'step', 'value', 'wall_time')


class Writer:
  """Send scalars to all outputs; without any, this does nothing.

  Args:
    tensorboard_dir: Folder for event files, or None. TensorFlow is imported
      with the first scalar.
    csv_path: File with the columns `COLUMNS`, or None. A file that exists is
      continued. Rows are on disk after some seconds at most.
    mirrors: Objects with `add_scalar(tag, value, step)` and `close()`.
  """

  def __init__(
    self,
    tensorboard_dir: str | None = None,
    csv_path: str | None = None,
    mirrors: Iterable[Any] = (),
  ):
    self._mirrors = list(mirrors)
    self._table = csv_path and log.Table(
      csv_path, COLUMNS, flush_seconds=_FLUSH_SECONDS
    )
    self._events = tensorboard_dir and log.Events(tensorboard_dir)

  def add_scalar(self, tag: str, value: float, step: int) -> None:
    """Note the value of a tag, such as `loss/critic`, at a step."""
    value, step = float(value), int(step)
    for mirror in self._mirrors:
      mirror.add_scalar(tag, value, step)
    if self._table:
      row = (tag, step, value, f'{time.time():.3f}')
      self._table.append(dict(zip(COLUMNS, row)))
    if self._events:
      self._events.write(step, {tag: value})

  def flush(self) -> None:
    """Make sure that readers of the files see everything."""
    if self._table:
      self._table.flush()
    if self._events:
      self._events.flush()

  def close(self) -> None:
    """Close the files and end the mirrors, also if one of them fails."""
    with contextlib.ExitStack() as stack:
      while self._mirrors:
        stack.callback(self._mirrors.pop().close)
      if self._table:
        stack.callback(self._table.flush)
      if self._events:
        stack.callback(self._events.close)


def read(path: str) -> dict[str, dict[int, float]]:
  """Return the contents of a table of scalars.

  Where a run was resumed and came to the same step again, the later value
  counts. Incomplete lines are left out.

  Args:
    path: File of a `Writer`.

  Returns:
    Dict from tag to dict from step to value, in the order of steps.

  Raises:
    OSError: If the file cannot be read.
  """
  curves: dict[str, dict[int, float]] = {}
  for row in log.read_table(path):
    tag, *texts = (row.get(key) or '' for key in COLUMNS)
    try:
      step, value, _ = int(texts[0]), float(texts[1]), float(texts[2])
    except ValueError:
      continue
    curves.setdefault(tag, {})[step] = value
  return {tag: dict(sorted(x.items())) for tag, x in curves.items()}
