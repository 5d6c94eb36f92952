"""Learning curves: a line per group of runs, with a band over its seeds.

Plotting programs load `Run`s from their own files and pass them to this module.
Figures are drawn without pyplot, so they do not need a display.
"""

import dataclasses
import fnmatch
import itertools
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import ndimage

from agents.run import errors, files, log

_logger = logging.getLogger(__name__)
# Increasing x values, and y values; both [points].
Points = tuple[np.ndarray, np.ndarray]
_COLORS = 10
_FEW_POINTS = 30
# Fewer runs are drawn one by one; more become a band.
_FEW_RUNS = 5
_GRID = 300
_LONGEST = 30
_MOST_SETTINGS = 3


@dataclasses.dataclass
class Run:
  """Curves of one run.

  Attributes:
    label: Description, such as the configuration and the task. Runs of
      different algorithms or environments have different labels.
    curves: Dict from name to points.
    settings: Further values that distinguish runs with the same label.
  """

  label: str
  curves: Mapping[str, Points]
  settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Style:
  """How to draw curves.

  Attributes:
    xlabel: Label of the x axis.
    ylabel: Label of the y axis.
    ylim: Range of the y axis; by default, that of the curves.
    counts: Whether x values are integers.
    quartiles: Whether to draw the median and quartiles of the runs of a group;
      by default their mean and standard deviation.
    trim: Whether to draw only the range that all runs of a group cover.
    window: Number of points of the moving average.
    levels: Dict from label to the x and y value of a published result. Those
      beyond the curves are only in the legend.
  """

  xlabel: str = 'Environment steps'
  ylabel: str = ''
  ylim: tuple[float, float] | None = None
  counts: bool = True
  quartiles: bool = False
  trim: bool = False
  window: int = 1
  levels: Mapping[str, tuple[float, float]] = dataclasses.field(
    default_factory=dict
  )

  def __post_init__(self) -> None:
    if self.window < 1:
      raise errors.UsageError(
        f'--window is {self.window}; it must be at least 1 (no smoothing).'
      )


def find_runs(folders: Iterable[str], *names: str) -> list[str]:
  """Return the folders at or below some folders that hold all named files.

  Links below them are followed. A folder that lies in several of them is there
  once, so it counts as one seed. Those that cannot be read are left out, with
  a warning.

  Raises:
    UsageError: If one of the folders does not exist.
  """
  places = [files.expand(x) for x in folders]
  for place in places:
    if not os.path.exists(place):
      raise errors.UsageError(
        f'There is no file or folder {place}; check the path.'
      )
  seen: dict[str, str] = {}
  for folder in places:
    for place, below, _ in os.walk(folder, onerror=_warn, followlinks=True):
      if seen.setdefault(os.path.realpath(place), place) != place:
        below.clear()
  return sorted(
    place
    for place in seen.values()
    if all(os.path.isfile(os.path.join(place, x)) for x in names)
  )


def make_points(x: Any, y: Any) -> Points:
  """Sort by x, drop infinite values and NaN, and average duplicate x values."""
  x, y = np.array(x, float), np.array(y, float)
  valid = np.isfinite(x) & np.isfinite(y)
  unique, index = np.unique(x[valid], return_inverse=True)
  return unique, np.bincount(index, y[valid]) / np.bincount(index)


def read_seeds(
  path: str, x: str, y: str, phase: str | None = None
) -> dict[str | None, Points]:
  """Return the curves of a CSV file by `seed`; by None without that column.

  Args:
    path: File.
    x: Column of the x values.
    y: Column of the y values; rows without one are skipped.
    phase: Value of the column `phase` in the rows to use; by default, all rows
      are used.

  Raises:
    UsageError: If the file or one of these columns is missing.
  """
  seeds: dict[str | None, list[tuple[float, float]]] = {}
  try:
    for row in log.read_table(files.expand(path), (x, y)):
      if phase in (None, row.get('phase')) and row[y]:
        point = float(row[x] or 0), float(row[y] or 0)
        seeds.setdefault(row.get('seed'), []).append(point)
  except (OSError, KeyError, ValueError) as error:
    raise errors.UsageError(
      f'Cannot read curves from {path}: {errors.reason_of(error)}. Use a CSV '
      f'file with the columns {x} and {y}.'
    ) from None
  return {seed: make_points(*zip(*points)) for seed, points in seeds.items()}


