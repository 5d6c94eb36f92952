"""From folders of runs to `results`: curves, records, agents, figures."""

import json
import os
import shutil
from typing import Any

from agents.run import files, plot
from scripts.reproductions import curves, figures, shipping, tables, training
from scripts.reproductions.entry import Entry, load


def summarize(entry: Entry, out: str, folder: str, results: str) -> bool:
  """Write curve, figure and a line per seed of what lies in a folder of runs.

  Seeds that `folder` has and `out` has not stay as they are.

  Args:
    entry: What was trained.
    out: Folder of all runs.
    folder: Folder to write to.
    results: Folder of all results, for the curves to compare with.

  Returns:
    Whether there is any evaluation.
  """
  path = os.path.join(folder, curves.FILE)
  found, collected = curves.read(path), curves.read(path, curves.COLLECTED)
  runs = tables.read_runs(folder)
  references = curves.read_reference(entry, results)
  for seed in training.find_seeds(entry, out):
    place = training.make_folder(entry, seed, out)
    run = os.path.join(place, 'run')
    points = curves.read_run(entry, run)
    if not len(points[0]):
      continue
    found[seed] = points
    if entry.shows_collected:
      collected[seed] = curves.read_collected(entry, run)
    runs[seed] = _make_line(entry, place, points, references.get(seed))
  if not runs:
    return False
  curves.write(path, found, collected)
  with files.atomic_write(os.path.join(folder, tables.RUNS)) as file_:
    json.dump({str(k): runs[k] for k in sorted(runs)}, file_, indent=1)
  figures.draw_entry(entry, folder, results)
  return True


def collect(out: str, results: str) -> None:
  """Copy all runs of a folder to `results`, and write the tables anew."""
  for entry in load().values():
    if not training.find_seeds(entry, out):
      continue
    summarize(entry, out, os.path.join(results, entry.name), results)
    if entry.check:
      place = training.make_folder(entry, entry.check.seed, out)
      exported = os.path.join(place, 'agent')
      if os.path.exists(exported):
        target = os.path.join(results, shipping.AGENTS, entry.name)
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(exported, target)
  tables.write(results)


def _make_line(
  entry: Entry,
  folder: str,
  points: plot.Points,
  reference: plot.Points | None,
) -> dict[str, Any]:
  """Return what the tables and their readers want to know of a seed."""
  record = training.read_record(folder)
  sittings, evaluation = record['sittings'], record.get('evaluation')
  played = evaluation and evaluation['mean']
  hours = {
    f'{x}_hours': round(sum(y[f'{x}_seconds'] for y in sittings) / 3600, 3)
    for x in ('wall', 'cpu')
  }
  return {
    'command': record['command'],
    'complete': record['complete'],
    **tables.make_line(entry, points, reference, played),
    **hours,
    'sittings': len(sittings),
    **{key: sittings[-1][key] for key in ('processor', 'versions', 'commit')},
    'evaluation': evaluation,
  }
