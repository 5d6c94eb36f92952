"""Processes and threads that host environments, without TensorFlow.

Software OpenGL and TensorFlow crash in the same process, so environments that
render run in newly started processes. Such a process holds one object, an
environment or a group of them, serves requests over a pipe, and ends when its
parent ends, even if that is killed.

A request is a tuple of index, name, args and kwargs. The index selects an
environment of a group, or is None for the object itself; without args the
request reads an attribute instead of calling a method. None ends the host. An
answer is a pair of an error, or None, and a value. Hosts end after an error,
unless it is a missing attribute.

Closing may take a few seconds. An object that needs longer has an attribute
`seconds_to_close`, the number of seconds to add.
"""

import atexit
import contextlib
import functools
import itertools
import multiprocessing
import multiprocessing.connection
import numbers
import os
import signal
import sys
import threading
import time
import traceback
import types
import weakref
from collections.abc import Callable, Iterable, Iterator
from multiprocessing import resource_tracker
from typing import Any

from agents.envs import guard, interfaces, registry
from agents.run import errors, stopping

_START_METHOD = 'spawn'
_CLOSE_TIMEOUT = 3.0


class WorkerError(Exception):
  """An environment failed in its host; the message is its traceback."""


class EnvHost:
  """An environment, or a group of them, in its own thread or process.

  Failures of the environments are raised when the next promise is collected.
  Afterwards the host is closed, and every use raises an error that says so.

  Args:
    constructor: Function without arguments that returns the object to host.
      For processes, cloudpickle must be able to pickle it.
    strategy: Either `thread` or `process`.

  Raises:
    NotImplementedError: For any other strategy.
  """

  def __init__(self, constructor: Callable[[], Any], strategy: str):
    start = {'thread': _start_thread, 'process': _start_process}.get(strategy)
    if not start:
      raise NotImplementedError(
        f"Unknown strategy {strategy!r}; use 'thread' or 'process'."
      )
    self._lock = threading.Lock()
    self._sent = itertools.count()
    self._received = itertools.count()
    self._replies: dict[int, tuple[Exception | None, Any]] = {}
    self._failure = ''
    # Shared, as it must be known while the host does not answer.
    self._close_timeout: Any = multiprocessing.RawValue('d', 0.0)
    self._conn, self._worker = start(constructor, self._close_timeout)
    self._is_thread = strategy == 'thread'
    _hosts.add(self)

  @property
  def pid(self) -> int:
    """Id of the process that runs the object."""
    return os.getpid() if self._is_thread else self._worker.pid

  @property
  def has_failed(self) -> bool:
    """Whether the object is lost because of an earlier error."""
    return bool(self._failure)

  def access(self, index: int | None, name: str) -> Callable[[], Any]:
    """Return a promise of the value of an attribute."""
    return self._request(index, name, None, None)

  def call(
    self, index: int | None, name: str, *args: Any, **kwargs: Any
  ) -> Callable[[], Any]:
    """Return a promise of the result of a method."""
    return self._request(index, name, args, kwargs)

  def close(self) -> None:
    """End the host; safe to call twice and after a failure."""
    close_hosts([self])

  def _request_close(self):
    with contextlib.suppress(OSError, ValueError):
      self._conn.send(None)
    with contextlib.suppress(OSError):
      self._conn.close()
    if not self._failure:
      self._failure = 'The environment was closed.'

  def _join(self, deadline):
    seconds = max(0, deadline + self._close_timeout.value - time.monotonic())
    if self._worker is not threading.current_thread():
      self._worker.join(seconds)
    if not self._is_thread and self._worker.is_alive():
      self._worker.kill()
      self._worker.join()

  def _request(self, *request):
    with self._lock:
      self._check()
      # If the host is gone, an explanation may wait in the pipe; `_receive`
      # reads it. A request that cannot be pickled has no reply.
      with contextlib.suppress(OSError):
        self._conn.send(request)
      number = next(self._sent)
    return lambda: self._receive(number)

  def _receive(self, number):
    with self._lock:
      while number not in self._replies:
        self._check()
        self._replies[next(self._received)] = self._read()
      error, value = self._replies.pop(number)
      if error is None:
        return value
      if not isinstance(error, AttributeError):
        self._failure = f'Environment worker crashed earlier: {error}'
      raise error

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
    if self._is_thread:
      return 'The thread of the environment ended.'
    self._worker.join(1)
    code = self._worker.exitcode
    name = ''
    if code is not None and code < 0:
      with contextlib.suppress(ValueError):
        name = f' ({signal.Signals(-code).name})'
    return (
      f'Environment worker crashed: process {self.pid} ended with exit code '
      f'{code}{name}.'
    )


