"""Curves: read from the folders of runs, kept as CSV in `results`.

All files have the columns of PPO's `scores.csv` that count: `seed`,
`global_step` in environment steps, `phase`, and `mean_score`, which is a return
or a success rate. So `agents.plot_scores` reads every one of them.
"""

import fnmatch
import os

import numpy as np

from agents import plot_scores
from agents.pipeline import plot as pipeline_plot
from agents.run import errors, log, plot
from baselines_her import plot as her_plot
from planet.scripts import plot as planet_plot
from scripts.reproductions.entry import SESSION, Entry

# Phases: tests, and the episodes that a training collects.
EVALUATED = 'eval'
COLLECTED = 'train'
FILE = 'curve.csv'
EMPTY = (np.zeros(0), np.zeros(0))


def read_run(entry: Entry, run: str, phase: str = EVALUATED) -> plot.Points:
  """Return the evaluations that a run has made so far.

  Args:
    entry: What was trained.
    run: Folder of the run.
    phase: `COLLECTED` for the episodes that a run of PlaNet on one task has
      collected instead. There are more of them, their actions have the noise
      that explores, and the random ones of the beginning do not count.
  """
  try:
    if entry.system == 'ppo':
      curves, name = plot_scores.load_runs(run, phase)[0].curves, phase
    elif entry.system == 'her':
      curves, name = her_plot.load_runs([run], 'steps')[0].curves, '*'
    elif entry.system == 'planet':
      (folder,) = plot.find_runs([run], 'config.yaml', 'metrics.jsonl')
      curves = planet_plot.load_run(folder).curves
      name = 'returns/test' if phase == EVALUATED else 'returns/train_*'
    else:
      curves = pipeline_plot.load_curves(os.path.join(run, SESSION), 'frame')
      kind = 'reward' if entry.measure == 'return' else 'success'
      name = f'*{kind}/test*'
    steps, values = curves[fnmatch.filter(curves, name)[0]]
  except (errors.UsageError, OSError, ValueError, IndexError):
    # There is nothing yet.
    return EMPTY
  return steps, values / entry.reward_scale


def write(path: str, phases: dict[str, dict[int, plot.Points]]) -> None:
  """Write the curves of all phases by seed, completely or not at all."""
  log.write_table(
    path,
    ('seed', 'global_step', 'phase', 'mean_score'),
    [
      (seed, int(step), phase, f'{value:.6g}')
      for phase, curves in phases.items()
      for seed, points in sorted(curves.items())
      for step, value in zip(*points)
    ],
  )


def read(path: str, phase: str = EVALUATED) -> dict[int, plot.Points]:
  """Return the curves of a file by seed; none without such a file."""
  if not os.path.exists(path):
    return {}
  found = plot.read_seeds(path, 'global_step', 'mean_score', phase)
  return {int(seed or 0): points for seed, points in found.items()}


def read_reference(entry: Entry, results: str) -> dict[int, plot.Points]:
  """Return the curves to compare with by seed; none if there are none.

  Args:
    entry: Entry with the name of a file, or of another entry.
    results: Folder of all results.
  """
  if not entry.reference:
    return {}
  if not entry.reference.endswith('.csv'):
    return read(os.path.join(results, entry.reference, FILE))
  path = os.path.join(results, 'reference', entry.reference)
  if entry.system != 'her':
    return read(path)
  found = plot.read_seeds(path, 'timesteps', 'test_success_rate')
  return {int(seed or 0): points for seed, points in found.items()}
