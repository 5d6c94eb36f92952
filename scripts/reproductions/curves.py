"""Learning curves: read from runs, stored as CSV in `results`.

All files have these columns of PPO's `scores.csv`, so `agents.plot_scores` can
read them: `seed`, `global_step` in environment steps, `phase`, and
`mean_score`, a return or success rate.
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

# Phases: evaluations, and episodes collected for training.
EVALUATED = 'eval'
COLLECTED = 'train'
FILE = 'curve.csv'


def read_run(entry: Entry, run: str, phase: str = EVALUATED) -> plot.Points:
  """Return the evaluations of a run so far.

  Args:
    entry: Entry of the run.
    run: Folder of the run.
    phase: `COLLECTED` for the training episodes of a PlaNet run on one task
      instead, which are more frequent and include exploration noise, without
      the initial random episodes.
  """
  try:
    if entry.system == 'ppo':
      curves, name = plot_scores.load_runs(run, phase)[0].curves, phase
    elif entry.system == 'her':
      curves, name = her_plot.load_runs([run], 'steps')[0].curves, '*'
    elif entry.system == 'planet':
      (folder,) = plot.find_runs([run], 'config.yaml', 'metrics.jsonl')
      curves = planet_plot.load_run(folder).curves
      name = 'return/test' if phase == EVALUATED else 'return/train_*'
    else:
      curves = pipeline_plot.load_curves(os.path.join(run, SESSION), 'frame')
      kind = 'reward' if entry.measure == 'return' else 'success'
      name = f'*{kind}/test*'
    steps, values = curves[fnmatch.filter(curves, name)[0]]
  except (errors.UsageError, OSError, ValueError, IndexError):
    # No evaluation yet.
    return np.zeros(0), np.zeros(0)
  return steps, values / entry.reward_scale


def write(path: str, phases: dict[str, dict[int, plot.Points]]) -> None:
  """Write the curves of all phases by seed, atomically."""
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
  """Return the curves of a file by seed; empty if the file is missing."""
  if not os.path.exists(path):
    return {}
  found = plot.read_seeds(path, 'global_step', 'mean_score', phase)
  return {int(seed or 0): points for seed, points in found.items()}


def read_reference(entry: Entry, results: str) -> dict[int, plot.Points]:
  """Return the reference curves by seed; empty without a reference.

  Args:
    entry: Entry with the name of a reference file or another entry.
    results: Folder of all results.
  """
  if not entry.reference:
    return {}
  if not entry.has_original:
    return read(os.path.join(results, entry.reference, FILE))
  path = os.path.join(results, 'reference', entry.reference)
  if entry.system != 'her':
    return read(path)
  found = plot.read_seeds(path, 'timesteps', 'test_success_rate')
  return {int(seed or 0): points for seed, points in found.items()}
