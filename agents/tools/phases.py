"""Base of `Loop` and `Trainer`: phases, observers, checkpoints."""

import dataclasses
import functools
import logging
import math
import os
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from agents.run import checkpoint, files, life, log, mpi, stopping

_logger = logging.getLogger(__name__)


@dataclasses.dataclass(eq=False)
class Phase:
  """One of the alternating phases.

  Attributes:
    name: Name, also of its folder of event files.
    steps: Steps of the phase per epoch.
    batch_size: Steps taken by one execution of the graph.
    op: Tensors to execute.
    writer: Writer of summaries, or None.
    report_every: Steps between two scores, None for never.
    log_every: Steps between two summaries, None for never.
    checkpoint_every: Steps between two checkpoints, None for never.
    feed: Extra values to feed.
    episodes: Number of episodes averaged in the newest score, if known.
  """

  name: str
  steps: int
  batch_size: int
  op: Any = None
  writer: Any = None
  report_every: int | None = None
  log_every: int | None = None
  checkpoint_every: int | None = None
  feed: dict = dataclasses.field(default_factory=dict)
  episodes: int = 0


class Observer:
  """Receiver of phase machine events; override any of the methods.

  Attributes:
    writes_scalars: Whether it writes the scalars of summaries. The event files
      of the phases then have all else, under plain names.
  """

  writes_scalars = False

  def start_phase(
    self, phase: Phase, epoch: int, steps_in: int, global_step: int
  ) -> None:
    """A phase starts, or continues after a restart."""

  def step(self, phase: Phase, amount: int, global_step: int) -> None:
    """The graph was executed; `global_step` includes this execution."""

  def score(
    self, phase: Phase, epoch: int, global_step: int, score: Any
  ) -> None:
    """A score is about to be yielded."""

  def summary(
    self, phase: Phase, step: int, global_step: int, summary: bytes
  ) -> None:
    """A serialized summary was computed, and written if there is a logdir."""

  def checkpoint(self, path: str) -> None:
    """A checkpoint was written."""

  def close(self) -> None:
    """The machine has stopped; may be called twice."""


