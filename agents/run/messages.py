"""Log messages: which ones go to the terminal and which to a file."""

import contextlib
import logging
import sys
from collections.abc import Iterator
from typing import TextIO

from agents.run import log, mpi, references, training


class TextHandler(logging.Handler):
  """Append messages to a text file, or print them above progress bars.

  Args:
    path: File in a folder that exists; None for the terminal.
    stream: Stream of the terminal, `stdout` or `stderr`. It is looked up for
      every message, because it may be redirected.
  """

  def __init__(self, path: str | None = None, stream: str = 'stdout'):
    super().__init__()
    self._path = path
    self._stream = stream
    if path:
      log.append(path, '')

  @property
  def stream(self) -> TextIO | None:
    """The stream of the terminal, None for a file."""
    return None if self._path else getattr(sys, self._stream)

  def emit(self, record: logging.LogRecord) -> None:
    """Write a log record."""
    self.write(self.format(record))

  def write(self, text: str) -> None:
    """Write lines, given without the last line break."""
    if self._path:
      log.append(self._path, text + '\n')
    elif self.stream and self.stream.isatty():
      import tqdm

      tqdm.tqdm.write(text, file=self.stream)
    else:
      print(text, file=self.stream, flush=True)


def set_up_logging(verbose: bool = False) -> None:
  """Print the messages of this project and the warnings of other libraries.

  Of several MPI processes, all but the first print only warnings.

  Args:
    verbose: Whether to also print details, which otherwise only go to the
      files of `write_messages`.
  """
  shown = logging.DEBUG if verbose else logging.INFO
  for name in references.PROJECT:
    logger = logging.getLogger(name)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    # Others may have added handlers of theirs.
    own = [x for x in logger.handlers if isinstance(x, TextHandler)]
    if not own:
      own = [TextHandler(stream='stderr')]
      logger.addHandler(own[0])
    own[0].setLevel(shown if mpi.is_first() else logging.WARNING)


@contextlib.contextmanager
def muted(module: str) -> Iterator[None]:
  """Drop what a module logs below a warning, where the caller says it itself.

  Args:
    module: Name of the module.

  Yields:
    Nothing.
  """
  logger = logging.getLogger(module)
  level = logger.level
  logger.setLevel(logging.WARNING)
  try:
    yield
  finally:
    logger.setLevel(level)


@contextlib.contextmanager
def write_messages(path: str) -> Iterator[None]:
  """Append the messages of this project to a file, with all details.

  Leaves out messages of other trainings in this process.

  Args:
    path: File in a folder that exists.

  Yields:
    Nothing.
  """
  handler, own = TextHandler(path), training.current()
  handler.addFilter(lambda record: training.current() in (None, own))
  loggers = [logging.getLogger(x) for x in references.PROJECT]
  for logger in loggers:
    logger.addHandler(handler)
  try:
    yield
  finally:
    for logger in loggers:
      logger.removeHandler(handler)