class RemoteEnv:
  """Local proxy for one of the environments of a host.

  Args:
    host: `EnvHost` that runs the environment.
    index: Index of the environment in the group of the host, or None if the
      host has a single environment.
  """

  def __init__(self, host: EnvHost, index: int | None = None):
    self._host = host
    self._index = index

  @functools.cached_property
  def observation_space(self) -> Any:
    return self._host.access(self._index, 'observation_space')()

  @functools.cached_property
  def action_space(self) -> Any:
    return self._host.access(self._index, 'action_space')()

  def __getattr__(self, name: str) -> Any:
    if name.startswith('_'):
      raise AttributeError(name)
    return self._host.access(self._index, name)()

  def call(self, name: str, *args: Any, **kwargs: Any) -> Callable[[], Any]:
    """Call a method; return a function that waits for its result."""
    return self._host.call(self._index, name, *args, **kwargs)

  def step(self, action: Any, blocking: bool = True) -> Any:
    """Return the transition, or its promise when not blocking."""
    promise = self.call('step', action)
    return promise() if blocking else promise

  def reset(self, blocking: bool = True) -> Any:
    """Return the observation, or its promise when not blocking."""
    promise = self.call('reset')
    return promise() if blocking else promise

  def render(self, *args: Any, **kwargs: Any) -> Any:
    return self.call('render', *args, **kwargs)()

  def seed(self, seed: int) -> Any:
    return self.call('seed', seed)()

  def close(self) -> None:
    """Close the host with all its environments; may be called twice."""
    self._host.close()


def close_hosts(hosts: Iterable[EnvHost]) -> None:
  """Close several hosts at once; gives busy ones a few seconds."""
  hosts = list(hosts)
  deadline = time.monotonic() + _CLOSE_TIMEOUT
  for host in hosts:
    host._request_close()
  for host in hosts:
    host._join(deadline)


_hosts: weakref.WeakSet[EnvHost] = weakref.WeakSet()
atexit.register(lambda: close_hosts(_hosts))


def _start_thread(constructor, close_timeout):
  ours, theirs = multiprocessing.Pipe()
  thread = threading.Thread(
    target=_serve,
    args=(theirs, lambda: constructor, close_timeout),
    daemon=True,
  )
  thread.start()
  return ours, thread


def why_not_sent(constructor: Callable[[], Any]) -> str | None:
  """Return why a constructor cannot go to another process, None if it can."""
  import cloudpickle

  try:
    cloudpickle.dumps(constructor)
  except Exception as error:  # Whatever the objects that it holds raise.
    return f'{type(error).__name__}: {error}'
  return None


def _start_process(constructor, close_timeout):
  import cloudpickle

  interfaces.mend_gym()
  create = functools.partial(_create, registry.pack(), constructor)
  try:
    payload = cloudpickle.dumps(create)
  except Exception as error:  # Whatever the objects that it holds raise.
    raise errors.UsageError(
      'The environment cannot be sent to another process, '
      f'{type(error).__name__}: {error}; create what it needs inside of the '
      'function that returns it, or step it in this process.'
    ) from None
  context: Any = multiprocessing.get_context(_START_METHOD)
  ours, theirs = context.Pipe()
  # No daemon, as these may not have hosts of their own.
  process = context.Process(
    target=_process_main,
    args=(
      theirs,
      payload,
      close_timeout,
      # Linux means the thread that started the process.
      sys.platform == 'linux'
      and threading.current_thread() is threading.main_thread(),
    ),
  )
  with _without_main_module(), _signals_blocked():
    process.start()
  theirs.close()
  return ours, process


@contextlib.contextmanager
def _without_main_module() -> Iterator[None]:
  """Keep new processes from importing the main program again.

  Most main programs import TensorFlow. Objects of theirs that a constructor
  uses are pickled by value.
  """
  main = sys.modules['__main__']
  sys.modules['__main__'] = types.ModuleType('__main__')
  try:
    yield
  finally:
    sys.modules['__main__'] = main


