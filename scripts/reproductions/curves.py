"""Curves: read from the folders of runs, kept as CSV in `results`.

All files have the columns of PPO's `scores.csv` that count: `seed`,
`global_step` in environment steps, `phase`, and `mean_score`, which is a return
or a success rate. So `agents.plot_scores` reads every one of them.
"""

import os

import numpy as np

from agents import plot_scores
from agents.pipeline import plot as pipeline_plot
from agents.run import errors, log, plot
from baselines_her import plot as her_plot
from planet.scripts import plot as planet_plot
from scripts.reproductions.entry import Entry, find_session

COLUMNS = ('seed', 'global_step', 'phase', 'mean_score')
# Phases: tests, and the episodes that a training collects.
EVALUATED = 'eval'
COLLECTED = 'train'
FILE = 'curve.csv'
# Original code on today's machine.
REFERENCES = 'reference'
EMPTY = (np.zeros(0), np.zeros(0))


def read_run(entry: Entry, run: str) -> plot.Points:
  """Return the evaluations that a run has made so far.

  Args:
    entry: What was trained.
    run: Folder of the run.
  """
  try:
    if entry.system == 'ppo':
      return plot_scores.load_runs(run, EVALUATED)[0].curves[EVALUATED]
    if entry.system == 'her':
      found = her_plot.load_runs([run], 'steps')[0].curves
      return next(iter(found.values()))
    if entry.system == 'planet':
      (folder,) = plot.find_runs([run], 'config.yaml', 'metrics.jsonl')
      steps, returns = planet_plot.load_run(folder).curves['returns/test']
      return steps, returns / entry.reward_scale
    session = find_session(run)
    found = pipeline_plot.load_curves(session, 'frame') if session else {}
    name = 'success/test' if entry.measure != 'return' else 'reward/test'
    return next(y for x, y in found.items() if name in x)
  except (errors.UsageError, OSError, ValueError, KeyError, StopIteration):
    # Nothing has been evaluated yet.
    return EMPTY


def read_collected(entry: Entry, run: str) -> plot.Points:
  """Return the episodes that a run of PlaNet has collected so far.

  There are more of them than tests. Their actions have the noise that explores,
  and the random ones of the beginning do not count.

  Args:
    entry: What was trained, on one task.
    run: Folder of the run.
  """
  try:
    (folder,) = plot.find_runs([run], 'config.yaml', 'metrics.jsonl')
    events = log.iterate_events(os.path.join(folder, 'scalars'))
    found = [(x[1], x[3]) for x in events if x[2].startswith('returns/train_')]
  except (OSError, ValueError):
    # Nothing has been collected yet.
    return EMPTY
  steps, returns = np.reshape(found, (-1, 2)).T
  return plot.make_points(steps, returns / entry.reward_scale)


def write(
  path: str,
  evaluated: dict[int, plot.Points],
  collected: dict[int, plot.Points],
) -> None:
  """Write the curves of all seeds, completely or not at all."""
  log.write_table(
    path,
    COLUMNS,
    [
      (seed, int(step), phase, f'{value:.6g}')
      for phase, curves in ((EVALUATED, evaluated), (COLLECTED, collected))
      for seed, points in sorted(curves.items())
      for step, value in zip(*points)
    ],
  )


def read(path: str, phase: str = EVALUATED) -> dict[int, plot.Points]:
  """Return the curves of a file by seed; none without such a file."""
  if not os.path.exists(path):
    return {}
  column = COLUMNS[-1]
  seeds: dict[int, list[tuple[float, float]]] = {}
  for row in log.read_table(path):
    if row['phase'] == phase and row[column]:
      point = float(row['global_step'] or 0), float(row[column] or 0)
      seeds.setdefault(int(row.get('seed') or 0), []).append(point)
  return {k: plot.make_points(*zip(*v)) for k, v in seeds.items()}


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
  path = os.path.join(results, REFERENCES, entry.reference)
  if entry.system != 'her':
    return read(path)
  found = her_plot.load_reference(path, ['curve'], 'steps')
  return {seed: run.curves['curve'] for seed, run in enumerate(found)}
