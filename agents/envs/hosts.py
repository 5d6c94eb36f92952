"""Processes and threads that host environments, free of TensorFlow.

Software OpenGL and TensorFlow crash in one process, so environments that
render live in processes started from scratch. Such a process holds one object,
an environment or a group of them, serves requests over a pipe, and ends with
its parent, however that ends.

Messages are pairs of a type and a payload. An index names one environment of a
group, None the object itself:

  ACCESS     (index, name)                 -> RESULT value
  CALL       (index, name, args, kwargs)   -> RESULT value
  CLOSE      None, ends the host
  EXCEPTION  (kind, text, traceback), from the host; it ends unless an
             attribute was missing

Closing may take some seconds. An object that needs more has an attribute
`seconds_to_close`, the number of seconds to add.
"""

import atexit
import contextlib
import itertools
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import threading
import time
import traceback
import types
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from agents.run import errors

ACCESS, CALL, RESULT, EXCEPTION, CLOSE = 1, 2, 3, 4, 5
_START_METHOD = 'spawn'
_CLOSE_TIMEOUT = 3.0


class WorkerError(Exception):
  """An environment failed in its host; the text is its traceback."""


class EnvHost:
  """An environment, or a group of them, in a thread or process of its own.

  Failures of the environments surface at the next promise that is collected.
  After a failure the host is gone, and every use says so.

  Args:
    constructor: Function without arguments that returns the object to host.
      For processes it has to be picklable by cloudpickle.
    strategy: Either `thread` or `process`.

  Raises:
    NotImplementedError: For any other strategy.
  """

  def __init__(self, constructor: Callable[[], Any], strategy: str):
    if strategy not in ('thread', 'process'):
      raise NotImplementedError(
        f"Unknown strategy {strategy!r}; use 'thread' or 'process'."
      )
    self._lock = threading.Lock()
    self._sent = itertools.count()
    self._received = itertools.count()
    self._replies: dict[int, tuple[int, Any]] = {}
    self._failure = ''
    # Shared, as it must be known while the host does not answer.
    self._more_seconds: Any = multiprocessing.RawValue('d', 0.0)
    self._process: Any = None
    self._thread: threading.Thread | None = None
    if strategy == 'process':
      self._conn, self._process = _start_process(
        constructor, self._more_seconds
      )
    else:
      self._conn, self._thread = _start_thread(constructor, self._more_seconds)
    _hosts.add(self)

  @property
  def pid(self) -> int:
    """Number of the process that the object lives in."""
    return self._process.pid if self._process else os.getpid()

  def access(self, index: int | None, name: str) -> Callable[[], Any]:
    """Return a promise of the value of an attribute."""
    return self._request(ACCESS, (index, name))

  def call(
    self, index: int | None, name: str, *args: Any, **kwargs: Any
  ) -> Callable[[], Any]:
    """Return a promise of the result of a method."""
    return self._request(CALL, (index, name, args, kwargs))

  def close(self) -> None:
    """End the host; safe to call twice and after a failure."""
    close_hosts([self])

  def _request_close(self):
    with contextlib.suppress(OSError, ValueError):
      self._conn.send((CLOSE, None))
    with contextlib.suppress(OSError):
      self._conn.close()
    if not self._failure:
      self._failure = 'The environment was closed.'

  def _join(self, deadline):
    seconds = max(0, deadline + self._more_seconds.value - time.time())
    if self._process and self._process.is_alive():
      self._process.join(seconds)
      if self._process.is_alive():
        self._process.kill()
        self._process.join()
    if self._thread and self._thread is not threading.current_thread():
      self._thread.join(seconds)

  def _request(self, kind, payload):
    with self._lock:
      self._check()
      number = next(self._sent)
      try:
        self._conn.send((kind, payload))
      except (OSError, ValueError):
        # An explanation may wait in the pipe; `_receive` reads it.
        pass
    return lambda: self._receive(number)

  def _receive(self, number):
    with self._lock:
      while number not in self._replies:
        self._check()
        self._replies[next(self._received)] = self._read()
      kind, payload = self._replies.pop(number)
      if kind == RESULT:
        return payload
      kind, text, details = payload
      if kind == 'attribute':
        raise AttributeError(text)
      self._failure = f'Environment worker crashed earlier: {text}'
      if kind == 'usage':
        raise errors.UsageError(text)
      if kind == 'environment':
        raise errors.EnvError(text, details)
      raise WorkerError(text)

  def _read(self):
    try:
      return self._conn.recv()
    except (EOFError, OSError):
      self._failure = self._describe_death()
      raise errors.WorkerDeath(self._failure) from None

  def _check(self):
    if self._failure:
      raise RuntimeError(self._failure)

  def _describe_death(self):
    if not self._process:
      return 'The thread of the environment ended.'
    self._process.join(1)
    code = self._process.exitcode
    name = ''
    if code is not None and code < 0:
      with contextlib.suppress(ValueError):
        name = f' ({signal.Signals(-code).name})'
    return (
      f'Environment worker crashed: process {self._process.pid} ended '
      f'with exit code {code}{name}.'
    )


