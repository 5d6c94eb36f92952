"""Runs on disk that several workers share and take over from each other.

Every run has a folder. The worker that owns it keeps its name in the file PING,
which it writes anew as a sign of life; DONE marks its end, and FAIL has the
traceback of a failure.
"""

import contextlib
import dataclasses
import itertools
import logging
import os
import random
import socket
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Generator, Iterator
from typing import Any

from agents.run import errors, files, folder, stopping

_logger = logging.getLogger(__name__)


class WorkerConflict(Exception):
  """Another worker has taken over the run."""


class SkipRun(Exception):
  """The run is over, or another worker owns it."""


@dataclasses.dataclass
class Experiment:
  """Iterate over the runs that this worker should work on.

  With a number of runs, the runs are tried in random order, and once more
  after the time that it takes to see that another worker has died. Without,
  they are tried in order for ever, after that time.

  Args:
    basedir: Folder of the experiment; runs go to `00001`, `00002`, ... The
      folder of a run is an experiment of this run.
    process_fn: Generator function from the folder of a run to scores.
    num_runs: Number of runs; None or 0 for no limit.
    worker_name: Unique name of this worker; made up by default.
    ping_every: Seconds between two signs of life; 0 for only the first one.
      A worker counts as dead after twice this time.
    resume_runs: Whether to resume runs that dead workers began.
    may_reopen: Function from the folder of a run that is over already to
      whether it goes on; none does by default.
  """

  basedir: str
  process_fn: Callable[[str], Any]
  num_runs: int | None = None
  worker_name: str = dataclasses.field(
    default_factory=lambda: f'{socket.gethostname()}-{uuid.uuid4().hex[:8]}'
  )
  ping_every: float = 30
  resume_runs: bool = True
  may_reopen: Callable[[str], bool] = lambda logdir: False

  def __iter__(self) -> Iterator['Run']:
    """Yield each claimed `Run`; iterate over it before asking for more."""
    basedir = os.path.expanduser(self.basedir)
    is_run = folder.has(basedir, 'config.yaml')
    over = set(folder.find(basedir, 'DONE'))
    if folder.has(basedir, 'DONE'):
      over.add(basedir)
    for number in self._generate_numbers():
      logdir = basedir if is_run else os.path.join(basedir, f'{number:05d}')
      # Those that end from now on are not reopened.
      run = Run(logdir, self, logdir in over)
      with contextlib.suppress(SkipRun):
        run.claim()
        over.discard(logdir)
        yield run

  def _generate_numbers(self):
    if self.num_runs:
      numbers = list(range(1, self.num_runs + 1))
      random.Random(uuid.uuid4().int).shuffle(numbers)
      yield from numbers
    time.sleep(2 * self.ping_every)
    yield from numbers if self.num_runs else itertools.count(1)


class Run:
  """One run of an experiment; iterating over it does the work.

  Args:
    logdir: Folder of the run.
    experiment: What it belongs to.
    was_over: Whether it was over when this worker began.
  """

  def __init__(
    self, logdir: str, experiment: Experiment, was_over: bool = False
  ) -> None:
    self.logdir = logdir
    self._experiment = experiment
    self._name, self._ping_every = experiment.worker_name, experiment.ping_every
    self._was_over = was_over
    self._missing: str | None = None
    self._lock = contextlib.ExitStack()
    self._conflict = threading.Event()

  def claim(self) -> None:
    """Become the owner of the run.

    Raises:
      SkipRun: If the run is done, belongs to another worker, or may not be
        resumed.
      UsageError: If it is the only run of the experiment, and another process
        works on it.
    """
    self._missing = files.first_missing(self.logdir)
    with self._try_lock() as lock:
      self._check_open()
      self._write_ping()
      # Of several workers that claim at the same time, the last one wins.
      time.sleep(self._ping_every)
      if not self._owns():
        raise SkipRun(self.logdir)
      self._lock = lock.pop_all()

  def __iter__(self) -> Generator[Any, None, None]:
    """Yield the scores of the run.

    Raises:
      WorkerConflict: If another worker took over the run, which it then keeps
        as it is.
    """
    with (
      self._lock,
      folder.removed_if_refused(self.logdir, self._missing, self._has_begun),
      self._pings(),
    ):
      try:
        # Who leaves the loop has the run closed before it is given back.
        values = self._experiment.process_fn(self.logdir)
        with contextlib.closing(values):
          for value in values:
            self._check_conflict()
            yield value
        self._check_conflict()
        folder.mark(self.logdir, 'DONE')
      except (
        WorkerConflict,
        stopping.StopRequested,
        errors.UsageError,
        errors.WorkerDeath,
        OSError,
      ):
        # The run is not over; it can be resumed by the owner, or by whoever
        # repeats the command. Errors of the system pass.
        raise
      except Exception as error:
        self._check_conflict()
        if isinstance(error, errors.EnvError) and not self._has_begun():
          raise
        # Programs print sentences themselves.
        if not isinstance(error, errors.Failure):
          text = traceback.format_exc()
          _logger.warning('Run %s failed:\n%s', self.logdir, text)
        folder.mark(self.logdir, 'DONE')
        folder.mark(self.logdir, 'FAIL', traceback.format_exc() + '\n')
        raise

  def _check_open(self):
    """Raise SkipRun if the run may be neither begun nor resumed."""
    last, is_over = read_ping(self.logdir), folder.has(self.logdir, 'DONE')
    if not last and not is_over:
      return
    experiment = self._experiment
    may_resume = experiment.resume_runs and (
      not is_over or (self._was_over and experiment.may_reopen(self.logdir))
    )
    if not may_resume or (last and not self._is_stale(*last)):
      raise SkipRun(self.logdir)

  def _is_stale(self, worker, age):
    # Without signs of life, the lock says who works here.
    every = self._ping_every
    return worker == self._name or not every or age >= 2 * every

  def _try_lock(self):
    """Return what gives the run back; signs of life replace the lock."""
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
    # Nothing but PING says that there was a worker.
    lock.callback(folder.unmark, self.logdir, folder.LOCK)
    return lock

  def _has_begun(self):
    return bool(set(os.listdir(self.logdir)) - {'PING', folder.LOCK})

  @contextlib.contextmanager
  def _pings(self):
    """Give signs of life, if several workers share the runs."""
    if not self._ping_every:
      yield
      return
    stopped = threading.Event()
    thread = threading.Thread(target=self._ping, args=(stopped,), daemon=True)
    thread.start()
    try:
      yield
    finally:
      stopped.set()
      thread.join(1)

  def _ping(self, stopped):
    while not stopped.wait(self._ping_every):
      if not self._owns():
        _logger.warning(
          'Another worker has taken over the run %s.', self.logdir
        )
        self._conflict.set()
        return
      self._write_ping()

  def _check_conflict(self):
    if self._conflict.is_set():
      raise WorkerConflict(self.logdir)

  def _owns(self):
    last = read_ping(self.logdir)
    return last is not None and last[0] == self._name

  def _write_ping(self):
    folder.mark(self.logdir, 'PING', f'{self._name}\n')


def read_ping(logdir: str) -> tuple[str, float] | None:
  """Return the worker of the last sign of life, and its age in seconds.

  Args:
    logdir: Folder of the run.

  Returns:
    None if there was no sign of life. Whatever the file says is a name.
  """
  filename = os.path.join(logdir, 'PING')
  try:
    with open(filename, errors='replace') as file_:
      return file_.read().strip(), time.time() - os.path.getmtime(filename)
  except (FileNotFoundError, NotADirectoryError):
    return None
