"""From folders of runs to `results`: curves, records, agents, figures."""

import json
import os
import shutil
from typing import Any

from agents.run import files, plot
from scripts.reproductions import (
  curves,
  entries,
  figures,
  shipping,
  tables,
  training,
)
from scripts.reproductions.entry import Entry


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
    reference = references.get(seed)
    runs[seed] = _make_line(entry, place, points, reference)
  if not runs:
    return False
  curves.write(path, found, collected)
  with files.atomic_write(os.path.join(folder, tables.RUNS)) as file_:
    json.dump({str(k): runs[k] for k in sorted(runs)}, file_, indent=1)
  figures.draw_entry(entry, folder, results)
  return True


def collect(out: str, results: str) -> None:
  """Take over all runs of a folder, and write the table anew.

  Args:
    out: Folder of all runs.
    results: Folder of all results.
  """
  for entry in entries.ENTRIES.values():
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
  with files.atomic_write(os.path.join(results, 'README.md')) as file_:
    file_.write(tables.make_readme(results))


def draw(results: str) -> list[str]:
  """Draw the figures of all results, and the panels of README.

  Args:
    results: Folder of all results.

  Returns:
    Paths of the figures.
  """
  paths = []
  for entry in entries.ENTRIES.values():
    folder = os.path.join(results, entry.name)
    if os.path.exists(os.path.join(folder, curves.FILE)):
      paths.append(figures.draw_entry(entry, folder, results))
  panels = figures.draw_panels(results)
  return [*paths, *([panels] if panels else [])]


def _make_line(
  entry: Entry,
  folder: str,
  points: plot.Points,
  reference: plot.Points | None,
) -> dict[str, Any]:
  """Return what the table and its readers want to know of a seed."""
  record = training.read_record(folder)
  sittings = record['sittings']
  evaluation = record.get('evaluation')
  played = evaluation and evaluation['mean']
  return {
    'command': record['command'],
    'complete': record['complete'],
    **tables.make_line(entry, points, reference, played),
    'wall_hours': round(sum(x['wall_seconds'] for x in sittings) / 3600, 3),
    'cpu_hours': round(sum(x['cpu_seconds'] for x in sittings) / 3600, 3),
    'sittings': len(sittings),
    **{key: sittings[-1][key] for key in ('processor', 'versions', 'commit')},
    'evaluation': evaluation,
  }