def close_hosts(hosts: Iterable[EnvHost]) -> None:
  """End several hosts at once; those that are busy are given some seconds."""
  hosts = list(hosts)
  deadline = time.time() + _CLOSE_TIMEOUT
  for host in hosts:
    host._request_close()
  for host in hosts:
    host._join(deadline)


_hosts: weakref.WeakSet[EnvHost] = weakref.WeakSet()
atexit.register(lambda: close_hosts(_hosts))


def _start_thread(constructor, more_seconds):
  ours, theirs = multiprocessing.Pipe()
  thread = threading.Thread(
    target=_serve,
    args=(theirs, lambda: constructor, more_seconds),
    daemon=True,
  )
  thread.start()
  return ours, thread


def _start_process(constructor, more_seconds):
  import cloudpickle

  context: Any = multiprocessing.get_context(_START_METHOD)
  ours, theirs = context.Pipe()
  # No daemon, as these may not have hosts of their own.
  process = context.Process(
    target=_process_main,
    args=(
      theirs,
      cloudpickle.dumps(constructor),
      dict(os.environ),
      more_seconds,
    ),
  )
  with _without_main_module():
    process.start()
  theirs.close()
  return ours, process


@contextlib.contextmanager
def _without_main_module() -> Iterator[None]:
  """Keep new processes from importing the main program once more.

  Most main programs import TensorFlow. What a constructor needs of them is
  pickled by value.
  """
  main = sys.modules['__main__']
  sys.modules['__main__'] = types.ModuleType('__main__')
  try:
    yield
  finally:
    sys.modules['__main__'] = main


def _process_main(conn, payload, environ, more_seconds):
  # Signals to the group of the program, as from Ctrl-C, are for the parent;
  # it ends the environments when it has saved its state.
  with contextlib.suppress(OSError):
    os.setpgrp()
  signal.signal(signal.SIGINT, signal.SIG_IGN)
  os.environ.update(environ)
  threading.Thread(
    target=_end_with_parent, args=(more_seconds,), daemon=True
  ).start()

  def unpack():
    import cloudpickle

    return cloudpickle.loads(payload)

  _serve(conn, unpack, more_seconds)
  # Handlers of `atexit` are not called in such processes.
  close_hosts(_hosts)


def _end_with_parent(more_seconds):
  """Wait for the death of the parent, which closes a pipe, then exit."""
  parent = multiprocessing.parent_process()
  assert parent, 'this is a worker'
  multiprocessing.connection.wait([parent.sentinel])
  # Give the pipe of requests a moment to end the loop in order.
  time.sleep(1 + more_seconds.value)
  os._exit(1)


def _serve(conn, unpack, more_seconds):
  """Build the object and answer requests until told to close."""
  served = None
  try:
    served = unpack()()
    more_seconds.value = getattr(served, 'seconds_to_close', 0.0)
    while True:
      kind, payload = conn.recv()
      if kind == CLOSE:
        break
      try:
        result = _answer(served, kind, *payload)
      except _MissingAttribute as error:
        conn.send((EXCEPTION, ('attribute', str(error), '')))
      else:
        conn.send((RESULT, result))
  except (EOFError, KeyboardInterrupt, ConnectionError):
    pass
  except errors.UsageError as error:
    with contextlib.suppress(OSError):
      conn.send((EXCEPTION, ('usage', str(error), '')))
  except errors.EnvError as error:
    with contextlib.suppress(OSError):
      conn.send((EXCEPTION, ('environment', str(error), error.details)))
  except Exception:
    with contextlib.suppress(OSError):
      conn.send((EXCEPTION, ('error', traceback.format_exc(), '')))
  finally:
    with contextlib.suppress(Exception):
      getattr(served, 'close', lambda: None)()
    conn.close()


class _MissingAttribute(AttributeError):
  pass


def _answer(served, kind, index, name, args=(), kwargs=None):
  target = served if index is None else served[index]
  if kind == CALL:
    return getattr(target, name)(*args, **kwargs)
  if kind == ACCESS:
    if not hasattr(target, name):
      raise _MissingAttribute(
        f'{type(target).__name__!r} object has no attribute {name!r}'
      )
    return getattr(target, name)
  raise KeyError(f'Received message of unknown type {kind}.')
