"""Trainings as generators that print nothing, for notebooks and loops."""

import contextlib
import os
from collections.abc import Iterator
from typing import Any, TextIO

# What a training tells after an epoch, by name.
Record = dict[str, Any]


def silence(records: Iterator[Record]) -> Iterator[Record]:
  """Iterate over a training that cannot print, not even when it is closed.

  Between two records, standard output and error belong to the caller.

  Args:
    records: Generator of the training.

  Yields:
    Its records.
  """
  with open(os.devnull, 'w') as nowhere:
    try:
      while True:
        with _redirect(nowhere):
          record = next(records, None)
        if record is None:
          return
        yield record
    finally:
      with _redirect(nowhere):
        records.close()  # type: ignore[attr-defined]


@contextlib.contextmanager
def _redirect(stream: TextIO) -> Iterator[None]:
  with contextlib.redirect_stdout(stream):
    with contextlib.redirect_stderr(stream):
      yield
