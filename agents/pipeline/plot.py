"""Draw what sessions have logged: curves, where the time went, resources.

Example:

  python -m agents.pipeline.plot sessions/a0 sessions/a1 --group sessions/b0

Writes one PNG per variable. Sessions given together are runs of one
experiment, drawn as their mean with a band of one standard deviation; each
--group is another experiment. A profile and a chart of the machine's load are
added for every experiment that has recorded them.
"""

import argparse
import fnmatch
import os
import sys
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import numpy as np

from agents.pipeline import charts
from agents.pipeline import logs
from agents.pipeline import writers
from agents.run import entry
from agents.run import errors
from agents.run import files

KEYS = (*logs.META, 'step')
_GRID = 300


def load_curves(session: str, keyx: str) -> dict[str, tuple]:
  """Load the curves of one session.

  Args:
    session: Folder with `varlog.json`, and `scalars.csv` for `step`.
    keyx: One of `KEYS`.

  Returns:
    Dict from name to tuple of two arrays [points], increasing abscissas and
    means. Names without any value over `keyx` are left out.

  Raises:
    UsageError: If the folder has no such file.
  """
  reader: Callable[[str], Mapping[str, Any]] = logs.read
  name = 'varlog.json'
  if keyx == 'step':
    name, reader = 'scalars.csv', writers.read
  try:
    table = reader(os.path.join(session, name))
  except OSError as error:
    raise errors.UsageError(
      f'Cannot read {name} of {session!r}: {error.strerror}. Give folders of '
      'sessions, each of which has this file.'
    ) from None
  curves = {}
  for name, columns in table.items():
    if keyx == 'step':
      x = np.array(list(columns), float)
      y = np.array(list(columns.values()), float)
    elif keyx in columns:
      x = np.array(columns[keyx], float)
      y = np.array(columns['sum'] / columns['num'], float)
    else:
      continue
    valid = np.isfinite(x) & np.isfinite(y)
    if valid.any():
      curves[name] = _join_ties(x[valid], y[valid])
  return curves


