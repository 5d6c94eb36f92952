"""Figures of results: ours over the original's, and four panels for README."""

import dataclasses
import os

from agents.run import plot
from scripts.reproductions import curves, tables
from scripts.reproductions.entry import Entry, load

# File of the figure near the top of README.
PANELS = 'panels.png'
_TITLES = ('PlaNet', 'PPO', 'HER', 'CARLA')
# Curves of a panel whose lengths differ by more have a logarithmic abscissa.
_SPREAD = 10


def draw(results: str) -> list[str]:
  """Draw the figures of all results, and the panels; return their paths."""
  paths = []
  for entry in load().values():
    folder = os.path.join(results, entry.name)
    if os.path.exists(os.path.join(folder, curves.FILE)):
      paths.append(draw_entry(entry, folder, results))
  return [*paths, *draw_panels(results)]


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
  name = 'original code'
  if not entry.reference.endswith('.csv'):
    name = entry.reference
  groups = {
    'ours': curves.read(path),
    'ours, collected with noise': curves.read(path, curves.COLLECTED),
    name: curves.read_reference(entry, results),
  }
  lines = {k: list(v.values()) for k, v in groups.items() if v}
  style = dataclasses.replace(_make_style(entry), levels=entry.levels)
  figure = plot.draw(entry.meaning, lines, style)
  return plot.save(figure, os.path.join(folder, tables.FIGURE))


def draw_panels(results: str) -> list[str]:
  """Draw the panels of README; return the path, none without any curve."""
  panels = []
  for title in _TITLES:
    groups, styles = {}, []
    for entry in load().values():
      ours = curves.read(os.path.join(results, entry.name, curves.FILE))
      if entry.panel == title and ours:
        references = curves.read_reference(entry, results)
        groups[entry.name] = list(ours.values())
        if references:
          name = f'{entry.name}, original code'
          groups[name] = list(references.values())
        styles.append(_make_style(entry))
    if styles:
      ends = [max(x[-1] for x, _ in runs) for runs in groups.values()]
      spread = max(ends) > _SPREAD * min(ends)
      style = dataclasses.replace(styles[0], logarithmic=spread)
      panels.append((title, groups, style))
  if not panels:
    return []
  return [plot.save(plot.draw_panels(panels), os.path.join(results, PANELS))]


def _make_style(entry):
  """Return how the curves of an entry are drawn: median and quartiles."""
  success = entry.measure == 'success rate'
  return plot.Style(
    ylabel=entry.measure,
    ylim=(-0.02, 1.04) if success else None,
    quartiles=True,
  )
