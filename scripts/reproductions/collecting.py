"""Collect curves, records, agents and figures of trainings in `results`."""

import math
import os
import shutil
from typing import Any

import numpy as np

from agents.run import files, plot
from scripts.reproductions import (
  bars,
  curves,
  figures,
  shipping,
  tables,
  training,
)
from scripts.reproductions.entry import Entry, load


def reproduce(entry: Entry, seed: int | None, out: str, results: str) -> None:
  """Train, evaluate, and write and print the results.

  Args:
    entry: Entry to train.
    seed: Seed, by default the first one.
    out: Folder of all runs.
    results: Folder of all results, with the reference curves.
  """
  seed = entry.seeds[0] if seed is None else seed
  trial = training.Trial(entry, seed, out)
  try:
    training.train(trial)
    shipping.evaluate(trial)
  finally:
    runs = summarize(entry, out, os.path.dirname(trial.folder), results)
    if runs:
      print(f'{entry.name}: {tables.describe(entry, runs)}')


def summarize(entry: Entry, out: str, folder: str, results: str) -> tables.Runs:
  """Write curve, figure and records of the runs of an entry.

  Keeps seeds in `folder` that are not in `out`.

  Args:
    entry: Entry of the runs.
    out: Folder of all runs.
    folder: Folder to write to.
    results: Folder of all results, with the reference curves.

  Returns:
    Records by seed, empty before the first evaluation.
  """
  path = os.path.join(folder, curves.FILE)
  names = curves.EVALUATED, curves.COLLECTED
  phases = {name: curves.read(path, name) for name in names}
  runs = tables.read_runs(folder)
  references = curves.read_reference(entry, results)
  for trial in training.find(entry, out):
    seed, record = trial.seed, trial.read()
    if _should_skip(trial, record, runs.get(seed)):
      continue
    points = curves.read_run(entry, trial.run)
    if len(points[0]):
      phases[curves.EVALUATED][seed] = points
      if entry.shows_collected:
        collected = curves.read_run(entry, trial.run, curves.COLLECTED)
        phases[curves.COLLECTED][seed] = collected
      runs[seed] = make_line(entry, record, points, references.get(seed))
  if runs:
    curves.write(path, phases)
    _write_runs(folder, runs)
    figures.draw_entry(entry, folder, results)
  return runs


def _write_runs(folder, runs):
  rows = {str(k): runs[k] for k in sorted(runs)}
  files.write_json(os.path.join(folder, tables.RUNS), rows, indent=1)


def judge_again(entry: Entry, results: str) -> None:
  """Judge all seeds, as bar or reference may have changed."""
  folder = os.path.join(results, entry.name)
  found = curves.read(os.path.join(folder, curves.FILE))
  references = curves.read_reference(entry, results)
  runs = tables.read_runs(folder)
  for seed, run in runs.items():
    points = found[seed]
    if entry.bar.kind == 'played':
      # NaN where no agent has played yet.
      points = points[0][-1:], np.array([run['measured']], float)
    run['reached'] = bars.judge(entry.bar, points, references.get(seed))
  if runs:
    _write_runs(folder, runs)


def _should_skip(trial, record, known):
  """Return whether a run does not replace the known record; say why."""
  if not trial.matches(record):
    print(f'Skipped {trial.folder}, another training: {record["command"]}.')
    return True
  if known and known['complete'] and not record['complete']:
    print(f'Skipped {trial.folder}: a complete run of this seed is known.')
    return True
  return False


def collect(out: str, results: str) -> None:
  """Copy the results of all runs to `results` and update the tables."""
  for entry in load().values():
    if training.find(entry, out):
      summarize(entry, out, os.path.join(results, entry.name), results)
    judge_again(entry, results)
    if entry.check:
      trial = training.Trial(entry, entry.check.seed, out)
      record = trial.read()
      done = record['complete'] and trial.matches(record)
      if done and os.path.exists(trial.exported):
        target = os.path.join(results, shipping.AGENTS, entry.name)
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(trial.exported, target)
  tables.write(results)


def make_line(
  entry: Entry,
  record: dict[str, Any],
  points: plot.Points,
  reference: plot.Points | None,
) -> dict[str, Any]:
  """Return the record of a seed for `runs.json` and the tables.

  Args:
    entry: Entry of the run.
    record: Result of `training.Trial.read`.
    points: Curve of the seed.
    reference: Reference curve, or None.
  """
  sittings, evaluation = record['sittings'], record.get('evaluation')
  steps, judged = points[0], points
  if entry.bar.kind == 'played':
    played = evaluation['mean'] if evaluation else math.nan
    judged = steps[-1:], np.array([played])
  measured = bars.measure(entry.bar, judged)
  seconds = {
    name: sum(x[f'{name}_seconds'] for x in sittings)
    for name in ('wall', 'cpu')
  }
  return {
    'command': record['command'],
    'complete': record['complete'],
    'steps': int(steps[-1]),
    # JSON has no infinity.
    'measured': measured if math.isfinite(measured) else None,
    'reached': bars.judge(entry.bar, judged, reference),
    **{f'{name}_hours': round(x / 3600, 3) for name, x in seconds.items()},
    'sittings': len(sittings),
    **{key: sittings[-1][key] for key in ('processor', 'versions', 'commit')},
    'evaluation': evaluation,
  }
