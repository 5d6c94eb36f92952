"""The machine behind `Loop` and `Trainer`: phases, events, checkpoints."""

import dataclasses
import logging
import math
import os
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from agents.run import checkpoint, stopping

_logger = logging.getLogger(__name__)


@dataclasses.dataclass
class Phase:
  """One of the phases that alternate.

  Attributes:
    name: Name, also of its folder of event files.
    steps: Steps of the phase per epoch.
    batch_size: Steps made by one execution of the graph.
    op: Tensors to execute.
    writer: Writer of summaries, or None.
    report_every: Steps between two scores, None for never.
    log_every: Steps between two summaries, None for never.
    checkpoint_every: Steps between two checkpoints, None for never.
    feed: Extra values to feed.
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


class Observer:
  """What a phase machine tells others; every method may be overridden."""

  def start_phase(
    self,
    phase: Phase,
    epoch: int,
    steps_in: int,
    phase_step: int,
    global_step: int,
  ) -> None:
    """An execution of a phase begins, the first ever or of this epoch."""

  def step(self, phase: Phase, amount: int, global_step: int) -> None:
    """The graph has been executed; `global_step` counts it already."""

  def score(
    self, phase: Phase, epoch: int, global_step: int, score: Any
  ) -> None:
    """A score is due and about to be handed out."""

  def summary(
    self, phase: Phase, step: int, global_step: int, summary: bytes
  ) -> None:
    """There is a serialised summary, which has been written if possible."""

  def checkpoint(self, path: str) -> None:
    """A checkpoint has been written."""

  def close(self) -> None:
    """The machine has stopped."""


class PhaseMachine:
  """Alternate phases by a global step, so that resuming finds its place.

  An epoch consists of all phases in the order in which they were added. All
  steps are counted over examples: one execution of a phase advances the
  global step by the batch size of the phase.

  Subclasses define `_execute`, `_store_checkpoint` and `_store_best`.

  Args:
    logdir: Folder for event files and checkpoints, or None for none.
    best_phase: Name of the phase whose scores tell which checkpoint is the
      best; None to keep none.
    checkpoint_secs: Seconds after which a checkpoint is due, beside those of
      the phases; None for never.
    observers: List of `Observer`.
    should_stop: Function that tells whether to end before the next execution;
      by default whether the user has asked for it.
  """

  def __init__(
    self,
    logdir: str | None,
    best_phase: str | None = None,
    checkpoint_secs: float | None = None,
    observers: Iterable[Observer] = (),
    should_stop: Callable[[], bool] = stopping.requested,
  ):
    self._logdir = logdir and os.path.expanduser(logdir)
    self._phases: list[Phase] = []
    self._observers = list(observers)
    self._closed = False
    self.checkpoint_secs = checkpoint_secs
    self.best_phase = best_phase
    self.should_stop = should_stop
    self._best_score = -math.inf

  def add_observer(self, observer: Observer) -> None:
    """Tell an `Observer` what happens from now on."""
    self._observers.append(observer)

  def _execute(self, sess, phase, phase_step, reset, log, report):
    """Run the graph once; returns summary, score and new global step."""
    raise NotImplementedError

  def _store_checkpoint(self, sess, global_step):
    """Write a checkpoint; returns its path or None."""
    raise NotImplementedError

  def _store_best(self, sess, global_step, score):
    """Keep the variables as those with the best score so far."""
    raise NotImplementedError

  def _iterate(self, sess, global_step, max_step):
    """Execute phases until the global step reaches a limit.

    Ends early when the user asks to stop: after the current execution, or
    within it if it plays episodes.

    Args:
      sess: TensorFlow session.
      global_step: Step to begin with.
      max_step: Step to stop at, None for no limit.

    Yields:
      Scores when they are due.
    """
    made = 1
    started = None
    last_checkpoint = time.time()
    writers = [x.writer for x in self._phases if x.writer]
    for writer in writers if self._closed else ():
      writer.reopen()
    if self._logdir:
      self._best_score = checkpoint.read_best_score(self._logdir)
    try:
      while not (max_step and global_step >= max_step):
        if self.should_stop():
          break
        phase, epoch, steps_in = self._find_current_phase(global_step)
        phase_step = epoch * phase.steps + steps_in
        batch = self._expected_batch(phase, made)
        if steps_in < batch or started is not phase:
          self._notify(
            'start_phase', phase, epoch, steps_in, phase_step, global_step
          )
          started = phase
        due = self._find_due_events(phase, phase_step)
        before = global_step
        try:
          summary, score, global_step = self._execute(
            sess,
            phase,
            phase_step,
            steps_in < batch,
            due['log'],
            due['report'],
          )
        except stopping.StopRequested:
          break
        made = global_step - before
        self._notify('step', phase, made, global_step)
        # All is told before it is stored: a process that is killed in between
        # tells it again, as it goes on from the checkpoint before.
        if due['report']:
          if np.isinf(score):
            raise checkpoint.not_finite(self._logdir, global_step)
          self._keep_best(sess, phase, global_step, score)
          self._notify('score', phase, epoch, global_step, score)
        if summary:
          self._write_summary(phase, epoch, steps_in, global_step, summary)
        if due['checkpoint'] or (
          self._may_checkpoint(global_step)
          and self._out_of_date(last_checkpoint)
        ):
          last_checkpoint = time.time()
          self._checkpoint(sess, global_step)
        if due['report']:
          yield score
    finally:
      self._closed = True
      for writer in writers:
        writer.close()
      self._notify('close')

  def _expected_batch(self, phase, made):
    """Number of steps below which a phase counts as just begun."""
    del made
    return phase.batch_size

  def _find_current_phase(self, global_step):
    """Phase, epoch, and steps within the phase at a global step."""
    epoch_size = sum(phase.steps for phase in self._phases)
    epoch, steps_in = divmod(int(global_step), epoch_size)
    for phase in self._phases:
      if steps_in < phase.steps:
        return phase, epoch, steps_in
      steps_in -= phase.steps
    raise AssertionError((global_step, self._phases))

  def _find_due_events(self, phase, phase_step):
    """Whether log, report and checkpoint are due in the next execution."""
    return {
      name: self._is_every_steps(phase_step, phase.batch_size, every)
      for name, every in (
        ('log', phase.log_every),
        ('report', phase.report_every),
        ('checkpoint', phase.checkpoint_every),
      )
    }

  def _write_summary(self, phase, epoch, steps_in, global_step, summary):
    # The longest phase decides, so that the phases line up in plots.
    step = epoch * max(x.steps for x in self._phases) + steps_in
    if phase.writer:
      phase.writer.add_summary(summary, step)
    self._notify('summary', phase, step, global_step, summary)

  def _is_every_steps(self, phase_step, batch, every):
    """Whether a multiple of `every` is completed by the next batch."""
    if not every:
      return False
    return (phase_step + batch) // every > phase_step // every

  def _may_checkpoint(self, global_step):
    """Whether a checkpoint by the clock makes sense at a global step."""
    del global_step
    return True

  def _out_of_date(self, last_checkpoint):
    return bool(self.checkpoint_secs) and (
      time.time() - last_checkpoint >= self.checkpoint_secs
    )

  def _checkpoint(self, sess, global_step):
    path = self._store_checkpoint(sess, global_step)
    if path:
      self._notify('checkpoint', path)

  def _keep_best(self, sess, phase, global_step, score):
    wanted = self._logdir and phase.name == self.best_phase
    if wanted and score > self._best_score:
      self._best_score = score
      self._store_best(sess, global_step, score)
      _logger.debug('Score %.4g is the best so far; kept the model.', score)

  def _notify(self, event, *args):
    for observer in self._observers:
      getattr(observer, event)(*args)
