"""Orderly end of long programs, as on Ctrl-C, SIGTERM or a closed terminal.

Python runs signal handlers only between bytecodes of the main thread, which
may spend minutes in one graph execution. The signal number is therefore
written immediately to a socket that another thread reads.
"""

import contextlib
import ctypes
import math
import os
import select
import signal
import socket
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from agents.run import mpi

# Signals that request a stop. Of these, mpirun passes on only the last two.
# SIGXCPU says that the soft limit of processor time is over, SIGUSR2 in batch
# systems that the time of the job soon will be.
SIGNALS = (
  *(signal.SIGINT, signal.SIGTERM, signal.SIGHUP),
  *(signal.SIGXCPU, signal.SIGUSR2, signal.SIGUSR1),
)

_PR_SET_PDEATHSIG = 1  # of Linux
_requested = threading.Event()
# Sockets that signals are written to.
_senders: weakref.WeakSet[socket.socket] = weakref.WeakSet()
# Seconds after a signal in which the same one does not count: launchers send it
# twice at once. Shorter for Ctrl-C, which users press again.
_TWICE: dict[int, float] = {signal.SIGTERM: 1.0, signal.SIGINT: 0.3}
# Seconds after a signal in which it may also end a reader of the output.
_READERS_END = 1.0
# What takes its place: the terminal, or nothing if that is closed, too.
_READABLE = '/dev/tty', os.devnull
# Advice of programs that do not continue what they have begun.
START_OVER = 'Repeat the command to start over.'


class StopRequested(Exception):
  """Raised to end a program early but in order.

  Environments raise it to leave a long execution of the graph.

  Attributes:
    advice: Sentence for the user.
  """

  advice = 'Repeat the command to continue.'


def requested() -> bool:
  """Return whether the user has asked the program to stop."""
  return _requested.is_set()


def check(advice: str = StopRequested.advice) -> None:
  """Raise StopRequested if the user has asked the program to stop.

  Args:
    advice: Sentence for the user; `START_OVER` for programs that only play.
  """
  if requested():
    stop = StopRequested('The user asked to stop.')
    stop.advice = advice
    raise stop


def sleep(seconds: float) -> None:
  """Sleep; wake up early if the user asks the program to stop."""
  _requested.wait(seconds)


@contextlib.contextmanager
def as_if_asked() -> Iterator[None]:
  """Make `requested` return True inside this context, as after a signal."""
  _requested.set()
  try:
    yield
  finally:
    _requested.clear()


@contextlib.contextmanager
def on_close(function: Callable[[], object]) -> Iterator[None]:
  """Call a function if the generator that uses this context is closed.

  This saves the work of a run when a caller stops iterating early.

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
  what: str = 'Stopping after this step',
) -> Iterator[None]:
  """Turn each of `SIGNALS` into a request that `requested` reports.

  A second signal ends the program immediately, with exit code 130 or 143. But
  within one second of the first, SIGTERM is ignored, and SIGINT within 0.3,
  because launchers and `timeout` send them twice; further ones of the others
  are always ignored. SIGHUP stays ignored under nohup. What is printed goes to
  the terminal if its reader has ended, as `tee` does after Ctrl-C. Does nothing
  outside the main thread, which alone can install handlers. Processes that
  environments fork end with SIGTERM.

  Args:
    what: What the program does after a signal, and when. The first of several
      processes prints it; a launcher also sends a signal to the others when one
      of them has failed.

  Yields:
    Nothing.
  """
  if threading.current_thread() is not threading.main_thread():
    yield
    return
  _requested.clear()
  receiver, sender = socket.socketpair()
  sender.setblocking(False)
  _senders.add(sender)
  numbers = list(SIGNALS)
  if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    numbers.remove(signal.SIGHUP)
  previous = {x: signal.signal(x, ignore) for x in numbers}
  previous_fd = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
  watcher = threading.Thread(
    target=_watch, args=(receiver, numbers, what), daemon=True
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


def counts_again(number: int, began: float) -> bool:
  """Return whether a signal after the first one is not just its repetition.

  Args:
    number: Number of the signal.
    began: Time of the first one, as of `time.monotonic`.
  """
  return time.monotonic() - began > _TWICE.get(number, math.inf)


def follow_parent(number: int) -> None:
  """Let Linux send a signal to this process when its parent has ended.

  Args:
    number: Number of the signal.
  """
  ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)


def ignore(*unused: Any) -> None:
  """Signal handler that does nothing, and that new programs do not inherit."""


def _leave_to_parent():
  """Let a process that an environment forks keep its signals for itself."""
  if _senders:
    signal.set_wakeup_fd(-1)
  for sender in _senders:
    sender.close()
  if signal.getsignal(signal.SIGTERM) is ignore:
    # Not ignored, or the parent would wait forever.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


os.register_at_fork(after_in_child=_leave_to_parent)


def _watch(receiver, numbers, what):
  began = time.monotonic()
  while data := receiver.recv(1):
    number = data[0]
    if number not in numbers:
      continue
    if requested() and counts_again(number, began):
      os._exit(128 + number)
    if not requested():
      began = time.monotonic()
      _requested.set()
      replace_unread_output(*_READABLE)
      if mpi.is_first():
        with contextlib.suppress(OSError):
          line = f'\n{what}; press Ctrl-C again to exit at once.'
          print(line, file=sys.stderr, flush=True)
      threading.Thread(target=_outlive_readers, daemon=True).start()


def _outlive_readers():
  end = time.monotonic() + _READERS_END
  while time.monotonic() < end:
    replace_unread_output(*_READABLE)
    time.sleep(0.01)


def replace_unread_output(*places: str) -> bool:
  """Let standard streams whose reader has gone write elsewhere.

  Args:
    *places: Files, of which the first that can be opened takes their place.

  Returns:
    Whether there were any.
  """
  poll = select.poll()
  for stream in (1, 2):
    poll.register(stream, 0)
  bad = select.POLLERR | select.POLLHUP | select.POLLNVAL
  gone = [stream for stream, event in poll.poll(0) if event & bad]
  if gone:
    with contextlib.ExitStack() as stack:
      for path in places:
        with contextlib.suppress(OSError):
          place = os.open(path, os.O_WRONLY | os.O_NOCTTY)
          stack.callback(os.close, place)
          break
      for stream in gone:
        os.dup2(place, stream)
  return bool(gone)
