"""Runs on disk that several workers share and take over from each other.

Each run has a folder. Its owner writes its name to the file PING regularly, as
a heartbeat. DONE marks the end of the run; FAIL has the traceback of an error.
"""

import contextlib
import dataclasses
import itertools
import logging
import os
import random
import socket
import tempfile
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Generator, Iterator
from typing import Any

from agents.run import entry, errors, files, folder, locks, stopping

_logger = logging.getLogger(__name__)


class WorkerConflict(Exception):
  """Another worker has taken over the run."""


class SkipRun(Exception):
  """The run is over, or another worker owns it."""


@dataclasses.dataclass
class Experiment:
  """Iterate over the runs that this worker should work on.

  With `num_runs`, tries the runs in random order, waits until dead workers can
  be detected, and tries them once more. Without a limit, waits first and then
  tries runs in order, endlessly.

  Args:
    basedir: Folder of the experiment, with runs in `00001`, `00002`, ...; or
      folder of a single run.
    process_fn: Function from the folder of a run, and what the next two return,
      to an iterable of scores, such as a generator.
    start_fn: Function from the folder of a new run to a tuple of arguments of
      `process_fn`, to a single one, or to None for no more.
    resume_fn: The same for runs that have begun.
    num_runs: Number of runs; None or 0 for no limit.
    worker_name: Unique name of this worker; generated if None.
    ping_every: Seconds between heartbeats; 0 for none after the first. A worker
      counts as dead after twice this time.
    resume_runs: Whether to resume runs of dead workers.
    may_reopen: Function from the folder of a finished run to whether it may
      continue; always False by default.
  """

  basedir: str
  process_fn: Callable[..., Any]
  start_fn: Callable[[str], Any] | None = None
  resume_fn: Callable[[str], Any] | None = None
  num_runs: int | None = None
  worker_name: str | None = None
  ping_every: float = 30
  resume_runs: bool = True
  may_reopen: Callable[[str], bool] = lambda logdir: False

  def __post_init__(self) -> None:
    if self.worker_name is None:
      self.worker_name = f'{socket.gethostname()}-{uuid.uuid4().hex[:8]}'

  def __iter__(self) -> Iterator['Run']:
    """Yield each claimed `Run`; iterate over it before requesting the next.

    Ends early when the user asks to stop.
    """
    # A run may change the working directory.
    basedir = files.absolute(self.basedir)
    is_run = folder.is_run(basedir)
    over = set(folder.find(basedir, 'DONE'))
    if folder.has(basedir, 'DONE'):
      over.add(basedir)
    for number in self._generate_numbers(1 if is_run else self.num_runs):
      if stopping.requested():
        return
      logdir = basedir if is_run else os.path.join(basedir, f'{number:05d}')
      # Runs that end from now on are not reopened.
      run = Run(logdir, self, logdir in over)
      with contextlib.suppress(SkipRun):
        run.claim()
        over.discard(logdir)
        yield run

  def _generate_numbers(self, count):
    numbers: Any = itertools.count(1)
    if count:
      numbers = list(range(1, count + 1))
      random.Random(uuid.uuid4().int).shuffle(numbers)
      yield from numbers
    stopping.sleep(2 * self.ping_every)
    yield from numbers


