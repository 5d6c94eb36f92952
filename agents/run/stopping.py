"""Orderly end of long programs on Ctrl-C and SIGTERM.

Python runs signal handlers only between two bytecodes of the main thread,
which may be inside of one graph execution for minutes. The signal number is
therefore written to a socket at once, where a thread waits for it.
"""

import contextlib
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator

_requested = threading.Event()


class StopRequested(Exception):
  """Raised from within environments to leave a long graph execution."""


def requested() -> bool:
  """Whether the user has asked the program to stop."""
  return _requested.is_set()


def check() -> None:
  """Raise StopRequested if the user has asked the program to stop."""
  if requested():
    raise StopRequested('The user asked to stop.')


@contextlib.contextmanager
def as_if_asked() -> Iterator[None]:
  """Report a request to stop, as after a signal, as long as this lasts."""
  _requested.set()
  try:
    yield
  finally:
    _requested.clear()


@contextlib.contextmanager
def on_close(function: Callable[[], object]) -> Iterator[None]:
  """Call a function if the generator that this is used in is closed.

  Who iterates over a run may leave it early; its work is saved then.

  Args:
    function: Function without arguments.

  Yields:
    Nothing.
  """
  try:
    yield
  except GeneratorExit:
    function()
    raise


@contextlib.contextmanager
def handle_signals(
  message: str = (
    'Stopping after this step; press Ctrl-C again to exit at once.'
  ),
  also: Iterable[int] = (),
) -> Iterator[None]:
  """Turn SIGINT and SIGTERM into a request that `requested` reports.

  A second one ends the program at once, with exit code 130 or 143; a SIGTERM
  counts only a second later, as launchers may send it twice. Only the main
  thread can install signal handlers; elsewhere this does nothing.

  Args:
    message: Line for the user after the first signal.
    also: Numbers of further signals that are requests to stop.

  Yields:
    Nothing.
  """
  if threading.current_thread() is not threading.main_thread():
    yield
    return
  _requested.clear()
  receiver, sender = socket.socketpair()
  sender.setblocking(False)
  numbers = (signal.SIGINT, signal.SIGTERM, *also)
  previous = {x: signal.signal(x, lambda *unused: None) for x in numbers}
  previous_fd = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
  watcher = threading.Thread(
    target=_watch, args=(receiver, numbers, message), daemon=True
  )
  watcher.start()
  try:
    yield
  finally:
    signal.set_wakeup_fd(previous_fd)
    for number, handler in previous.items():
      signal.signal(number, handler)
    sender.close()
    watcher.join(1)
    receiver.close()


def _watch(receiver, numbers, message):
  began = time.monotonic()
  while data := receiver.recv(1):
    number = data[0]
    if number not in numbers:
      continue
    late = number == signal.SIGTERM and time.monotonic() - began > 1
    if requested() and (number == signal.SIGINT or late):
      os._exit(128 + number)
    if not requested():
      began = time.monotonic()
      _requested.set()
      print(f'\n{message}', file=sys.stderr, flush=True)