def merge(
  runs: Sequence[tuple[np.ndarray, np.ndarray]],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """Return mean and deviation of runs, over the range that all of them cover.

  Runs with the same abscissas, such as epochs, are cut to the shortest;
  others, such as clocks, are interpolated.

  Args:
    runs: List of tuples of two arrays [points].

  Returns:
    Three arrays [points]: abscissas, means, and standard deviations over the
    runs (ddof=1), which are 0 for a single run.
  """
  length = min(len(x) for x, _ in runs)
  grid = runs[0][0][:length]
  if not all(np.array_equal(x[:length], grid) for x, _ in runs):
    low = max(x[0] for x, _ in runs)
    high = max(low, min(x[-1] for x, _ in runs))
    grid = np.linspace(low, high, min(_GRID, max(len(x) for x, _ in runs)))
  values = np.array([np.interp(grid, x, y) for x, y in runs])
  std = values.std(0, ddof=1) if len(runs) > 1 else np.zeros(len(grid))
  return grid, values.mean(0), std


def smooth(values: np.ndarray, window: int) -> np.ndarray:
  """Average over `window` neighbours; fewer at the ends."""
  if window <= 1:
    return values
  left = window // 2
  sums = np.cumsum(np.concatenate([[0.0], values]))
  index = np.arange(len(values))
  first = np.maximum(index - left, 0)
  last = np.minimum(index - left + window, len(values))
  return (sums[last] - sums[first]) / (last - first)


def choose_names(
  known: Iterable[str], patterns: Sequence[str] | None
) -> list[str]:
  """Return names that match any of the patterns, sorted.

  Raises:
    UsageError: If a pattern matches nothing.
  """
  chosen = set()
  for pattern in patterns or ['*']:
    found = fnmatch.filter(known, pattern)
    if not found:
      raise errors.UsageError(
        f'No variable is named {pattern!r}. {errors.suggest(pattern, known)}'
      )
    chosen.update(found)
  return sorted(chosen)


def main(args: argparse.Namespace) -> None:
  """Write the figures and print their paths."""
  groups = [x for x in [args.sessions, *args.group] if x]
  if not groups:
    raise errors.UsageError('No session was given; name at least one folder.')
  if args.window < 1:
    raise errors.UsageError(
      f'--window {args.window} is too small; 1 draws every value as it is.'
    )
  groups = [[os.path.abspath(x) for x in group] for group in groups]
  output = args.output or os.path.join(groups[0][0], 'plots')
  paths = _draw_curves(groups, output, args)
  if not args.names:
    for number, group in enumerate(groups):
      suffix = f'_{number + 1}' if len(groups) > 1 else ''
      paths += _draw_extras(group, output, suffix)
  for path in paths:
    print(f'Wrote {path}.')


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
  """Parse the command line."""
  parser = argparse.ArgumentParser(
    prog='python -m agents.pipeline.plot',
    description=__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  add = parser.add_argument
  add('sessions', nargs='*', metavar='SESSION', help='runs of one experiment')
  add(
    '--group',
    nargs='+',
    metavar='SESSION',
    action='append',
    default=[],
    help='runs of another experiment; can be repeated',
  )
  add('--output', help='folder of the figures; plots/ of the first session')
  add(
    '--keyx',
    choices=KEYS,
    default='epoch',
    help='abscissa; step draws the scalars of the writer instead',
  )
  add('--names', nargs='+', metavar='GLOB', help='only these variables')
  add('--window', type=int, default=5, help='points of the moving average')
  return parser.parse_args(argv)


def run(argv: Sequence[str] | None = None) -> int:
  """Run the program; return the exit code."""
  return entry.run(lambda: main(parse_args(argv)))


def _draw_curves(groups, output, args):
  loaded = [[load_curves(x, args.keyx) for x in group] for group in groups]
  known = {name for group in loaded for run in group for name in run}
  if not known:
    raise errors.UsageError(
      f'Nothing was logged over {args.keyx!r} in {groups[0][0]!r}; wait for '
      'the first epoch, or choose another --keyx.'
    )
  labels = charts.make_labels(groups)
  paths = []
  for name in choose_names(known, args.names):
    series = []
    for label, group in zip(labels, loaded):
      runs = [run[name] for run in group if name in run]
      if runs:
        x, mean, std = merge(runs)
        series.append(
          {
            'label': label if len(runs) == 1 else f'{label} ({len(runs)} runs)',
            'x': x,
            'mean': smooth(mean, args.window),
            'std': smooth(std, args.window),
            'raw': mean if len(runs) == 1 and args.window > 1 else None,
          }
        )
    figure = charts.draw_curves(name, series, args.keyx)
    title = name.strip('/').replace('/', '_')
    paths.append(_save(figure, os.path.join(output, f'{title}.png')))
  return paths


def _draw_extras(group, output, suffix):
  """Profile and resources of the runs that have them."""
  paths = []
  label = charts.make_labels([group])[0]
  profiles = _read_all(group, 'prolog.json')
  if profiles:
    figure = charts.draw_profile(label, _add_profiles(profiles))
    paths.append(_save(figure, os.path.join(output, f'profile{suffix}.png')))
  resources = _read_all(group, 'monlog.json')
  if resources:
    figure = charts.draw_resources(label, resources)
    path = os.path.join(output, f'resources{suffix}.png')
    paths.append(_save(figure, path))
  return paths


def _add_profiles(tables):
  """Dict from path to dict of the sums over packs and runs."""
  totals: dict[str, dict[str, float]] = {}
  for table in tables:
    for path, columns in table.items():
      sums = totals.setdefault(path, {'occurs': 0, 'seconds': 0, 'outside': 0})
      for key in set(sums) & set(columns):
        sums[key] += float(np.nansum(columns[key]))
  return totals


def _read_all(group, name):
  tables = []
  for session in group:
    path = os.path.join(session, name)
    if os.path.exists(path):
      tables.append(logs.read(path))
  return [x for x in tables if x]


def _join_ties(x, y):
  """Sort by abscissa; values at the same one become their mean."""
  unique, index = np.unique(x, return_inverse=True)
  return unique, np.bincount(index, y) / np.bincount(index)


def _save(figure, path):
  try:
    with files.atomic_path(path) as temporary:
      figure.savefig(temporary, dpi=150)
  except OSError as error:
    raise errors.UsageError(
      f'Cannot write {path!r}: {error.strerror}. Choose another folder with '
      '--output.'
    ) from None
  charts.close(figure)
  return path


if __name__ == '__main__':
  sys.exit(run())
