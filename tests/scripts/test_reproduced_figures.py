"""Figures of results: published values beside the curve."""

import numpy as np
import pytest

from agents.run import plot
from scripts.reproductions import curves
from scripts.reproductions import entries
from scripts.reproductions import figures

LABELLED = [x for x in entries.ENTRIES.values() if x.levels]


def test_published_values_are_drawn(tmp_path, monkeypatch):
  """Each has a line of its own from edge to edge, told apart by its label."""
  saved = []
  monkeypatch.setattr(plot, 'save', lambda figure, path: saved.append(figure))
  entry = entries.ENTRIES['planet_default']
  steps = np.array([11000.0, 21000.0])
  curves.write(str(tmp_path / curves.FILE), {0: (steps, np.array([30, 90]))})
  figures.draw_entry(entry, str(tmp_path), str(tmp_path))
  (axes,) = saved[0].axes
  lines = {x.get_label(): x for x in axes.get_lines()}
  assert list(lines) == [
    'ours',
    'published at 100k steps: 297',
    'published at 500k steps: 475',
    'published at 1M steps: 821',
  ]
  published = list(lines.values())[1:]
  assert [x.get_ydata()[0] for x in published] == [297, 475, 821]
  assert len({x.get_linestyle() for x in published}) == 3
  # They do not stretch the abscissa, but are seen.
  low, high = axes.get_xlim()
  assert 10000 < low and high < 22000
  assert axes.get_ylim()[1] > 821


@pytest.mark.parametrize('entry', LABELLED, ids=lambda x: x.name)
def test_values_are_those_of_the_table(entry):
  """What is drawn is what the column `published` says."""
  assert all(f'{x:g}' in entry.published for x in entry.levels.values())
