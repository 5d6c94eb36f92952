"""Show progress and one line per epoch, and write metrics to disk."""

import logging
import math
from collections.abc import Iterable
from typing import Any, TextIO

import numpy as np

from agents.run import log, names, progress
from agents.tools import phases
from agents.tools.attr_dict import AttrDict
from planet.training import episode_folder

_logger = logging.getLogger(__name__)


class Display(phases.Observer):
  """Show phases and episodes and append scalars to `metrics.jsonl`.

  Args:
    logdir: Folder of the run.
    config: Configuration.
    stream: Text stream for the progress, standard error by default.
    mirrors: See `agents.run.log.MetricsWriter`.

  Attributes:
    record: `EpochRecord`, see `planet.library.train`.
  """

  writes_scalars = True

  def __init__(
    self,
    logdir: str,
    config: AttrDict,
    stream: TextIO | None = None,
    mirrors: Iterable[Any] = (),
  ) -> None:
    repeat = config.tasks[0].action_repeat
    self._train = episode_folder.EpisodeLog(config.train_dir, repeat)
    self._test = episode_folder.EpisodeLog(config.test_dir, repeat)
    self._train.update()
    self._test.update()
    self._seen = len(self._train.returns)
    first_step = config.get('first_step') or 0
    self.record = log.EpochRecord(logdir)
    self.record.begin(self._train.steps)
    self.record.totals['updates'] = _count_updates(config, first_step)
    self._losses: dict[str, float] = {}
    self._metrics = log.MetricsWriter(logdir, mirrors)
    # What happened after the checkpoint was lost, and happens again.
    log.cut_metrics(logdir, first_step)
    self._progress = progress.Progress(self._status, config.max_steps, stream)

  def start_phase(
    self, phase: phases.Phase, epoch: int, steps_in: int, global_step: int
  ) -> None:
    phase_step = epoch * phase.steps + steps_in
    steps = f'phase step {phase_step}, global step {global_step}'
    _logger.debug(
      f'{"-" * 50}\nEpoch {epoch + 1} phase {phase.name} ({steps}).'
    )
    self._progress.start_phase(
      f'Epoch {epoch + 1} {phase.name}', phase.steps, steps_in, global_step
    )

  def step(self, phase: phases.Phase, amount: int, global_step: int) -> None:
    self.record.totals['updates'] += phase.name == 'train'
    self._progress.update(amount, global_step)

  def score(
    self, phase: phases.Phase, epoch: int, global_step: int, score: float
  ) -> None:
    self._update()
    # The progress thread may add episodes meanwhile.
    returns, steps = list(self._train.returns), self._train.steps
    new, self._seen = returns[self._seen :], len(returns)
    values: dict[str, float] = {'episodes': len(returns)}
    train, test = 'no new episode', 'no episode ended'
    if new:
      # Exact, as episodes that end at the same time are found in any order.
      values['return'] = math.fsum(new) / len(new)
      train = f'{values["return"]:.1f} ({len(new)} episodes)'
    _logger.debug('Score %.4g.', score)
    if not math.isnan(score):
      values['test_return'] = float(score)
      test = f'{score:.1f}'
    self._progress.write(
      f'Epoch {epoch + 1}: train return {train}, test return {test}, '
      f'{steps} environment steps.'
    )
    place = {'epoch': epoch + 1, 'environment_steps': steps}
    self.record.add({**place, **values})
    scalars = self.record.summarize()
    self._metrics.write('epoch', epoch + 1, global_step, scalars, steps)
    self.record.add(self._losses)
    self.record.complete = True

  def summary(
    self, phase: phases.Phase, step: int, global_step: int, summary: bytes
  ) -> None:
    self._update()
    scalars = log.read_summary(summary)
    if phase.name == 'train':
      named = names.rename(scalars, phase.name).items()
      self._losses = {k: x for k, x in named if k.startswith('loss/')}
      if self.record.complete:
        # Without tests, this step ended the epoch.
        self.record.add(self._losses)
    if scalars:
      steps = self._train.steps
      self._metrics.write(phase.name, step, global_step, scalars, steps)

  def checkpoint(self, path: str) -> None:
    _logger.debug('Saved %s.', path)

  def close(self) -> None:
    self._progress.close()
    self._metrics.close()

  def _update(self, min_age=0.0):
    for episodes in (self._train, self._test):
      for filename in episodes.update(min_age):
        episode_folder.log_recorded(filename)

  def _status(self):
    self._update(min_age=2.0)
    returns = self._train.returns
    return {
      'env steps': self._train.steps,
      'episodes': len(returns),
      'return': f'{returns[-1]:.1f}' if returns else None,
      'disk': f'{(self._train.bytes + self._test.bytes) / 2**20:.0f}M',
    }


def _count_updates(config, step):
  """Return the number of updates up to a step, under all earlier settings."""
  names = 'train_steps', 'test_steps', 'batch_shape'
  values = {name: config[name] for name in names}
  changes = config.get('source', {}).get('changes', [])
  count = 0
  for change in [*reversed(changes), {'step': 0}]:
    begins = np.arange(change['step'], step, values['batch_shape'][0])
    epoch = values['train_steps'] + values['test_steps']
    count += int((begins % epoch < values['train_steps']).sum())
    values.update({x: change[x][0] for x in names if x in change})
    step = min(step, change['step'])
  return count
