"""Figures of results: ours over the original's."""

import os

from agents.run import plot
from scripts.reproductions import curves
from scripts.reproductions.entry import Entry, load

FILE = 'curve.png'


def draw(results: str) -> list[str]:
  """Draw the figures of all results; return their paths."""
  folders = {os.path.join(results, x.name): x for x in load().values()}
  return [
    draw_entry(entry, folder, results)
    for folder, entry in folders.items()
    if os.path.exists(os.path.join(folder, curves.FILE))
  ]


def draw_entry(entry: Entry, folder: str, results: str) -> str:
  """Draw a result over the curves and values to compare with.

  Args:
    entry: What was trained.
    folder: Folder with the curve, and of the figure.
    results: Folder of all results.

  Returns:
    Path of the figure.
  """
  path = os.path.join(folder, curves.FILE)
  name = entry.reference
  groups = {
    'ours': curves.read(path),
    'ours, collected with noise': curves.read(path, curves.COLLECTED),
    'original code' if name.endswith('.csv') else name: (
      curves.read_reference(entry, results)
    ),
  }
  style = plot.Style(
    ylabel=entry.measure,
    ylim=(-0.02, 1.04) if entry.measure == 'success rate' else None,
    quartiles=True,
    levels=entry.levels,
  )
  lines = {k: list(v.values()) for k, v in groups.items() if v}
  figure = plot.draw(entry.meaning, lines, style)
  return plot.save(figure, os.path.join(folder, FILE))
