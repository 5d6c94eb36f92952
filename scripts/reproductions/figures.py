"""Figures of results, ours and the original's."""

import os
from collections.abc import Sized

from agents.run import plot
from scripts.reproductions import bars, curves, intervals
from scripts.reproductions.entry import Entry, find, load, shorten

FILE = 'curve.png'
PANELS = 'panels.png'
# Tasks of PlaNet's paper, and the step at which they are compared with the
# values that CURL quotes for the original's full size.
SIX = (
  'planet_100k_cheetah planet_100k_finger planet_100k_reacher '
  'planet_100k_walker planet_100k_cup planet_swingup_hour'
).split()
SIX_STEP = 100000
SIX_FILE = 'planet/six.png'
# The configurations of PPO in the original.
TEN = (
  'ppo_pendulum ppo_doublependulum ppo_swingup ppo_cheetah_short ppo_ant '
  'ppo_humanoid ppo_racecar ppo_kuka ppo_minitaur ppo_duck'
).split()
TEN_FILE = 'ppo/ten.png'
_PANELS = {
  'PlaNet cpu, cart-pole swing-up': 'planet_swingup_hour',
  'PPO, inverted pendulum': 'ppo_pendulum',
  'HER, Fetch tasks': 'her_push her_pick her_slide her_pick_demos',
  'PlaNet carla_cpu, driving in the offline world': 'carla_loop',
}
# Fraction of seeds that have reached the level of the bar, over steps.
REACHED = 'reached.png'


def draw(results: str) -> list[str]:
  """Draw the figures of all results; return their paths."""
  drawn = {
    name: draw_entry(entry, os.path.join(results, name), results)
    for name, entry in load().items()
    if os.path.exists(os.path.join(results, name, curves.FILE))
  }
  paths = list(drawn.values())
  if drawn.keys() >= set(' '.join(_PANELS.values()).split()):
    paths.append(_draw_panels(os.path.join(results, PANELS), results))
  if drawn.keys() & set(TEN):
    path = os.path.join(results, TEN_FILE)
    paths.append(_draw_grid(path, results, TEN, (5, 2)))
  if drawn.keys() & set(SIX):
    path = os.path.join(results, SIX_FILE)
    paths.append(_draw_grid(path, results, SIX, (2, 3), SIX_STEP))
  return paths


def _draw_grid(path, results, names, shape, step=None):
  """Draw entries in a grid, also those that were not run yet.

  Args:
    path: Path of the figure.
    results: Folder of all results.
    names: Names of the entries.
    shape: Rows and columns.
    step: Step of the published values, and about the end of the axes; by
      default, there are no such values and axes end with the curves.
  """
  rows, columns = shape
  figure, axes = plot.make_figure((4.4 * columns, 3.5 * rows), rows, columns)
  for place, entry in zip(axes.flat, map(find, names)):
    ours = curves.read(os.path.join(results, entry.name, curves.FILE))
    original = curves.read_reference(entry, results)
    style = plot.Style(
      ylabel=entry.measure,
      quartiles=True,
      trim=True,
      levels=_label({step: entry.levels[step]} if step else {}),
    )
    title = entry.meaning.rpartition(', ')[2]
    title += '' if ours else ' (not run yet)'
    groups = {'ours': ours, 'original code': original}
    outcomes = [
      bars.read_outcomes(entry.bar, x.values()) for x in groups.values()
    ]
    words = bars.improve(entry.bar, *outcomes)
    title += f'\n{words}' if words else ''
    lines = {k: list(v.values()) for k, v in groups.items() if v}
    plot.draw(title, lines, style, place)
    if not lines:
      place.set_axis_off()
    if step:
      place.set(xlim=(0, 1.1 * step))
  return plot.save(figure, path)


def _draw_panels(path, results):
  """Draw the four kinds of results in one figure."""
  figure, axes = plot.make_figure((11, 7), 2, 2)
  for place, (title, names) in zip(axes.flat, _PANELS.items()):
    entries = [find(x) for x in names.split()]
    groups: dict[str, list[plot.Points]] = {
      x.meaning if len(entries) > 1 else 'ours': list(
        curves.read(os.path.join(results, x.name, curves.FILE)).values()
      )
      for x in entries
    }
    if len(entries) == 1:
      references = curves.read_reference(entries[0], results)
      groups['original code'] = list(references.values())
    style = plot.Style(
      ylabel=entries[0].measure,
      trim=True,
      quartiles=True,
      levels=_label(entries[0].levels) if len(entries) == 1 else {},
    )
    plot.draw(title, {k: v for k, v in groups.items() if v}, style, place)
  return plot.save(figure, path)


def draw_entry(entry: Entry, folder: str, results: str) -> str:
  """Draw a result with its reference curves and published values.

  Args:
    entry: Entry of the result.
    folder: Folder of the curve and the figure.
    results: Folder of all results.

  Returns:
    Path of the figure.
  """
  path = os.path.join(folder, curves.FILE)
  label = 'original code' if entry.has_original else entry.reference
  ours = curves.read(path)
  references = curves.read_reference(entry, results)
  if entry.bar.kind == 'same':
    references = {k: v for k, v in references.items() if k in ours}
  groups = {
    'ours': ours,
    'ours, collected with noise': curves.read(path, curves.COLLECTED),
    label: references,
  }
  style = plot.Style(
    ylabel=entry.measure,
    trim=True,
    ylim=(-0.02, 1.04) if entry.measure == 'success rate' else None,
    quartiles=True,
    levels=_label(entry.levels),
  )
  lines = {k: list(v.values()) for k, v in groups.items() if v}
  if shows_reached(entry, lines['ours']):
    _draw_reached(entry, lines, os.path.join(folder, REACHED))
  figure = plot.draw(entry.meaning.replace('`', ''), lines, style)
  return plot.save(figure, os.path.join(folder, FILE))


def _label(levels):
  return {
    f'published at {shorten(steps)} steps': (steps, value)
    for steps, value in levels.items()
  }


def shows_reached(entry: Entry, seeds: Sized) -> bool:
  """Return whether there are enough seeds to plot their success over steps."""
  return entry.bar.in_steps and len(seeds) > intervals.FEW


def _draw_reached(entry, groups, path):
  """Draw the fraction of seeds that reached the level for each group."""
  from matplotlib import ticker

  figure, axes = plot.make_figure((6.4, 4))
  for label, curves_ in groups.items():
    outcomes = bars.read_outcomes(entry.bar, curves_)
    steps, shares = intervals.survival(outcomes)
    end = max(x.end for x in outcomes)
    seeds = 'seeds' if len(outcomes) > 1 else 'seed'
    label = f'{label} ({len(outcomes)} {seeds})'
    places = [0, *steps, end], [0, *shares, shares[-1]]
    axes.step(*places, where='post', label=label)
  axes.set_title(f'{entry.meaning}:\n{entry.what}', fontsize='medium')
  axes.xaxis.set_major_formatter(ticker.EngFormatter(sep=''))
  axes.set(xlabel='Environment steps', ylabel='Fraction of seeds')
  axes.set(ylim=(-0.02, 1.04))
  axes.grid(alpha=0.3)
  axes.legend(loc='best', fontsize='small')
  plot.save(figure, path)
