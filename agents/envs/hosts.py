"""Processes and threads that host environments, free of TensorFlow.

Software OpenGL and TensorFlow crash in one process, so environments that
render live in processes started from scratch. Such a process holds one or
more environments, serves requests over a pipe, and ends with its parent,
however that ends.

Messages are pairs of a type and a payload:

  ACCESS     (index, name)                 -> RESULT value
  CALL       (index, name, args, kwargs)   -> RESULT value
  STEP       actions of all environments   -> RESULT stacked transitions
  ATTACH     (description, first row)      -> RESULT None
  RUN        rows to reset, or None to step -> RESULT None, data is shared
  CLOSE      None, ends the host
  EXCEPTION  (kind, text), from the host; it ends unless an attribute was
             missing
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

from agents.run import errors

ACCESS, CALL, RESULT, EXCEPTION, CLOSE = 1, 2, 3, 4, 5
STEP, ATTACH, RUN = 6, 7, 8
_START_METHOD = 'spawn'
_PATIENCE = 3.0


class WorkerError(Exception):
  """An environment failed in its host; the text is its traceback."""


class EnvHost:
  """Environments in a thread or in a process of their own.

  Failures of the environments surface at the next promise that is collected.
  After a failure the host is gone, and every use says so.

  Args:
    constructors: Functions without arguments, each returning an environment.
      For processes they have to be picklable by cloudpickle.
    strategy: Either `thread` or `process`.

  Raises:
    NotImplementedError: For any other strategy.
  """

  def __init__(self, constructors, strategy):
    if strategy not in ('thread', 'process'):
      raise NotImplementedError(
        f"Unknown strategy {strategy!r}; use 'thread' or 'process'."
      )
    self._lock = threading.Lock()
    self._sent = itertools.count()
    self._received = itertools.count()
    self._replies = {}
    self._failure = None
    self._process = None
    self._thread = None
    if strategy == 'process':
      self._conn, self._process = _start_process(constructors)
    else:
      self._conn, self._thread = _start_thread(constructors)
    _hosts.add(self)

  def access(self, index, name):
    """Promise of the value of an attribute of one environment."""
    return self._request(ACCESS, (index, name))

  def call(self, index, name, *args, **kwargs):
    """Promise of the result of a method of one environment."""
    return self._request(CALL, (index, name, args, kwargs))

  def step(self, actions):
    """Promise of stacked transitions of all environments of this host."""
    return self._request(STEP, actions)

  def attach(self, description, first_row):
    """Share arrays with the environments, see `agents.envs.shared_arrays`.

    Args:
      description: Description of the arrays.
      first_row: Row of the first environment of this host.
    """
    return self._request(ATTACH, (description, first_row))

  def step_shared(self):
    """Promise that the shared arrays hold the next transition."""
    return self._request(RUN, None)

  def reset_shared(self, indices):
    """Promise that the shared arrays hold first observations."""
    return self._request(RUN, indices)

  def close(self):
    """End the host; safe to call twice and after a failure."""
    close_hosts([self])

  def _request_close(self):
    with contextlib.suppress(OSError, ValueError):
      self._conn.send((CLOSE, None))
    with contextlib.suppress(OSError):
      self._conn.close()
    if not self._failure:
      self._failure = 'The environment was closed.'

  def _join(self, seconds):
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
      kind, text = payload
      if kind == 'attribute':
        raise AttributeError(text)
      self._failure = f'Environment worker crashed earlier: {text}'
      if kind == 'usage':
        raise errors.UsageError(text)
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


def close_hosts(hosts):
  """End several hosts at once; those that are busy are given some seconds."""
  deadline = time.time() + _PATIENCE
  for host in hosts:
    host._request_close()
  for host in hosts:
    host._join(max(0, deadline - time.time()))


_hosts = weakref.WeakSet()
atexit.register(lambda: close_hosts(list(_hosts)))


def _start_thread(constructors):
  ours, theirs = multiprocessing.Pipe()
  thread = threading.Thread(
    target=_serve, args=(theirs, lambda: constructors), daemon=True
  )
  thread.start()
  return ours, thread


def _start_process(constructors):
  import cloudpickle

  context = multiprocessing.get_context(_START_METHOD)
  ours, theirs = context.Pipe()
  process = context.Process(
    target=_process_main,
    daemon=True,
    args=(theirs, cloudpickle.dumps(list(constructors)), dict(os.environ)),
  )
  with _without_main_module():
    process.start()
  theirs.close()
  return ours, process


@contextlib.contextmanager
def _without_main_module():
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


def _process_main(conn, payload, environ):
  # Signals to the group of the program, as from Ctrl-C, are for the parent;
  # it ends the environments when it has saved its state.
  with contextlib.suppress(OSError):
    os.setpgrp()
  signal.signal(signal.SIGINT, signal.SIG_IGN)
  os.environ.update(environ)
  threading.Thread(target=_end_with_parent, daemon=True).start()

  def unpack():
    import cloudpickle

    return cloudpickle.loads(payload)

  _serve(conn, unpack)


def _end_with_parent():
  """Wait for the death of the parent, which closes a pipe, then exit."""
  sentinel = multiprocessing.parent_process().sentinel
  multiprocessing.connection.wait([sentinel])
  # Give the pipe of requests a moment to end the loop in order.
  time.sleep(1)
  os._exit(1)


def _serve(conn, unpack):
  """Build the environments and answer requests until told to close."""
  envs = _Environments()
  try:
    for constructor in unpack():
      envs.append(constructor())
    while True:
      kind, payload = conn.recv()
      if kind == CLOSE:
        break
      try:
        result = _answer(envs, kind, payload)
      except _MissingAttribute as error:
        conn.send((EXCEPTION, ('attribute', str(error))))
      else:
        conn.send((RESULT, result))
  except (EOFError, KeyboardInterrupt, ConnectionError):
    pass
  except errors.UsageError as error:
    with contextlib.suppress(OSError):
      conn.send((EXCEPTION, ('usage', str(error))))
  except Exception:
    with contextlib.suppress(OSError):
      conn.send((EXCEPTION, ('error', traceback.format_exc())))
  finally:
    for env in envs:
      with contextlib.suppress(Exception):
        getattr(env, 'close', lambda: None)()
    if envs.arrays:
      envs.arrays.close()
    conn.close()


class _Environments(list):
  """Environments of a host, and the arrays that they share with others."""

  arrays = None
  first_row = 0

  def attach(self, description, first_row):
    from agents.envs import shared_arrays

    self.arrays = shared_arrays.Arrays.attach(description)
    self.first_row = first_row

  def run(self, indices):
    """Reset some environments, or step all if there are no indices."""
    arrays, first = self.arrays, self.first_row
    if indices is not None:
      for index in indices:
        arrays.observ[first + index] = self[index].reset()
      return
    # The environment may keep the action; the row is used again.
    for row, env in enumerate(self, first):
      arrays.observ[row], arrays.reward[row], arrays.done[row], _ = env.step(
        arrays.action[row].copy()
      )


class _MissingAttribute(AttributeError):
  pass


def _answer(envs, kind, payload):
  if kind == STEP:
    from agents.tools import batch_env

    transitions = [env.step(action) for env, action in zip(envs, payload)]
    return batch_env.stack_transitions(transitions)
  if kind == ACCESS:
    index, name = payload
    if not hasattr(envs[index], name):
      raise _MissingAttribute(
        f'{type(envs[index]).__name__!r} object has no attribute {name!r}'
      )
    return getattr(envs[index], name)
  if kind == CALL:
    index, name, args, kwargs = payload
    return getattr(envs[index], name)(*args, **kwargs)
  if kind == ATTACH:
    return envs.attach(*payload)
  if kind == RUN:
    return envs.run(payload)
  raise KeyError(f'Received message of unknown type {kind}.')
