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
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any

import pydantic

from agents.run import errors, mpi, random_state, stopping, streams

# What a line of `metrics.jsonl` has besides scalars.
RESERVED = 'phase', 'step', 'global_step', 'wall_time', 'env_steps'
# What a training tells after an epoch, by name.
Record = dict[str, Any]

_own = threading.local()
# Number of trainings that are silent now, and the handler of warnings before.
_silent, _changing = 0, threading.Lock()
_usual: list[logging.Handler | None] = []
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
    # `atexit` calls it before multiprocessing ends the environments.
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
      # `wait` may return before the callback is called.
      asked.close()
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

  def log(self, scalars: Mapping[str, float]) -> None:
    """Write scalars of your own beside those of the training.

    They go to TensorBoard, `metrics.jsonl` and Weights & Biases, at the
    environment steps of the newest record. Call it within the loop over the
    records. With MPI, all processes may call it; the first one writes.

    Args:
      scalars: Dict from name, such as `my_test/return`, to number. NaN and
        infinity are left out.

    Raises:
      UsageError: If a name is not a string, a value is not a number, there is
        no record yet, or the training has ended or has no log directory.
    """
    for name, value in scalars.items():
      reason = _find_mistake(name, value)
      if reason:
        raise errors.UsageError(f'Cannot log {name!r}: {value!r}; {reason}.')
    self._worker.log({name: float(x) for name, x in scalars.items()})

  def save(self) -> None:
    """Write a checkpoint now, within the loop over the records.

    `load` of PPO and PlaNet then returns the agent of the newest record. With
    MPI, all processes have to call it.

    Raises:
      UsageError: If there is no record yet, or the training has ended.
    """
    self._worker.check('save')
    self._worker.ask('save').result()

  def close(self) -> None:
    """Save the training and free its resources; may be called again."""
    self._end()
    atexit.unregister(self._end)


def check_arguments(params: Any, config: Any = '') -> None:
  """Check the arguments of `train` whose kind is often mistaken.

  Args:
    params: Dict of settings, or their object; None for none.
    config: Name of a configuration.

  Raises:
    UsageError: If they are something else.
  """
  if not isinstance(params, Mapping | pydantic.BaseModel | None):
    raise errors.UsageError(
      f"Argument 'params' is {params!r:.80}; give a dict from name to value."
    )
  if not isinstance(config, str):
    raise errors.UsageError(
      f"Argument 'config' is {config!r:.80}; give the name of a configuration, "
      "or that of a function of your own, 'module:function'."
    )


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
  silent = training is not None and not training.verbose
  try:
    with streams.silent(silent or streams.is_silent()):
      yield
  finally:
    _own.worker = before


def receive(write: Callable[[dict[str, float]], None] | None) -> None:
  """Set what gets the scalars that the user logs, in the training's thread.

  Args:
    write: Function that writes a dict from name to number, None for nothing.
  """
  if worker := current():
    worker.write = write


@contextlib.contextmanager
def saving(save: Callable[[], object]) -> Iterator[None]:
  """Let `Training.save` of this thread, if it is a training, call a function.

  Args:
    save: Function without arguments that saves the training.

  Yields:
    Nothing.
  """
  worker = current()
  if worker:
    worker.save = save
  try:
    yield
  finally:
    if worker:
      worker.save = None


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


def _find_mistake(name, value):
  """Return why a scalar cannot be written, '' if it can."""
  if not isinstance(name, str) or not name.strip():
    return 'a name is text'
  if name in RESERVED:
    return f'{name} is set by the training, choose another name'
  try:
    float(value)
  except (TypeError, ValueError):
    return 'give a number'
  return ''


class _Worker(threading.Thread):
  """Thread that runs a training on request."""

  def __init__(self, start, verbose):
    super().__init__(daemon=True)
    self._generator = start()
    self.verbose = verbose
    self._requests: queue.SimpleQueue = queue.SimpleQueue()
    self._lock = threading.Lock()
    self._ended = False
    self.write = self.save = None

  def check(self, method):
    """Raise an error unless the user is within the loop over the records."""
    if not self.ident or self._ended:
      raise errors.UsageError(
        f'Training.{method} needs a training at work; call it within the loop '
        'over its records.'
      )

  def log(self, scalars):
    """Write scalars of the user; the thread waits for a request meanwhile."""
    if self.write:
      with as_part_of(self):
        self.write(scalars)
      return
    self.check('log')
    if mpi.world().Get_rank() == 0:
      raise errors.UsageError(
        'Training.log needs a log directory; give the training a logdir.'
      )

  def ask(self, method):
    """Return the future of `next` or `save`, or of `close`, which is last."""
    reply: concurrent.futures.Future = concurrent.futures.Future()
    with self._lock:
      # A process that the caller forks has no threads to wait for.
      if self._ended or self.ident and not self.is_alive():
        reply.set_result(None)
        return reply
      if not self.ident:
        self.start()
      self._requests.put((method, reply))
    return reply

  def end(self):
    """Save and end; does not wait when called from this thread itself."""
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
          elif method == 'save':
            # The training goes on, even after an error.
            result = True
            if self.save:
              self.save()
          else:
            self._generator.close()
      except BaseException as problem:  # The caller gets it.
        error = problem
      with self._lock:
        self._ended = result is None
      if error:
        reply.set_exception(error)
      else:
        reply.set_result(result)
    while not self._requests.empty():
      self._requests.get()[1].set_result(None)


class _Warnings(logging.Handler):
  """Print what is logged, in silent threads as well."""

  def emit(self, record):
    with streams.silent(False):
      print(self.format(record), file=sys.stderr)


@contextlib.contextmanager
def _silence():
  """Say nothing but logged warnings in threads of silent trainings."""
  global _silent
  with _changing:
    if not _silent:
      # Without any logging set up, warnings go to the error stream.
      _usual.append(logging.lastResort)
      logging.lastResort = _Warnings(logging.WARNING)
    _silent += 1
  try:
    with streams.silence():
      yield
  finally:
    with _changing:
      _silent -= 1
      if not _silent:
        logging.lastResort = _usual.pop()