@contextlib.contextmanager
def _signals_blocked() -> Iterator[None]:
  """Keep signals from new processes until they have set their handlers."""
  # The start of the tracker would unblock signals.
  start_tracker()
  before = signal.pthread_sigmask(signal.SIG_BLOCK, stopping.SIGNALS)
  try:
    yield
  finally:
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def start_tracker() -> None:
  """Start the process of Python that removes shared memory in the end.

  It belongs to the group of the program, and what asks the program to stop must
  not end it before the program. After a program that was killed, it does its
  work without the warning.
  """
  before = signal.pthread_sigmask(signal.SIG_BLOCK, stopping.SIGNALS)
  # New processes of Python inherit these.
  sys.warnoptions.append('ignore:resource_tracker:UserWarning')
  try:
    resource_tracker.ensure_running()
  finally:
    sys.warnoptions.pop()
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _process_main(conn, payload, close_timeout, dies_with_parent):
  # Signals to the group of the program, as from Ctrl-C, and to all processes,
  # as from systemd, are for the parent; it ends the environments when it has
  # saved its state. Programs that an environment starts inherit no handler.
  with contextlib.suppress(OSError):
    os.setpgrp()
  for number in stopping.SIGNALS:
    signal.signal(number, stopping.ignore)
  signal.signal(signal.SIGINT, signal.SIG_IGN)
  # A group in the background that uses the terminal would be stopped, and the
  # program would wait for ever: after `stty tostop`, already when it prints.
  for number in (signal.SIGTTOU, signal.SIGTTIN):
    signal.signal(number, signal.SIG_IGN)
  signal.pthread_sigmask(signal.SIG_UNBLOCK, stopping.SIGNALS)
  args = (close_timeout,)
  threading.Thread(target=_end_with_parent, args=args, daemon=True).start()
  import cloudpickle

  unpack = functools.partial(cloudpickle.loads, payload)
  _serve(conn, unpack, close_timeout, dies_with_parent)
  # Handlers of `atexit` are not called in such processes.
  close_hosts(_hosts)


def _create(packed, constructor):
  """Create the object, with what the program has registered."""
  registry.unpack(packed)
  return constructor()


def _end_with_parent(close_timeout):
  """Wait for the death of the parent, which closes a pipe, then exit."""
  parent = multiprocessing.parent_process()
  assert parent, 'this is a worker'
  multiprocessing.connection.wait([parent.sentinel])
  # Give the pipe of requests a moment to end the loop in order.
  time.sleep(1 + close_timeout.value)
  os._exit(1)


def find_seconds_to_close(served: Any) -> float:
  """Return the additional time that closing an object may take."""
  kind = numbers.Real
  return float(guard.find_declared(served, 'seconds_to_close', kind, 0.0))


def _serve(conn, unpack, close_timeout, dies_with_parent=False):
  """Build the object and answer requests until told to close."""
  served = None
  try:
    served = unpack()()
    close_timeout.value = find_seconds_to_close(served)
    if dies_with_parent and not close_timeout.value:
      # This also ends a step that never returns to Python.
      stopping.follow_parent(signal.SIGKILL)
    for request in iter(conn.recv, None):
      conn.send(_answer(served, *request))
  except (EOFError, KeyboardInterrupt, ConnectionError):
    pass
  except (Exception, SystemExit) as error:
    with contextlib.suppress(OSError):
      conn.send((_explained(error), None))
  finally:
    with contextlib.suppress(Exception, SystemExit):
      getattr(served, 'close', lambda: None)()
    conn.close()


def _explained(error):
  """Return the error being handled if programs explain it, or a traceback."""
  if isinstance(error, errors.UsageError | errors.Failure):
    return error
  is_builtin = type(error).__module__ == 'builtins'
  # Errors of libraries may not be picklable.
  if is_builtin and getattr(error, 'errno', None) in errors.SYSTEM:
    return error
  return WorkerError(traceback.format_exc())


def _answer(served, index, name, args, kwargs):
  target = served if index is None else served[index]
  if args is not None:
    return None, getattr(target, name)(*args, **kwargs)
  if hasattr(target, name):
    return None, getattr(target, name)
  what = f'{type(target).__name__!r} object has no attribute {name!r}'
  return AttributeError(what), None