def group(runs: Iterable[Run]) -> dict[str, list[Run]]:
  """Group runs with the same label and settings.

  Returns:
    Dict from name to runs. A name is the label, with the first settings that
    distinguish groups of the same label.
  """
  groups: dict[tuple[str, ...], list[Run]] = {}
  runs = list(runs)
  labels = [x.label for x in runs]
  for run in sorted(runs, key=lambda run: labels.index(run.label)):
    words = _list_differences(run, [x for x in runs if x.label == run.label])
    groups.setdefault((run.label, *words), []).append(run)
  named: dict[str, list[Run]] = {}
  for (label, *words), members in groups.items():
    shown = [x if len(x) <= _LONGEST else x[:_LONGEST] + '...' for x in words]
    name = ', '.join([label, *shown[:_MOST_SETTINGS]])
    if name in named:
      name += f', {len(named) + 1}'
    named[name] = members
  return named


def choose_names(
  known: Iterable[str], patterns: Sequence[str] | None
) -> list[str]:
  """Return the names that match any of the patterns, sorted.

  Raises:
    UsageError: If a pattern matches nothing.
  """
  known = list(known)
  chosen = set()
  for pattern in patterns or ['*']:
    found = fnmatch.filter(known, pattern)
    if not found:
      raise errors.UsageError(
        f'No variable matches {pattern!r}. {errors.suggest(pattern, known)}'
      )
    chosen.update(found)
  return sorted(chosen)


def smooth(values: np.ndarray, window: int) -> np.ndarray:
  """Average over `window` neighbors; fewer at the ends."""
  if window <= 1:
    return values
  sums, counts = (
    ndimage.uniform_filter1d(x, window, mode='constant')
    for x in (np.asarray(values, float), np.ones(len(values)))
  )
  return sums / counts


def align(
  runs: Sequence[Points], trim: bool = False
) -> tuple[np.ndarray, np.ndarray]:
  """Bring runs to common x values.

  Runs with the same x values, such as epochs, keep them; others, such as wall
  times, are interpolated.

  Args:
    runs: List of points.
    trim: Whether to keep only the range that all runs cover.

  Returns:
    X values [points], and values [runs, points], which are NaN outside the
    range of a run.
  """
  grid = max((x for x, _ in runs), key=len)
  if not all(np.array_equal(x, grid[: len(x)]) for x, _ in runs):
    starts, ends = [x[0] for x, _ in runs], [x[-1] for x, _ in runs]
    low, high = (max(starts), min(ends)) if trim else (min(starts), max(ends))
    grid = np.linspace(low, max(low, high), min(_GRID, len(grid)))
  values = np.array([np.interp(grid, x, y, np.nan, np.nan) for x, y in runs])
  covered = np.isfinite(values)
  keep = covered.all(0) if trim else covered.any(0)
  return grid[keep], values[:, keep]


def summarize(values: np.ndarray, quartiles: bool = False) -> np.ndarray:
  """Compute the center of runs and a band around it.

  Args:
    values: Array [runs, points] with NaN where a run has no value.
    quartiles: Whether to return quartiles.

  Returns:
    Array [3, points]: 25th, 50th and 75th percentile; or mean minus standard
    deviation (ddof=1, 0 for a single run), mean, and mean plus standard
    deviation.
  """
  if quartiles:
    return np.nanpercentile(values, [25, 50, 75], axis=0)
  masked = np.ma.masked_invalid(values)
  mean = masked.mean(0).filled(np.nan)
  std = np.ma.filled(masked.std(0, ddof=1), 0) if len(values) > 1 else 0 * mean
  return np.array([mean - std, mean, mean + std])


