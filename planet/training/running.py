"""Runs on disk that several workers share and take over from each other.

Every run has a folder. The worker that owns it keeps its name and the time in
the file PING; DONE marks its end, and FAIL holds the traceback of a failure.
"""

import contextlib
import datetime
import itertools
import logging
import os
import random
import re
import socket
import threading
import time
import traceback
import uuid
from collections.abc import Callable
from typing import Any

from agents.run import errors, folder, stopping
from agents.tools import phases
from planet.training import ping

_logger = logging.getLogger(__name__)


class StopExperiment(Exception):
  """Stop iterating over the runs of an experiment."""


class WorkerConflict(Exception):
  """Another worker has taken over the run."""


class SkipRun(Exception):
  """The run is over, or another worker owns it."""


def find_open(
  basedir: str,
  num_runs: int | None = None,
  ping_every: float = 0,
  resume_runs: bool = True,
) -> list[str]:
  """Folders that a worker could begin or continue a run in now.

  Args:
    basedir: Folder of the experiment.
    num_runs: See `Experiment`.
    ping_every: See `Experiment`.
    resume_runs: See `Experiment`.

  Returns:
    Sorted list of existing folders, and one that does not exist if the
    experiment has room for it. Runs that are over, that belong to workers that
    are alive, or that may not be continued are left out.
  """
  basedir = os.path.expanduser(basedir)
  names = os.listdir(basedir) if os.path.isdir(basedir) else []
  existing = {int(x) for x in names if re.fullmatch(r'\d{5,}', x)}
  new = next(x for x in itertools.count(1) if x not in existing)
  numbers = [x for x in sorted(existing | {new}) if x <= (num_runs or x)]
  experiment = Experiment(
    basedir, iter, ping_every=ping_every, resume_runs=resume_runs
  )
  runs = map(experiment.make_run, numbers)
  return [run.logdir for run in runs if run.is_open()]


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
    resume_runs: Whether to continue runs that dead workers began.
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
  ):
    self._basedir = os.path.expanduser(basedir)
    self._process_fn = process_fn
    self._start_fn = start_fn
    self._resume_fn = resume_fn
    self._num_runs = num_runs
    self._worker_name = worker_name or (
      f'{socket.gethostname()}-{uuid.uuid4().hex[:8]}'
    )
    self._ping_every = ping_every or 0
    self._stale_after = 2 * self._ping_every
    self._resume_runs = resume_runs

  def __iter__(self):
    """Yield each claimed `Run`; iterate over it before asking for more."""
    for run in map(self.make_run, self._generate_numbers()):
      try:
        run.claim()
        yield run
      except SkipRun:
        continue
      except StopExperiment:
        _logger.info('Stopping the experiment.')
        return

  def make_run(self, number: int) -> 'Run':
    """Return the run of a number, which is not claimed yet."""
    return Run(
      os.path.join(self._basedir, f'{number:05d}'),
      self._process_fn,
      self._start_fn,
      self._resume_fn,
      self._worker_name,
      self._ping_every,
      self._resume_runs,
    )

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
    process_fn: See `Experiment`.
    start_fn: See `Experiment`.
    resume_fn: See `Experiment`.
    worker_name: Name of this worker.
    ping_every: Seconds between two signs of life; 0 for only the first one.
    resume_runs: Whether to continue runs that dead workers began.
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
  ):
    self.logdir = os.path.expanduser(logdir)
    self._process_fn = process_fn
    self._start_fn = start_fn
    self._resume_fn = resume_fn
    self._worker_name = worker_name
    self._ping_every = ping_every
    self._resume_runs = resume_runs
    self._init_fn: Callable[[str], Any] | None = None
    self._stopped = threading.Event()
    self._conflict = threading.Event()
    self._held: contextlib.ExitStack | None = None

  def is_open(self) -> bool:
    """Whether `claim` would succeed now."""
    if not (self._should_start() or self._should_resume()):
      return False
    return bool(self._ping_every) or not folder.is_locked(self.logdir)

  def claim(self) -> None:
    """Become the owner of the run.

    Raises:
      SkipRun: If the run is done, belongs to another worker, or may not be
        resumed.
    """
    if not (self._should_start() or self._should_resume()):
      raise SkipRun(self.logdir)
    if not self._lock():
      _logger.warning('Another process works on the run %s.', self.logdir)
      raise SkipRun(self.logdir)
    # The process that had the lock until now may have ended the run.
    if self._should_start():
      self._init_fn = self._start_fn
      _logger.info('Start run %s.', self.logdir)
    elif self._should_resume():
      self._init_fn = self._resume_fn
      _logger.info('Resume run %s.', self.logdir)
    else:
      self._unlock()
      raise SkipRun(self.logdir)
    ping.write(self.logdir, self._worker_name)
    # Of several workers that claim at the same time, the last one wins.
    time.sleep(self._ping_every)
    if not self._owns():
      self._unlock()
      raise SkipRun(self.logdir)

  def __iter__(self):
    """Yield the scores of the run.

    Raises:
      WorkerConflict: If another worker took over the run, which it then keeps
        as it is.
    """
    thread = None
    self._stopped.clear()
    if self._ping_every:
      thread = threading.Thread(target=self._keep_pinging, daemon=True)
      thread.start()
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
    ):
      # The run is not over; it can be resumed by the owner, or by whoever
      # repeats the command.
      raise
    except Exception as error:
      self._check_conflict()
      # Programs print what environments did wrong.
      if not isinstance(error, errors.EnvError):
        text = traceback.format_exc()
        _logger.warning('Run %s failed:\n%s', self.logdir, text)
      folder.mark(self.logdir, 'DONE')
      folder.mark(self.logdir, 'FAIL', traceback.format_exc() + '\n')
      raise
    finally:
      self._stopped.set()
      if thread:
        thread.join(1)
      self._unlock()

  def _should_start(self):
    return not any(folder.has(self.logdir, x) for x in ('PING', 'DONE'))

  def _should_resume(self):
    if not self._resume_runs or folder.has(self.logdir, 'DONE'):
      return False
    last = ping.read(self.logdir)
    if last is None:
      return False
    name, time_ = last
    age = datetime.datetime.now(datetime.timezone.utc) - time_
    stale = age.total_seconds() >= 2 * self._ping_every
    return name == self._worker_name or stale

  def _lock(self):
    """Without further signs of life, keep others on this machine away.

    Returns:
      Whether no other process has locked the run.
    """
    if self._ping_every:
      return True
    self._held = folder.lock(self.logdir)
    if self._held:
      # Nothing but PING tells that there was a worker.
      self._held.callback(folder.unmark, self.logdir, folder.LOCK)
    return self._held is not None

  def _unlock(self):
    if self._held:
      self._held.close()
      self._held = None

  def _keep_pinging(self):
    while not self._stopped.wait(self._ping_every):
      if not self._owns():
        _logger.warning(
          'Another worker has taken over the run %s.', self.logdir
        )
        self._conflict.set()
        return
      ping.write(self.logdir, self._worker_name)

  def _check_conflict(self):
    if self._conflict.is_set():
      raise WorkerConflict(self.logdir)

  def _owns(self):
    return _find_owner(self.logdir) == self._worker_name


def _find_owner(logdir):
  last = ping.read(logdir)
  return last and last[0]
