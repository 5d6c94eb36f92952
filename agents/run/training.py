"""Training as an iterator that can be left, interrupted and continued.

Each training runs in its own thread, because TensorFlow keeps the default
graph and session per thread. Only one thread works at a time: the caller waits
for the next record.
"""

import atexit
import concurrent.futures
import contextlib
import logging
import os
import queue
import sys
import threading
import weakref
from collections.abc import Callable, Generator, Iterator
from typing import Any

from agents.run import random_state, stopping

# What a training tells after an epoch, by name.
Record = dict[str, Any]

_own = threading.local()
# Stays open: a training keeps the streams that it finds.
_nowhere = open(os.devnull, 'w')
# Number of trainings that are silent now, and how to undo their changes.
_silent, _undo, _changing = 0, contextlib.ExitStack(), threading.Lock()
# Path of a lock to the training of this process that holds it.
_holders: dict[str, '_Worker'] = {}


class Training(Iterator[Record]):
  """Training that advances while the caller iterates over it.

  It is saved when it is closed, for example at the end of a `with` block, when
  no reference to it is left, when the program ends, and when it is interrupted.
  The same call then continues it. It has its own Python and NumPy random state.

  Args:
    start: Function that returns a generator of records and of messages for the
      user. Closing the generator saves the training.
    verbose: Whether to print messages.
  """

  def __init__(
    self,
    start: Callable[[], Generator[Record | str, None, None]],
    verbose: bool = False,
  ):
    self._worker = _Worker(start, verbose)
    self._end = weakref.finalize(self, self._worker.end)
    # Before multiprocessing ends the processes of the environments.
    self._end.atexit = False
    atexit.register(self._end)

  def __enter__(self) -> 'Training':
    return self

  def __exit__(self, *unused: Any) -> None:
    self.close()

  def __next__(self) -> Record:
    """Train for an epoch.

    Raises:
      StopIteration: If the training is finished or closed.
      KeyboardInterrupt: After the training was saved.
    """
    reply = self._worker.ask('next')
    try:
      result = reply.result()
    except KeyboardInterrupt:
      # Also after a second one, which does not wait.
      asked = contextlib.ExitStack()
      asked.enter_context(stopping.as_if_asked())
      reply.add_done_callback(lambda unused: asked.close())
      concurrent.futures.wait([reply])
      self.close()
      if not isinstance(reply.exception(), stopping.StopRequested | None):
        reply.result()
      raise
    if isinstance(result, str):
      print(result, file=sys.stderr)
      return next(self)
    if result is None:
      self.close()
      raise StopIteration
    return result

  def close(self) -> None:
    """Save the training and free its resources; may be called again."""
    self._end()
    atexit.unregister(self._end)


def current() -> Any:
  """Return the training that this thread runs, None if it runs none."""
  return getattr(_own, 'worker', None)


@contextlib.contextmanager
def as_part_of(training: Any) -> Iterator[None]:
  """Let this thread belong to a training, for threads that work for it.

  Args:
    training: Result of `current` in the thread of the training.

  Yields:
    Nothing.
  """
  before = current()
  _own.worker = training
  try:
    yield
  finally:
    _own.worker = before


def hold(lock: str) -> None:
  """Record that the training of this thread, if any, holds a lock."""
  if worker := current():
    _holders[os.path.realpath(lock)] = worker


def take_over(lock: str) -> bool:
  """Save and close the training of this process that holds a lock, if any."""
  worker = _holders.pop(os.path.realpath(lock), None)
  if not worker or not worker.is_alive():
    return False
  worker.end()
  return True


class _Worker(threading.Thread):
  """Thread that runs a training on request."""

  def __init__(self, start, verbose):
    super().__init__(daemon=True)
    self._generator = start()
    self.verbose = verbose
    self._requests: queue.SimpleQueue = queue.SimpleQueue()
    self._lock = threading.Lock()
    self._ended = False

  def ask(self, method):
    """Return the future of a result: `next`, or `close`, which is the last."""
    reply: concurrent.futures.Future = concurrent.futures.Future()
    with self._lock:
      if self._ended:
        reply.set_result(None)
        return reply
      if not self.ident:
        self.start()
      self._requests.put((method, reply))
    return reply

  def end(self):
    """Save and end; nobody waits who is called by the training itself."""
    if not self.ident:
      self._ended = True
    elif (reply := self.ask('close')) and threading.current_thread() != self:
      reply.result()

  def run(self):
    _own.worker = self
    random = random_state.Separate()
    while not self._ended:
      method, reply = self._requests.get()
      result, error = None, None
      try:
        with random, contextlib.nullcontext() if self.verbose else _silence():
          if method == 'next':
            result = next(self._generator, None)
          else:
            self._generator.close()
      except BaseException as problem:  # Whoever has asked gets it.
        error = problem
      with self._lock:
        self._ended = result is None
      if error:
        reply.set_exception(error)
      else:
        reply.set_result(result)
    while not self._requests.empty():
      self._requests.get()[1].set_result(None)


class _Silenced:
  """Stream that drops what the threads of silent trainings write.

  Whoever keeps it can go on using it after the trainings.

  Args:
    stream: Stream of all other threads.
  """

  def __init__(self, stream):
    self._stream = stream

  def __getattr__(self, name):
    worker = current()
    silent = worker is not None and not worker.verbose
    return getattr(_nowhere if silent else self._stream, name)


@contextlib.contextmanager
def _silence():
  """Say nothing but logged warnings in threads of silent trainings."""
  global _silent
  with _changing:
    if not _silent:
      # Whoever has set up no logging gets them on the error stream.
      handler = logging.StreamHandler(sys.stderr)
      handler.setLevel(logging.WARNING)
      _replace(logging, 'lastResort', handler)
    for name in ('stdout', 'stderr'):
      # The user may have replaced it since.
      if not isinstance(getattr(sys, name), _Silenced):
        _replace(sys, name, _Silenced(getattr(sys, name)))
    _silent += 1
  try:
    yield
  finally:
    with _changing:
      _silent -= 1
      if not _silent:
        _undo.close()


def _replace(place, name, value):
  """Replace an attribute until no training is silent.

  It then gets its old value, unless the user has replaced it meanwhile.
  """
  before = getattr(place, name)
  setattr(place, name, value)

  def undo():
    if getattr(place, name) is value:
      setattr(place, name, before)

  _undo.callback(undo)
