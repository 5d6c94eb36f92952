"""Output of a PPO run: progress, scores, and metrics on disk."""

import math
import os
import time
from collections.abc import Iterable
from typing import Any

from agents import runs
from agents.run import log, names, progress
from agents.tools import phases

_COLUMNS = (
  'phase global_step mean_score kl_change penalty wall_time episodes'.split()
)
# Values of a record that are NaN if there was nothing to measure.
_OPTIONAL = 'return', 'test_return', 'loss/value', 'loss/policy'


class Display(phases.Observer):
  """Show phases and scores, and write them to the log directory.

  Writes `scores.csv`, a line per phase, and `metrics.jsonl`, a line per
  summary. Removes lines after the first step, left by a killed run, and takes
  the values of an unfinished epoch from those before.

  Args:
    config: Configuration with `logdir`; writes nothing if that is None.
    first_step: Global step at which the run starts or continues.
    stream: Text stream for the progress, standard error by default.
    mirrors: See `agents.run.log.MetricsWriter`.

  Attributes:
    record: `EpochRecord`, complete after an evaluation, a training phase
      without one, or the last steps of a run.
  """

  writes_scalars = True

  def __init__(
    self,
    config: Any,
    first_step: int = 0,
    stream: Any = None,
    mirrors: Iterable[Any] = (),
  ) -> None:
    self._shown: dict[str, str | None]
    self._shown = dict.fromkeys(('return', 'kl', 'penalty'))
    self._config = config
    self._epoch = 0
    self.record = log.EpochRecord(config.logdir, _OPTIONAL)
    self.record.totals = {'episodes': 0, 'updates': 0}
    self.record.begin(runs.training_steps(config, first_step))
    self._metrics = self._scores = None
    if config.logdir:
      self._metrics = log.MetricsWriter(config.logdir, mirrors)
      # What happened after the checkpoint was lost, and happens again.
      log.cut_metrics(config.logdir, first_step)
      path = os.path.join(config.logdir, 'scores.csv')
      self._scores = log.Table(
        path, _COLUMNS, lambda row: _step_of(row) <= first_step
      )
      begin = first_step - first_step % sum(runs.epoch_steps(config))
      for row in log.read_table(path, ('episodes', 'mean_score')):
        self.record.totals['episodes'] = int(float(row['episodes'] or 0))
        if row['phase'] == 'train' and _step_of(row) > begin:
          self.record.add({'return': float(row['mean_score'] or math.nan)})
      for line in log.read_metrics(config.logdir):
        self._remember(line, line['global_step'] > begin)
    self._progress = progress.Progress(
      self._status, runs.total_steps(config), stream, unit='steps'
    )

  def start_phase(
    self, phase: Any, epoch: int, steps_in: int, global_step: int
  ) -> None:
    self._epoch = epoch
    self._progress.start_phase(
      f'Update {epoch + 1} {phase.name}', phase.steps, steps_in, global_step
    )

  def step(self, phase: Any, amount: int, global_step: int) -> None:
    self._progress.update(amount, global_step)

  def score(
    self, phase: Any, epoch: int, global_step: int, score: float
  ) -> None:
    config = self._config
    is_training = phase.name == 'train'
    steps = runs.training_steps(config, global_step)
    name = 'return' if is_training else 'test_return'
    self.record.add(
      {'epoch': epoch + 1, 'environment_steps': steps, name: float(score)}
    )
    if not is_training:
      self.record.complete = True
    else:
      self.record.totals['episodes'] += phase.episodes
      is_full = steps >= (epoch + 1) * runs.epoch_steps(config)[0]
      # The last steps of a run are not followed by an evaluation.
      done = not (config.eval_episodes if is_full else math.isnan(score))
      self.record.complete = done
    if not math.isnan(score):
      self._tell(phase, epoch, global_step, steps, score)
    if self._metrics and self.record.complete:
      scalars = self.record.summarize()
      self._metrics.write('epoch', epoch + 1, global_step, scalars, steps)

  def _tell(self, phase, epoch, global_step, steps, score):
    """Show a score, and write it to disk."""
    self._shown['return'] = f'{phase.name} {score:.1f}'
    self._progress.write(
      f'Return {score:.2f}. Update {epoch + 1} {phase.name}, '
      f'{steps} environment steps.'
    )
    if self._scores:
      row: dict[str, Any] = {
        'phase': phase.name,
        'global_step': global_step,
        'mean_score': score,
        'wall_time': f'{time.time():.3f}',
        'episodes': self.record.totals['episodes'],
      }
      # The update of a training phase follows its score.
      if phase.name != 'train':
        row['kl_change'] = self._shown['kl']
        row['penalty'] = self._shown['penalty']
      self._scores.append(row)

  def summary(
    self, phase: Any, step: int, global_step: int, summary: Any
  ) -> None:
    scalars = log.read_summary(summary)
    steps = runs.training_steps(self._config, global_step)
    if self._remember(names.rename(scalars, phase.name)):
      values = {tag.rpartition('/')[2]: x for tag, x in scalars.items()}
      self._progress.write(
        f'Update {self._epoch + 1}, {steps} environment steps: '
        f'{describe_update(values)}.'
      )
    if self._metrics and scalars:
      self._metrics.write(phase.name, step, global_step, scalars, steps)

  def _remember(self, scalars, in_epoch=True):
    """Remember an update; return whether the scalars are those of one."""
    if 'update/kl_change' not in scalars:
      return False
    self._shown['kl'] = f'{scalars["update/kl_change"]:.3g}'
    self._shown['penalty'] = f'{scalars.get("update/penalty", math.nan):.3g}'
    self.record.totals['updates'] += self._config.update_epochs
    for name in ('loss/value', 'loss/policy') if in_epoch else ():
      self.record.add({name: scalars.get(name, math.nan)})
    return True

  def checkpoint(self, path: str) -> None:
    self._progress.write(f'Saved {path}.')

  def close(self) -> None:
    self._progress.close()
    if self._metrics:
      self._metrics.close()

  def _status(self):
    return {k: v for k, v in self._shown.items() if v is not None}


def describe_update(values: dict[str, float]) -> str:
  """Return the values that the original prints during an update, in one line.

  The 'return' of the original is the mean value target over all steps, not the
  return of an episode.

  Args:
    values: Dict from the last part of a tag to a number. Missing values are
      left out.
  """
  parts = [
    f'{label} {values[key]:.3g}'
    for key, label in (
      ('mean_return', 'value target'),
      ('mean_value', 'value'),
      ('normalized_advantage', 'normalized advantage'),
      ('mean_value_loss', 'value loss'),
      ('mean_policy_loss', 'policy loss'),
      ('kl_change', 'kl change'),
      ('current_penalty', 'current penalty'),
    )
    if key in values
  ]
  new, old = values.get('penalty'), values.get('current_penalty')
  if old is not None and new is not None and old != new:
    word = 'increase' if new > old else 'decrease'
    parts.append(f'{word} penalty to {new:.3g}')
  episodes = values.get('kl_cutoff_episodes', 0)
  if episodes:
    parts.append(f'kl cutoff! ({episodes:.3g} episodes per epoch)')
  return ', '.join(parts)


def _step_of(row):
  """Return the global step of a row, infinity for a damaged one."""
  complete = row.get('wall_time', True) and row.get('global_step')
  try:
    return int(row['global_step']) if complete else math.inf
  except ValueError:
    return math.inf
