"""Output of a training: progress, tables and metrics."""

import contextlib
import os
import time
from collections.abc import Iterable, Mapping
from typing import Any

from agents.run import log, mpi, progress
from baselines_her import logger
from baselines_her.rollout import RolloutWorker


class Report(contextlib.ExitStack):
  """Show the progress of the training to the user of the first rank.

  Args:
    rollout_worker: Worker that explores.
    n_epochs: Number of epochs.
    n_cycles: Number of cycles per epoch.
    n_batches: Number of updates per cycle.
    state: Dict with the current `epoch` and `cycle`, updated by the caller.
    mirrors: See `agents.run.log.MetricsWriter`.

  Attributes:
    record: `EpochRecord`, the same on all ranks.
  """

  def __init__(
    self,
    rollout_worker: RolloutWorker,
    n_epochs: int,
    n_cycles: int,
    n_batches: int,
    state: dict[str, Any],
    mirrors: Iterable[Any] = (),
  ):
    super().__init__()
    self._worker, self._state = rollout_worker, state
    self._n_epochs, self._n_cycles = n_epochs, n_cycles
    self._n_batches = n_batches
    self._size = mpi.world().Get_size()
    self._is_root = mpi.world().Get_rank() == 0
    self._began, self._rate, self._first = 0.0, 0.0, 0
    self.record = log.EpochRecord(logger.get_dir())
    self._metrics: log.MetricsWriter | None = None
    self.callback(progress.set_activity, '')
    if not self._is_root:
      return
    self._progress = progress.Progress(
      lambda: {'env steps': self.env_steps},
      n_epochs * n_cycles * n_batches,
      unit='updates',
    )
    self.callback(self._progress.close)
    if folder := logger.get_dir():
      self._metrics = log.MetricsWriter(folder, mirrors)
      self.callback(self._metrics.close)

  @property
  def env_steps(self) -> int:
    """Return the number of exploration steps over all ranks."""
    return self._worker.n_episodes * self._worker.T * self._size

  @property
  def updates(self) -> int:
    """Return the number of updates."""
    cycles = self._state['epoch'] * self._n_cycles + self._state['cycle']
    return cycles * self._n_batches

  def begin_epoch(self) -> None:
    """Show that an epoch starts or continues."""
    self._began, self._first = time.monotonic(), self.updates
    self.record.begin(self.env_steps)
    progress.set_activity('')
    if self._is_root:
      self._progress.start_phase(
        f'Epoch {self._state["epoch"] + 1} of {self._n_epochs}',
        self._n_cycles * self._n_batches,
        self._state['cycle'] * self._n_batches,
        self.updates,
      )

  def end_cycle(self) -> None:
    """Show that a cycle of rollouts and updates is done."""
    if self._is_root:
      self._progress.update(self._n_batches, self.updates)

  def begin_evaluation(self) -> None:
    """Show that evaluation starts after the updates of the epoch."""
    seconds = max(1e-9, time.monotonic() - self._began)
    self._rate = (self.updates - self._first) / seconds
    progress.set_activity('evaluating')

  def end_epoch(
    self, means: Mapping[str, float], more: Mapping[str, float]
  ) -> None:
    """Write the row of an epoch, and complete its record.

    Args:
      means: Values of the row by name, means over all ranks.
      more: Further values of the record.
    """
    epoch = self._state['epoch']
    self.record.add(
      {
        'epoch': epoch + 1,
        'environment_steps': self.env_steps,
        'episodes': self._worker.n_episodes * self._size,
        'updates': self.updates,
        **more,
        'success_rate': means['train/success_rate'],
        'test_success_rate': means['test/success_rate'],
      }
    )
    self.record.complete = True
    if not self._is_root:
      return
    row = {'epoch': epoch, **means}
    logger.logkvs(row)
    logger.dumpkvs()
    logger.info(
      f'{self.env_steps} environment steps over all ranks ({self._size}), '
      f'{self._rate:.3g} updates per second including rollouts.'
    )
    if self._metrics:
      scalars = {
        **means,
        **self.record.summarize(),
        'world_size': self._size,
        'updates_per_second': self._rate,
      }
      self._metrics.write('epoch', epoch, self.updates, scalars, self.env_steps)

  def explain_end(self) -> str:
    """Return a sentence that says that nothing is left, and how to continue."""
    worker = self._worker
    epoch = self._n_cycles * worker.T * worker.rollout_batch_size * self._size
    return (
      f'Nothing to do: the run in {logger.get_dir()} has {self.env_steps} '
      f'environment steps, and an epoch has {epoch}. Raise total_env_steps to '
      f'{self.env_steps + epoch} or more to continue training.'
    )


def forget_epochs(folder: str, first: int, updates: int) -> None:
  """Remove the rows of epochs that a continued training will repeat.

  A training that was killed has rows that are newer than its last checkpoint.
  Only the first rank has rows.

  Args:
    folder: Folder of the logger.
    first: First epoch to remove.
    updates: Number of updates before that epoch.
  """

  def keep(row: Any) -> bool:
    try:
      return float(row['epoch']) < first
    except (TypeError, KeyError, ValueError):
      # The row is not one of an epoch.
      return True

  log.cut_metrics(folder, updates)
  table, lines = (
    os.path.join(folder, f'progress.{x}') for x in ('csv', 'json')
  )
  if os.path.exists(table):
    log.Table(table, keep=keep)
  if os.path.exists(lines):
    log.cut_json(lines, keep)