class PhaseMachine:
  """Alternate phases by a global step, so that a run can be resumed.

  An epoch consists of all phases in the order in which they were added. All
  steps are counted over examples: one execution of a phase advances the global
  step by the batch size of the phase.

  Subclasses define `_execute`, `_read_step`, and which variables are saved.

  Args:
    logdir: Folder for event files and checkpoints, None to write none.
    best_phase: Name of the phase whose scores determine the best checkpoint;
      None to keep none.
    checkpoint_secs: Seconds after which a checkpoint is due, in addition to
      those of the phases; None for never.
    observers: List of `Observer`.
    should_stop: Function that returns whether to end before the next
      execution; by default, whether the user has asked to stop.
    saves_within: Whether time-based checkpoints may be written within a phase;
      otherwise only at its start.
    saves_at_end: Whether to also write a checkpoint when iteration ends; see
      `agents.run.life.run` for when this would do harm.
    comm: MPI communicator of processes that run the same phases; only this
      process by default.
  """

  def __init__(
    self,
    logdir: str | None,
    best_phase: str | None = None,
    checkpoint_secs: float | None = None,
    observers: Iterable[Observer] = (),
    should_stop: Callable[[], bool] = stopping.requested,
    saves_within: bool = True,
    saves_at_end: bool = False,
    comm: Any = None,
  ):
    self._logdir = logdir and files.expand(logdir)
    self._phases: list[Phase] = []
    self._observers = list(observers)
    self._closed = False
    self.checkpoint_secs = checkpoint_secs
    self.best_phase = best_phase
    self.should_stop = should_stop
    self.saves_at_end = saves_at_end
    self._saves_within = saves_within
    self._comm: Any = comm or mpi.SingleComm()
    self._is_due = False
    self._best_score = -math.inf
    # For subclasses: what to save.
    self._saver: Any = None
    self._finite: list[Any] = []

  def _execute(self, sess, phase, phase_step, reset, log, report):
    """Run the graph once; returns summary, score and new global step."""
    raise NotImplementedError

  def _read_step(self, sess):
    """Return the global step."""
    raise NotImplementedError

  def _go_back(self, sess):
    """Prepare the end of iteration before the end of a phase."""

  def _watch_finite(self, variables):
    """Save only if these are finite; scalars may be NaN, as mean scores."""
    from agents.tools.tf1 import tf

    self._finite = [
      tf.reduce_all(tf.math.is_finite(x))
      for x in variables
      if x.dtype.is_floating and x.shape.ndims
    ]

  def _make_writer(self, name, flush_secs):
    """Writer of the summaries of a phase; None without a folder."""
    from agents.tools.tf1 import tf

    folder = self._logdir and os.path.join(self._logdir, name)
    return folder and tf.summary.FileWriter(
      folder, tf.get_default_graph(), flush_secs=flush_secs
    )

  def _iterate(self, sess, global_step, max_step):
    """Execute phases until the global step reaches a limit.

    Ends early when the user asks to stop: after the current execution, or
    within it if it plays episodes.

    Args:
      sess: TensorFlow session.
      global_step: Step to start at.
      max_step: Step to stop at, None for no limit.

    Yields:
      Scores when they are due.
    """
    ticks = self._execute_phases(sess, global_step, max_step)
    yield from life.run(ticks, functools.partial(self._save, sess), self._comm)

  def _execute_phases(self, sess, global_step, max_step):
    """Execute the graph again and again; yield scores, or None without one."""
    from agents.tools.tf1 import tf

    started = None
    self._last_checkpoint = time.monotonic()
    writers = [x.writer for x in self._phases if x.writer]
    for writer in writers if self._closed else ():
      writer.reopen()
    try:
      if self._logdir:
        self._best_score = checkpoint.read_best_score(self._logdir)
      while not (max_step and global_step >= max_step):
        if self.should_stop():
          break
        phase, epoch, steps_in = self._find_current_phase(global_step)
        phase_step = epoch * phase.steps + steps_in
        begins = steps_in < phase.batch_size
        if begins or started is not phase:
          self._notify('start_phase', phase, epoch, steps_in, global_step)
          started = phase
        log, report, save = [
          self._is_every_steps(phase_step, phase.batch_size, every)
          for every in (
            phase.log_every,
            phase.report_every,
            phase.checkpoint_every,
          )
        ]
        # A partial phase is also reported when the steps are done.
        rest = (max_step or math.inf) - global_step
        report = report or bool(phase.report_every and rest <= phase.batch_size)
        before = global_step
        try:
          summary, score, global_step = self._execute(
            sess, phase, phase_step, begins, log, report
          )
        except tf.errors.InvalidArgumentError as error:
          # What `tf.check_numerics` raises.
          if 'Tensor had' not in str(error):
            raise
          raise checkpoint.not_finite(self._logdir, global_step) from None
        self._notify('step', phase, global_step - before, global_step)
        # Notify before saving: after a kill, events are repeated, not lost.
        if report:
          if np.isinf(score):
            raise checkpoint.not_finite(self._logdir, global_step)
          self._keep_best(sess, phase, global_step, score)
          self._notify('score', phase, epoch, global_step, score)
        if summary:
          # The longest phase decides, so that the phases line up in plots.
          step = epoch * max(x.steps for x in self._phases) + steps_in
          self._write(phase, summary, step)
          self._notify('summary', phase, step, global_step, summary)
        self._is_due = save or self._is_overdue(global_step)
        yield score if report else None
    finally:
      self._closed = True
      for writer in writers:
        writer.close()
      self._notify('close')

  def _write(self, phase, summary, step):
    """Write a summary to the event file of its phase."""
    if any(x.writes_scalars for x in self._observers):
      summary = log.clean_summary(summary)
    if phase.writer and summary:
      phase.writer.add_summary(summary, step)

  def _find_current_phase(self, global_step):
    """Phase, epoch, and steps within the phase at a global step."""
    epoch_size = sum(phase.steps for phase in self._phases)
    epoch, steps_in = divmod(int(global_step), epoch_size)
    for phase in self._phases:
      if steps_in < phase.steps:
        return phase, epoch, steps_in
      steps_in -= phase.steps
    raise AssertionError((global_step, self._phases))

  def _is_every_steps(self, phase_step, batch, every):
    """Whether a multiple of `every` is completed by the next batch."""
    if not every:
      return False
    return (phase_step + batch) // every > phase_step // every

  def _is_overdue(self, global_step):
    """Return whether a checkpoint is due by time."""
    seconds = time.monotonic() - self._last_checkpoint
    if not self.checkpoint_secs or seconds < self.checkpoint_secs:
      return False
    phase, _, steps_in = self._find_current_phase(global_step)
    return self._saves_within or steps_in < phase.batch_size

  def _save(self, sess, at_end):
    """Write a checkpoint if it is due or iteration ends; see `life.run`."""
    if at_end:
      self._go_back(sess)
    if not (self.saves_at_end if at_end else self._is_due):
      return False
    self._last_checkpoint = time.monotonic()
    self._checkpoint(sess, self._read_step(sess))
    return True

  def _checkpoint(self, sess, global_step):
    if self._logdir and self._saver:
      self._check_finite(sess, global_step)
      path = os.path.join(self._logdir, 'model.ckpt')
      with sess.graph.as_default():
        path = self._saver.save(sess, path, global_step)
      self._notify('checkpoint', path)

  def _keep_best(self, sess, phase, global_step, score):
    if not self._logdir or not self._saver or phase.name != self.best_phase:
      return
    if score > self._best_score:
      self._check_finite(sess, global_step)
      self._best_score = score
      checkpoint.keep_best(sess, self._saver, self._logdir, global_step, score)
      _logger.debug('Score %.4g is the best so far; kept the model.', score)

  def _check_finite(self, sess, global_step):
    if not all(sess.run(self._finite)):
      raise checkpoint.not_finite(self._logdir, global_step)

  def _notify(self, event, *args):
    for observer in self._observers:
      getattr(observer, event)(*args)
