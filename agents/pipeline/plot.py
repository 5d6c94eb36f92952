"""Plot sessions: curves, a profile, and the load of the machine.

Example:

  agents-plot sessions/a0 sessions/a1 --group sessions/b0

Writes one PNG per variable. The sessions of a group are runs of the same
experiment: each algorithm and environment is drawn as their mean with a band of
one standard deviation. Each --group is another experiment.
"""

import argparse
import os
import sys
from collections.abc import Sequence

import numpy as np

from agents.pipeline import charts, loader, logs
from agents.run import entry, errors, plot


def load_curves(session: str, keyx: str) -> dict[str, plot.Points]:
  """Load the curves of one session.

  Args:
    session: Folder with `varlog.json`.
    keyx: One of `logs.META`.

  Returns:
    Dict from name to points. Names without any value over `keyx` are left
    out.

  Raises:
    UsageError: If the folder has no such file, or it is damaged.
  """
  try:
    table = logs.read(os.path.join(session, 'varlog.json'))
  except OSError as error:
    raise errors.UsageError(
      f'Cannot read varlog.json of {session!r}: {error.strerror}. Give folders '
      'of sessions.'
    ) from None
  curves = {}
  for name, columns in table.items():
    if not {keyx, 'sum', 'num'} <= set(columns):
      continue
    points = plot.make_points(columns[keyx], columns['sum'] / columns['num'])
    if len(points[0]):
      curves[name] = points
  return curves


def describe(session: str) -> str:
  """Return algorithm and environment of a session, empty if unknown."""
  try:
    stored = loader.Loader(session)
    algorithms = [
      agent['name'].rpartition('.')[2].removesuffix('Agent')
      for agent in stored.params['agents'].values()
    ]
  except (OSError, ValueError, TypeError, KeyError, AttributeError):
    return ''
  task = stored.cpanel.get('model_name') or stored.cpanel.get('config')
  return ' '.join([*algorithms, str(task or '')]).strip()


def load_runs(groups: Sequence[Sequence[str]], keyx: str) -> list[plot.Run]:
  """Load sessions, which are told apart by their group if nothing else does.

  Args:
    groups: List of lists of paths.
    keyx: One of `logs.META`.
  """
  return [
    plot.Run(describe(x) or name, load_curves(x, keyx), {'sessions': name})
    for name, sessions in zip(charts.make_labels(groups), groups)
    for x in sessions
  ]


def main(args: argparse.Namespace) -> None:
  """Write the figures and print their paths."""
  groups = [x for x in [args.sessions, *args.group] if x]
  if not groups:
    raise errors.UsageError('No session was given; name at least one folder.')
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
    prog='agents-plot',
    description=__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  add = parser.add_argument
  add(
    'sessions', nargs='*', metavar='SESSION', help='sessions of one experiment'
  )
  add(
    '--group',
    nargs='+',
    metavar='SESSION',
    action='append',
    default=[],
    help='sessions of another experiment; can be repeated',
  )
  add(
    '--output',
    metavar='FOLDER',
    help='folder for figures (default: plots/ in the first session)',
  )
  add(
    '--keyx',
    choices=logs.META,
    default='epoch',
    help='x-axis (default epoch)',
  )
  add(
    '--names',
    nargs='+',
    metavar='GLOB',
    help='variables to plot (default: all)',
  )
  add(
    '--window',
    type=int,
    default=1,
    metavar='N',
    help='points to average over (default 1)',
  )
  return parser.parse_args(argv)


def run(argv: Sequence[str] | None = None) -> int:
  """Run the program; return the exit code."""
  return entry.run(lambda: main(parse_args(argv)))


def _draw_curves(groups, output, args):
  xlabel, counts = charts.AXES.get(args.keyx, args.keyx), args.keyx != 'clock'
  style = plot.Style(xlabel, counts=counts, trim=True, window=args.window)
  runs = load_runs(groups, args.keyx)
  known = {name for run in runs for name in run.curves}
  if not known:
    raise errors.UsageError(
      f'Nothing was logged over {args.keyx!r} in {groups[0][0]!r}; wait for '
      'the first epoch, or choose another --keyx.'
    )
  if args.keyx == 'clock':
    last = max(x[-1] for run in runs for x, _ in run.curves.values())
    scale, style.xlabel = charts.choose_unit(last)
    for run in runs:
      run.curves = {k: (x / scale, y) for k, (x, y) in run.curves.items()}
  names = plot.choose_names(known, args.names)
  return plot.draw_all(plot.group(runs), names, output, style)


def _draw_extras(group, output, suffix):
  """Profile and resources of the runs that have them."""
  paths = []
  label = charts.make_labels([group])[0]
  profiles = _read_all(group, 'prolog.json')
  if profiles:
    figure = charts.draw_profile(label, _add_profiles(profiles))
    path = os.path.join(output, f'profile{suffix}.png')
    paths.append(plot.save(figure, path))
  resources = _read_all(group, 'monlog.json')
  if resources:
    figure = charts.draw_resources(label, resources)
    path = os.path.join(output, f'resources{suffix}.png')
    paths.append(plot.save(figure, path))
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


if __name__ == '__main__':
  sys.exit(run())
