"""Runs on disk that several workers share and take over from each other.

Every run has a folder. The worker that owns it keeps its name and the time in
the file PING; DONE marks its end, and FAIL has the traceback of a failure.
"""

import contextlib
import datetime
import functools
import itertools
import logging
import os
import random
import socket
import threading
import time
import traceback
import uuid
from collections.abc import Callable
from typing import Any

from agents.run import errors, files, folder, stopping
from agents.tools import phases
from planet.training import ping

_logger = logging.getLogger(__name__)


class StopExperiment(Exception):
  """Stop iterating over the runs of an experiment."""


class WorkerConflict(Exception):
  """Another worker has taken over the run."""


class SkipRun(Exception):
  """The run is over, or another worker owns it."""


class Experiment:
  """Iterate over the runs that this worker should work on.

  With a number of runs, the runs are tried in random order, and once more
  after the time that it takes to see that another worker has died. Without,
  they are tried in order for ever, after that time.

  Args:
    basedir: Folder of the experiment; runs go to `00001`, `00002`, ...
    process_fn: Generator function from the folder of the run, and what
      `start_fn` or `resume_fn` return, to scores.
    start_fn: Called with the folder of a new run.
    resume_fn: Called with the folder of a run that was begun.
    num_runs: Number of runs; None or 0 for no limit.
    worker_name: Unique name of this worker; made up by default.
    ping_every: Seconds between two signs of life; 0 for only the first one.
      A worker counts as dead after twice this time.
    resume_runs: Whether to resume runs that dead workers began.
    may_reopen: Function from the folder of a run that is over already to
      whether it goes on; none does by default.
  """

  def __init__(
    self,
    basedir: str,
    process_fn: Callable[..., Any],
    start_fn: Callable[[str], Any] | None = None,
    resume_fn: Callable[[str], Any] | None = None,
    num_runs: int | None = None,
    worker_name: str | None = None,
    ping_every: float | None = 30,
    resume_runs: bool = True,
    may_reopen: Callable[[str], bool] | None = None,
  ):
    self._basedir = os.path.expanduser(basedir)
    self._num_runs = num_runs
    self._stale_after = 2 * (ping_every or 0)
    self._make_run = functools.partial(
      Run,
      process_fn=process_fn,
      start_fn=start_fn,
      resume_fn=resume_fn,
      worker_name=worker_name
      or f'{socket.gethostname()}-{uuid.uuid4().hex[:8]}',
      ping_every=ping_every or 0,
      resume_runs=resume_runs,
    )
    self._may_reopen = may_reopen
    self._over = set(folder.find(self._basedir, 'DONE'))

  def __iter__(self):
    """Yield each claimed `Run`; iterate over it before asking for more."""
    for number in self._generate_numbers():
      logdir = os.path.join(self._basedir, f'{number:05d}')
      may_reopen = self._may_reopen if logdir in self._over else None
      run = self._make_run(logdir, may_reopen=may_reopen)
      try:
        run.claim()
        self._over.discard(logdir)
        yield run
      except SkipRun:
        continue
      except StopExperiment:
        _logger.info('Stopping the experiment.')
        return

  def _generate_numbers(self):
    if self._num_runs:
      numbers = list(range(1, self._num_runs + 1))
      random.Random(uuid.uuid4().int).shuffle(numbers)
      yield from numbers
      time.sleep(self._stale_after)
      yield from numbers
    else:
      time.sleep(self._stale_after)
      yield from itertools.count(1)


class Finish(phases.Observer):
  """Mark a run as done when all is stored, whatever becomes of the clean-up.

  Args:
    logdir: Folder of the run, which belongs to this worker.

  Attributes:
    reached: Whether all steps have been made.
  """

  def __init__(self, logdir: str) -> None:
    self._logdir = logdir
    self._owner = _find_owner(logdir)
    self.reached = False

  def finish(self) -> None:
    self.reached = True
    # Another worker keeps the run that it has taken over.
    if _find_owner(self._logdir) == self._owner:
      folder.mark(self._logdir, 'DONE')


