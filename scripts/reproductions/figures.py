"""Figures of results: ours over the original's, and four panels for README."""

import dataclasses
import os
from typing import Any

from agents.run import plot
from scripts.reproductions import curves, entries, tables
from scripts.reproductions.entry import Entry

# File of the figure near the top of README.
PANELS = 'panels.png'
_TITLES = ('PlaNet', 'PPO', 'HER', 'CARLA')
# Curves of a panel whose lengths differ by more have a logarithmic abscissa.
_SPREAD = 10


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
  groups = {'ours': list(curves.read(path).values())}
  collected = curves.read(path, curves.COLLECTED)
  if collected:
    groups['ours, collected with noise'] = list(collected.values())
  references = list(curves.read_reference(entry, results).values())
  if references:
    is_ours = not entry.reference.endswith('.csv')
    groups[entry.reference if is_ours else 'original code'] = references
  style = dataclasses.replace(make_style(entry), levels=entry.levels)
  figure = plot.draw(entry.meaning, groups, style)
  return plot.save(figure, os.path.join(folder, tables.FIGURE))


def make_style(entry: Entry) -> plot.Style:
  """Return how the curves of an entry are drawn: median and quartiles."""
  success = entry.measure == 'success rate'
  return plot.Style(
    ylabel=entry.measure,
    ylim=(-0.02, 1.04) if success else None,
    quartiles=True,
  )


def draw_panels(results: str) -> str | None:
  """Draw the four panels of README from the curves that there are.

  Args:
    results: Folder of all results.

  Returns:
    Path of the figure; None if there is no curve yet.
  """
  panels: list[tuple[str, dict[str, Any], plot.Style]] = []
  for title in _TITLES:
    groups: dict[str, Any] = {}
    style = None
    for entry in entries.ENTRIES.values():
      if entry.panel != title:
        continue
      ours = list(curves.read_ours(entry, results).values())
      if not ours:
        continue
      groups[entry.name] = ours
      style = style or make_style(entry)
      references = list(curves.read_reference(entry, results).values())
      if references:
        groups[f'{entry.name}, original code'] = references
    if style:
      ends = [max(x[-1] for x, _ in runs) for runs in groups.values()]
      spread = max(ends) > _SPREAD * min(ends)
      style = dataclasses.replace(style, logarithmic=spread)
      panels.append((title, groups, style))
  if not panels:
    return None
  return plot.save(plot.draw_panels(panels), os.path.join(results, PANELS))