def draw(
  title: str,
  groups: Mapping[str, Sequence[Points]],
  style: Style,
  axes: Any = None,
) -> Any:
  """Draw a line per group, with its runs, or with a band for many runs.

  Args:
    title: Title of the figure.
    groups: Dict from label to the points of at least one run.
    style: How to draw them.
    axes: Axes to draw on; those of a new figure by default.

  Returns:
    The figure.
  """
  from matplotlib import ticker

  axes = axes or make_figure((6.4, 4))[1]
  for number, (label, runs) in enumerate(groups.items()):
    smoothed = [(x, smooth(y, style.window)) for x, y in runs]
    x, values = align(smoothed, style.trim)
    low, middle, high = summarize(values, style.quartiles)
    few = 1 < len(runs) < _FEW_RUNS
    (line,) = axes.plot(
      x,
      middle,
      marker='.' if len(x) <= _FEW_POINTS else None,
      linestyle=('-', '--', ':')[number // _COLORS % 3],
      label=_describe(label, len(runs), style),
    )
    if few:
      for points in smoothed:
        axes.plot(*points, color=line.get_color(), alpha=0.4, linewidth=0.7)
    elif len(runs) > 1:
      axes.fill_between(
        x, low, high, color=line.get_color(), alpha=0.2, linewidth=0
      )
    elif style.window > 1:
      axes.plot(*runs[0], color=line.get_color(), alpha=0.3, linewidth=0.8)
  end = axes.get_xlim()[1]
  markers = itertools.cycle('x+*')
  for (label, (place, value)), marker in zip(style.levels.items(), markers):
    axes.plot(
      *([[place], [value]] if place <= end else [[], []]),
      marker,
      color='black',
      markersize=9,
      label=f'{label}: {value:g}',
    )
  axes.set_title(title, wrap=True)
  axes.set(xlabel=style.xlabel, ylabel=style.ylabel)
  axes.set(ylim=style.ylim)
  axes.margins(x=0.02)
  if style.counts:
    low, high = axes.get_xlim()
    if high - low < 1:
      axes.set_xlim(low - 0.5, high + 0.5)
    axes.xaxis.set_major_locator(
      ticker.MaxNLocator(8, integer=True, min_n_ticks=1)
    )
    axes.xaxis.set_major_formatter(ticker.EngFormatter(sep=''))
  axes.grid(alpha=0.3)
  if axes.get_legend_handles_labels()[0]:
    # Below the axes, where it covers nothing.
    axes.legend(
      fontsize='small', loc='upper center', bbox_to_anchor=(0.5, -0.2)
    )
  return axes.figure


def _describe(label, count, style):
  """Return the label of a group, which explains its line and band."""
  if count == 1:
    return label
  what = 'median' if style.quartiles else 'mean'
  if count < _FEW_RUNS:
    return f'{label} ({what}; thin: {count} runs)'
  spread = ' and quartiles' if style.quartiles else ' and deviation'
  return f'{label} ({what}{spread} of {count} runs)'


def draw_all(
  groups: Mapping[str, Sequence[Run]],
  names: Iterable[str],
  out: str,
  style: Style,
  prefix: str = '',
) -> list[str]:
  """Write one figure per name.

  Args:
    groups: Dict from label to runs.
    names: Names of curves; at least one run must have each.
    out: Folder of the figures.
    style: How to draw them.
    prefix: Start of the file names.

  Returns:
    List of the paths written.
  """
  paths = []
  for name in names:
    chosen = {
      label: [run.curves[name] for run in runs if name in run.curves]
      for label, runs in groups.items()
    }
    figure = draw(name, {k: v for k, v in chosen.items() if v}, style)
    file_name = prefix + name.strip('/').replace('/', '_') + '.png'
    paths.append(save(figure, os.path.join(out, file_name)))
  return paths


def make_figure(
  size: tuple[float, float], rows: int = 1, columns: int = 1
) -> tuple[Any, Any]:
  """Return a figure and its axes, an array if there are several.

  If there is only one column, its axes share their x values.
  """
  from matplotlib.figure import Figure

  figure = Figure(figsize=size, layout='constrained')
  return figure, figure.subplots(rows, columns, sharex=columns == 1)


def save(figure: Any, path: str) -> str:
  """Write a figure, completely or not at all; return its path.

  Raises:
    UsageError: If the file cannot be written.
  """
  try:
    with files.atomic_path(path) as temporary:
      figure.savefig(temporary, dpi=150)
  except OSError as error:
    raise errors.UsageError(
      f'Cannot write {path!r}: {error.strerror}. Choose another folder for the '
      'figures.'
    ) from None
  except errors.UsageError:
    raise
  except ValueError:
    raise errors.UsageError(
      f'The file name {path!r} has no known image format; use .png, .pdf or '
      '.svg.'
    ) from None
  return path


def _warn(error: OSError) -> None:
  """Warn of a folder that cannot be searched."""
  _logger.warning(
    'Left out %s, which cannot be read: %s.', error.filename, error.strerror
  )


def _list_differences(run: Run, others: Sequence[Run]) -> list[str]:
  """Describe the settings in which some runs differ."""
  keys = dict.fromkeys(key for x in others for key in x.settings)
  differing = [
    k for k in keys if len({_show(x.settings.get(k, '')) for x in others}) > 1
  ]
  return [
    f'{k} {_show(run.settings[k])}' for k in differing if k in run.settings
  ]


def _show(value: Any) -> str:
  """Return a value as text, the same for -1 and -1.0."""
  whole = isinstance(value, float) and value.is_integer()
  return str(int(value) if whole else value)