class Run:
  """One run of an experiment; iterating over it does the work.

  Args:
    logdir: Folder of the run.
    process_fn: See `Experiment`, like all that follow.
    start_fn: See there.
    resume_fn: See there.
    worker_name: Name of this worker.
    ping_every: See there.
    resume_runs: See there.
    may_reopen: See there.
  """

  def __init__(
    self,
    logdir: str,
    process_fn: Callable[..., Any],
    start_fn: Callable[[str], Any] | None = None,
    resume_fn: Callable[[str], Any] | None = None,
    worker_name: str = 'worker',
    ping_every: float = 0,
    resume_runs: bool = True,
    may_reopen: Callable[[str], bool] | None = None,
  ):
    self.logdir = os.path.expanduser(logdir)
    self._process_fn = process_fn
    self._start_fn = start_fn
    self._resume_fn = resume_fn
    self._worker_name = worker_name
    self._ping_every = ping_every
    self._resume_runs = resume_runs
    self._may_reopen = may_reopen or (lambda logdir: False)
    self._init_fn: Callable[[str], Any] | None = None
    self._missing: str | None = None
    self._conflict = threading.Event()
    self._lock = contextlib.ExitStack()

  def claim(self) -> None:
    """Become the owner of the run.

    Raises:
      SkipRun: If the run is done, belongs to another worker, or may not be
        resumed.
    """
    self._choose_init()
    self._missing = files.first_missing(self.logdir)
    if self._ping_every:
      files.check_writable(self.logdir)
    else:
      lock = folder.lock(self.logdir)
      if not lock:
        _logger.warning('Another process works on the run %s.', self.logdir)
        raise SkipRun(self.logdir)
      # Nothing but PING says that there was a worker.
      lock.callback(folder.unmark, self.logdir, folder.LOCK)
      self._lock = lock
    try:
      # The process that had the lock until now may have ended the run.
      self._init_fn = self._choose_init()
      ping.write(self.logdir, self._worker_name)
      # Of several workers that claim at the same time, the last one wins.
      time.sleep(self._ping_every)
      if not self._owns():
        raise SkipRun(self.logdir)
    except SkipRun:
      self._lock.close()
      raise

  def __iter__(self):
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
        args = self._init_fn(self.logdir) if self._init_fn else ()
        args = () if args is None else args
        args = args if isinstance(args, tuple) else (args,)
        # Who leaves the loop has the run closed before it is given back.
        with contextlib.closing(self._process_fn(self.logdir, *args)) as values:
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

  def _choose_init(self):
    """Return what begins or resumes the run; SkipRun if it is not open."""
    last, is_over = ping.read(self.logdir), folder.has(self.logdir, 'DONE')
    if not last and not is_over:
      return self._start_fn
    may_resume = self._resume_runs
    if may_resume and is_over:
      may_resume = self._may_reopen(self.logdir)
    if may_resume and (not last or self._is_stale(*last)):
      return self._resume_fn
    raise SkipRun(self.logdir)

  def _is_stale(self, worker, time_):
    age = datetime.datetime.now(datetime.timezone.utc) - time_
    stale = age.total_seconds() >= 2 * self._ping_every
    return stale or worker == self._worker_name

  def _has_begun(self):
    return bool(set(os.listdir(self.logdir)) - {'PING', folder.LOCK})

  @contextlib.contextmanager
  def _pings(self):
    """Give signs of life, if several workers share the runs."""
    stopped = threading.Event()

    def keep_pinging():
      while not stopped.wait(self._ping_every):
        if not self._owns():
          _logger.warning(
            'Another worker has taken over the run %s.', self.logdir
          )
          self._conflict.set()
          return
        ping.write(self.logdir, self._worker_name)

    thread = threading.Thread(target=keep_pinging, daemon=True)
    if self._ping_every:
      thread.start()
    try:
      yield
    finally:
      stopped.set()
      if self._ping_every:
        thread.join(1)

  def _check_conflict(self):
    if self._conflict.is_set():
      raise WorkerConflict(self.logdir)

  def _owns(self):
    return _find_owner(self.logdir) == self._worker_name


def _find_owner(logdir):
  last = ping.read(logdir)
  return last and last[0]
