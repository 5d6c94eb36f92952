"""Figures of `agents.pipeline.plot`."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from agents.run import plot

AXES = {
  'epoch': 'Epoch',
  'frame': 'Environment frames',
  'episode': 'Episodes',
}
_OWN, _INNER = '#2b6ca3', '#b9d3e8'
_MOST_RUNS = 12


def make_labels(groups: Sequence[Sequence[str]]) -> list[str]:
  """Choose short names of groups of sessions.

  Args:
    groups: List of lists of paths.

  Returns:
    List of names: that of the session, or the common beginning of several.
  """
  labels = []
  for group in groups:
    names = [os.path.basename(os.path.normpath(x)) for x in group]
    common = os.path.commonprefix(names).rstrip('_-. ')
    labels.append(names[0] if len(names) == 1 else common or names[0])
  if len(set(labels)) < len(labels):
    labels = [f'{i + 1}: {label}' for i, label in enumerate(labels)]
  return labels


def draw_profile(label: str, totals: Mapping[str, Mapping[str, float]]) -> Any:
  """Draw where the time went, a bar per scope.

  Args:
    label: Name of the experiment.
    totals: Dict from path to dict of sums, see `list_scopes`.

  Returns:
    The figure.
  """
  rows = list_scopes(totals)
  whole = max(sum(row['own'] for row in rows), 1e-9)
  figure, axes = plot.make_figure((8.5, 1.3 + 0.32 * len(rows)))
  for y, row in enumerate(rows):
    own, inner = 100 * row['own'] / whole, 100 * row['inner'] / whole
    axes.barh(y, own, color=_OWN, label='the scope itself')
    axes.barh(y, inner, left=own, color=_INNER, label='scopes within it')
    axes.text(
      own + inner + 1, y, _describe(row, whole), va='center', fontsize=8
    )
  names = ['    ' * row['depth'] + row['name'] for row in rows]
  axes.set_yticks(range(len(rows)), names, ha='left', fontsize=9)
  # Names are aligned left, as trees are.
  figure.canvas.draw()
  widest = max(x.get_window_extent().width for x in axes.get_yticklabels())
  axes.tick_params(axis='y', pad=widest * 72 / figure.dpi + 4, length=0)
  axes.invert_yaxis()
  axes.set_xlim(0, 145)
  axes.set_xticks(range(0, 101, 20))
  axes.set(title=label, xlabel=f'Percent of {format_seconds(whole)}')
  axes.spines[['top', 'right']].set_visible(False)
  axes.legend(handles=axes.containers[:2], loc='lower right', fontsize='small')
  return figure


def list_scopes(
  totals: Mapping[str, Mapping[str, float]],
) -> list[dict[str, Any]]:
  """List the tree of scopes in the order in which it is drawn.

  Args:
    totals: Dict from path to dict of `occurs` and `seconds`; for the root
      also `outside`, the seconds of scopes that it did not surround.

  Returns:
    List of dicts with `name` (relative to the scope that contains it),
    `depth`, `occurs`, and the seconds `own` and `inner`, which are spent in
    recorded scopes within it. The root contains what was outside of it too.
  """
  parents = {path: _find_parent(path, totals) for path in totals}
  inner = dict.fromkeys(totals, 0.0)
  for path, parent in parents.items():
    if parent is not None:
      inner[parent] += totals[path]['seconds']

  def visit(parent, depth):
    inside = [x for x in totals if parents[x] == parent]
    for path in sorted(inside, key=lambda x: -totals[x]['seconds']):
      sums = totals[path]
      seconds = sums['seconds'] + sums.get('outside', 0.0)
      start = 0 if parent is None else len(parent.rstrip('/')) + 1
      rows.append(
        {
          'name': path[start:],
          'depth': depth,
          'occurs': sums['occurs'],
          'own': max(seconds - inner[path], 0.0),
          'inner': inner[path],
        }
      )
      visit(path, depth + 1)

  rows: list[dict[str, Any]] = []
  visit(None, 0)
  return rows


def draw_resources(label: str, tables: Sequence[Mapping[str, Any]]) -> Any:
  """Draw the load of the machine over time, a line per run.

  Args:
    label: Name of the experiment.
    tables: List of what `logs.read` returns for `monlog.json`.

  Returns:
    The figure.
  """
  panels = [
    ('/cpu/all/total', 'Processors [%]', 1),
    ('/cpu/memory/mem', 'Memory of the run [GB]', 1024),
    ('/gpu/load', 'Graphics cards [%]', 1),
    ('/gpu/memory/used', 'Memory of cards [GB]', 1024),
  ]
  panels = [x for x in panels if any(x[0] in table for table in tables)]
  panels = panels or [(next(iter(tables[0])), '', 1)]
  figure, axes = plot.make_figure((6.4, 0.8 + 1.8 * len(panels)), len(panels))
  clocks = [x['clock'] for table in tables for x in table.values()]
  scale, xlabel = choose_unit(max(np.nanmax(x) for x in clocks))
  for ax, (name, title, unit) in zip(np.atleast_1d(axes), panels):
    top = 100.0 if title.endswith('[%]') else 0.0
    for table in tables[:_MOST_RUNS]:
      if name in table:
        columns = table[name]
        x = columns['clock'] / scale
        mean = columns['sum'] / columns['num'] / unit
        (line,) = ax.plot(x, mean, linewidth=1.2)
        low, high = columns['min'] / unit, columns['max'] / unit
        color = line.get_color()
        ax.fill_between(x, low, high, color=color, alpha=0.2, linewidth=0)
        top = max(top, np.nanmax(high))
    ax.set_ylabel(title, fontsize=9)
    ax.set_ylim(0, 1.05 * top or 1)
    ax.grid(alpha=0.3)
  np.atleast_1d(axes)[0].set_title(label)
  np.atleast_1d(axes)[-1].set_xlabel(xlabel)
  return figure


def choose_unit(seconds: float) -> tuple[int, str]:
  """Return factor and name of the unit for times up to some seconds."""
  if seconds < 600:
    return 1, 'Time [s]'
  if seconds < 4 * 3600:
    return 60, 'Time [min]'
  return 3600, 'Time [h]'


def format_seconds(seconds: float) -> str:
  """Return a time with three digits, for people."""
  for limit, factor, unit in (
    (1e-3, 1e6, 'us'),
    (1, 1e3, 'ms'),
    (600, 1, 's'),
    (4 * 3600, 1 / 60, 'min'),
  ):
    if seconds < limit:
      return f'{seconds * factor:.3g} {unit}'
  return f'{seconds / 3600:.3g} h'


def _describe(row, whole):
  seconds = row['own'] + row['inner']
  text = f'{seconds / whole:.1%}   {format_seconds(seconds)}'
  if row['name'] == '/':
    return f'{text} in {row["occurs"]:,.0f} cycles'
  each = format_seconds(seconds / max(row['occurs'], 1))
  return f'{text} = {row["occurs"]:,.0f} x {each}'


def _find_parent(path, totals):
  """Nearest scope around a path that is recorded itself, or None."""
  while path not in ('', '/'):
    path = path.rpartition('/')[0] or '/'
    if path in totals:
      return path
  return None