class Run:
  """Run of an experiment; iterate over it to do the work.

  Args:
    logdir: Folder of the run.
    experiment: Experiment of the run.
    was_over: Whether the run was finished when this worker started.
  """

  def __init__(
    self, logdir: str, experiment: Experiment, was_over: bool = False
  ) -> None:
    self.logdir = logdir
    self._experiment = experiment
    self._name, self._ping_every = experiment.worker_name, experiment.ping_every
    self._was_over, self._resumes = was_over, False
    self._missing: str | None = None
    self._lock = contextlib.ExitStack()
    self._conflict = threading.Event()

  def claim(self) -> None:
    """Become the owner of the run.

    Raises:
      SkipRun: If the run is finished, belongs to another worker, or may not be
        resumed; or if the user asks to stop.
      UsageError: If this is the only run of the experiment and another process
        works on it.
    """
    self._missing = files.first_missing(self.logdir)
    with self._try_lock() as lock:
      self._check_open()
      self._write_ping()
      # If several workers claim the run at the same time, the last one wins.
      stopping.sleep(self._ping_every)
      if stopping.requested() or not self._owns():
        raise SkipRun(self.logdir)
      # The next one follows in `ping_every` seconds.
      self._write_ping()
      self._lock = lock.pop_all()

  def __iter__(self) -> Generator[Any, None, None]:
    """Yield the scores of the run.

    Raises:
      WorkerConflict: If another worker has taken over the run.
    """
    with (
      self._lock,
      folder.removed_if_refused(self.logdir, self._missing, self._has_begun),
      self._pings(),
    ):
      try:
        # Leaving the loop closes the run before it is released.
        scores = self._experiment.process_fn(self.logdir, *self._prepare())
        values = _generate(scores)
        with contextlib.closing(values):
          for value in values:
            if self._conflict.is_set():
              # Closing would save the run, which now belongs to the other.
              values.throw(self._find_conflict())
            yield value
        self._check_conflict()
        folder.mark(self.logdir, 'DONE')
      except errors.UsageError:
        if not self._resumes:
          # The folder may be a run of another program.
          folder.unmark(self.logdir, 'PING')
        raise
      except (
        WorkerConflict,
        stopping.StopRequested,
        errors.WorkerDeath,
        locks.Lost,
        OSError,
      ):
        # The run is not finished; repeating the command resumes it. Errors of
        # the operating system are temporary.
        raise
      except Exception as error:
        self._check_conflict()
        if isinstance(error, errors.EnvError) and not self._has_begun():
          raise
        # Programs print the message of a Failure themselves.
        if not isinstance(error, errors.Failure):
          # What programs tell in a sentence is temporary, too, such as a full
          # disk, for which TensorFlow has errors of its own.
          if entry.explain(error)[1]:
            raise
          text = traceback.format_exc()
          _logger.warning('Run %s failed:\n%s', self.logdir, text)
        folder.mark(self.logdir, 'DONE')
        folder.mark(self.logdir, 'FAIL', traceback.format_exc() + '\n')
        raise

  def _prepare(self):
    """Return the further arguments of `process_fn`."""
    new, old = self._experiment.start_fn, self._experiment.resume_fn
    function = old if self._resumes else new
    given = function(self.logdir) if function else None
    if given is None:
      return ()
    return given if isinstance(given, tuple) else (given,)

  def _check_open(self):
    """Raise SkipRun if the run may be neither started nor resumed."""
    last, is_over = read_ping(self.logdir), folder.has(self.logdir, 'DONE')
    self._resumes = bool(last or is_over)
    if not self._resumes:
      return
    experiment = self._experiment
    may_resume = experiment.resume_runs and (
      not is_over or (self._was_over and experiment.may_reopen(self.logdir))
    )
    if not may_resume or (last and not self._is_stale(*last)):
      raise SkipRun(self.logdir)

  def _is_stale(self, worker, age):
    # Without heartbeats, the lock tells whether a worker is active.
    every = self._ping_every
    if worker == self._name or not every or age >= 2 * every:
      return True
    if age > -every:
      return False
    # A ping from the future: a clock was set. Wait for another one.
    began = time.monotonic()
    stopping.sleep(2 * every)
    later = read_ping(self.logdir)
    passed = time.monotonic() - began
    return later is not None and abs(later[1] - age - passed) < every

  def _try_lock(self):
    """Return a context that releases the run; heartbeats replace the lock."""
    if self._ping_every:
      files.check_writable(self.logdir)
      return contextlib.ExitStack()
    lock = contextlib.ExitStack()
    try:
      lock.enter_context(folder.Run.open(self.logdir))
    except folder.Busy as error:
      if self._experiment.num_runs == 1:
        raise
      _logger.warning('%s', error)
      raise SkipRun(self.logdir) from None
    # After the run, only PING remains.
    lock.callback(folder.unmark, self.logdir, folder.LOCK)
    return lock

  def _has_begun(self):
    """Return whether there is anything to keep, such as a whole episode."""
    own = {'PING', folder.LOCK, folder.LOCK + locks.LEASE}
    # Settings, and what was printed before the first episode.
    own |= {'config.yaml', 'log.txt'}
    return any(set(names) - own for _, _, names in os.walk(self.logdir))

  @contextlib.contextmanager
  def _pings(self):
    """Write heartbeats if several workers share the runs."""
    if not self._ping_every:
      yield
      return
    stopped = threading.Event()
    thread = threading.Thread(target=self._ping, args=(stopped,), daemon=True)
    thread.start()
    path = os.path.join(os.path.abspath(self.logdir), 'PING')
    try:
      with locks.watch(path):
        yield
    finally:
      stopped.set()
      thread.join(1)

  def _ping(self, stopped):
    while not stopped.wait(self._ping_every):
      try:
        if not self._owns():
          self._conflict.set()
          _logger.warning('%s', self._find_conflict())
          return
        self._write_ping()
      except OSError as error:
        _logger.warning('Cannot write the heartbeat: %s.', error)

  def _check_conflict(self):
    if self._conflict.is_set():
      raise self._find_conflict()

  def _find_conflict(self):
    try:
      locks.check(os.path.join(self.logdir, 'PING'))
    except locks.Lost as error:
      return error
    return WorkerConflict(
      f'Another worker has taken over the run {self.logdir}.'
    )

  def _owns(self):
    last = read_ping(self.logdir)
    return last is not None and last[0] == self._name

  def _write_ping(self):
    folder.mark(self.logdir, 'PING', f'{self._name}\n')


def _generate(values):
  """Return a generator, which can be closed, of the values of any iterable."""
  yield from values


def read_ping(logdir: str) -> tuple[str, float] | None:
  """Return the worker and the age in seconds of the last heartbeat.

  The age is that by the clock of the file system, which all machines share.

  Args:
    logdir: Folder of the run.

  Returns:
    Tuple, or None if there was no heartbeat.
  """
  filename = os.path.join(logdir, 'PING')
  try:
    with open(filename, errors='replace') as file_:
      worker = file_.read().strip()
    return worker, _find_time(logdir) - os.path.getmtime(filename)
  except (FileNotFoundError, NotADirectoryError):
    return None


def _find_time(folder):
  """Return the time of the file system; that of this machine if read-only."""
  try:
    with tempfile.TemporaryFile(dir=folder) as file_:
      file_.write(b'now')
      file_.flush()
      return os.fstat(file_.fileno()).st_mtime
  except OSError:
    return time.time()
