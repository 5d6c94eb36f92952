"""What users see of a training: progress, tables, metrics."""

import os
import time
from collections.abc import Iterable, Mapping
from typing import Any

from agents.run import log, mpi, progress
from baselines_her import logger
from baselines_her.rollout import RolloutWorker


class Report:
  """Tell the first rank's user where the training is.

  Args:
    rollout_worker: Worker that explores.
    n_epochs: Number of epochs.
    n_cycles: Number of cycles per epoch.
    n_batches: Number of updates per cycle.
    state: Dict with the current `epoch` and `cycle`, kept by the caller.
    mirrors: See `agents.run.log.MetricsWriter`.
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
    self._worker = rollout_worker
    self._n_epochs = n_epochs
    self._n_cycles = n_cycles
    self._n_batches = n_batches
    self._state = state
    self._size = mpi.world().Get_size()
    self._mirrors = mirrors
    self._is_root = mpi.world().Get_rank() == 0
    self._success: float | None = None
    self._began = time.time()
    self._seconds = 0.0
    self._new_updates = 0
    self._progress: progress.Progress | None = None
    self._metrics: log.MetricsWriter | None = None

  def __enter__(self) -> 'Report':
    if self._is_root:
      self._progress = progress.Progress(
        self._describe,
        self._n_epochs * self._n_cycles * self._n_batches,
        unit='updates',
      )
      if folder := logger.get_dir():
        self._metrics = log.MetricsWriter(folder, self._mirrors)
      logger.info(
        f'World size {self._size}, {self._worker.rollout_batch_size} '
        f'environments per rank.'
      )
    return self

  def __exit__(self, *unused: Any) -> None:
    progress.set_activity('')
    if self._progress:
      self._progress.close()
    if self._metrics:
      self._metrics.close()

  def begin_epoch(self) -> None:
    """Show that an epoch begins or is continued."""
    epoch, cycle = self._state['epoch'], self._state['cycle']
    self._began, self._new_updates = time.time(), 0
    progress.set_activity('')
    if self._progress:
      self._progress.start_phase(
        f'Epoch {epoch + 1} of {self._n_epochs}',
        self._n_cycles * self._n_batches,
        cycle * self._n_batches,
        self.updates,
      )

  def end_cycle(self) -> None:
    """Show that a cycle of rollouts and updates is done."""
    self._new_updates += self._n_batches
    if self._progress:
      self._progress.update(self._n_batches, self.updates)

  def begin_evaluation(self) -> None:
    """Show that the updates of the epoch are done and evaluation begins."""
    self._seconds = time.time() - self._began
    progress.set_activity('evaluating')

  def end_epoch(self, means: Mapping[str, float]) -> None:
    """Write the row of an epoch, means over all ranks."""
    if not self._is_root:
      return
    self._success = means['test/success_rate']
    logger.logkvs({'epoch': self._state['epoch'], **means})
    logger.dumpkvs()
    rate = self._new_updates / max(1e-9, self._seconds)
    logger.info(
      f'{self.env_steps} environment steps over all ranks ({self._size}), '
      f'{rate:.3g} updates per second including rollouts.'
    )
    if self._metrics:
      scalars = {'epoch': self._state['epoch'], **means}
      scalars.update(world_size=self._size, updates_per_second=rate)
      self._metrics.write(
        'epoch', self._state['epoch'], self.updates, scalars, self.env_steps
      )

  def explain_end(self) -> None:
    """Say that a run is finished, and how to go on."""
    epochs, worker = self._state['epoch'], self._worker
    steps = self._n_cycles * worker.T * worker.rollout_batch_size
    logger.info(
      f'There is nothing to do: the run in {logger.get_dir()} has finished its '
      f'{epochs} epochs. To train it for longer, raise --num_timesteps to '
      f'{(epochs + 1) * steps} or more.'
    )

  @property
  def env_steps(self) -> int:
    """Return the steps of exploration of all ranks together."""
    return self._worker.n_episodes * self._worker.T * self._size

  @property
  def updates(self) -> int:
    """Return the number of updates."""
    cycles = self._state['epoch'] * self._n_cycles + self._state['cycle']
    return cycles * self._n_batches

  def _describe(self) -> dict[str, Any]:
    success = self._success
    return {
      'env steps': self.env_steps,
      'success rate': None if success is None else f'{success:.2f}',
    }


def forget_epochs(folder: str | None, first: int) -> None:
  """Remove the rows of epochs that a training which goes on will repeat.

  It was killed after its last checkpoint. Only the first rank has rows.

  Args:
    folder: Folder of the logger; None for nothing to do.
    first: Number of the first epoch to remove.
  """

  def keep(row: Mapping[str, Any]) -> bool:
    epoch = row.get('epoch', row.get('step'))
    return epoch in (None, '') or float(epoch) < first

  if folder is None or mpi.world().Get_rank() > 0:
    return
  table, *lines = (
    os.path.join(folder, x)
    for x in ('progress.csv', 'progress.json', 'metrics.jsonl')
  )
  if os.path.exists(table):
    log.Table(table, keep=keep)
  for path in filter(os.path.exists, lines):
    log.cut_json(path, keep)
