"""Plot sessions: curves, a profile, and the machine's load.

Example:

  agents-plot sessions/a0 sessions/a1 --group sessions/b0

Writes one PNG per variable. The sessions of a group are runs of the same
experiment: each algorithm and environment is drawn as their mean, with the runs
as thin lines or, from five on, one standard deviation as a band. Each --group
is another experiment.
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from agents.pipeline import loader, logs
from agents.run import entry, errors, files, plot

_AXES = {
  'epoch': 'Epoch',
  'frame': 'Environment steps',
  'episode': 'Episodes',
  'clock': 'Time [s]',
}
# Names of monlog.json, with titles and units.
_RESOURCES = {
  '/cpu/all/total': ('CPU [%]', 1),
  '/cpu/memory/mem': ('Memory of the run [GB]', 1024),
  '/gpu/load': ('GPU [%]', 1),
  '/gpu/memory/used': ('GPU memory [GB]', 1024),
}
_MOST_RUNS = 12


def load_curves(session: str, keyx: str) -> dict[str, plot.Points]:
  """Load the curves of one session.

  Args:
    session: Folder with `varlog.json`.
    keyx: Key of the meta data in each line, such as `epoch`.

  Returns:
    Dict from name to points. Names without any value over `keyx` are left
    out.

  Raises:
    UsageError: If the file is missing or damaged.
  """
  try:
    table = logs.read(os.path.join(session, 'varlog.json'))
  except OSError as error:
    raise errors.UsageError(
      f'Cannot read varlog.json of {session!r}: {error.strerror}. Give '
      'session folders.'
    ) from None
  curves = {}
  for name, columns in table.items():
    if {keyx, 'sum', 'num'} <= set(columns):
      y = columns['sum'] / columns['num']
      curves[name] = plot.make_points(columns[keyx], y)
  return {name: points for name, points in curves.items() if len(points[0])}


def describe(session: str) -> str:
  """Return the algorithm and environment of a session, empty if unknown."""
  try:
    stored = loader.Loader(session)
    algorithms = [
      agent['name'].rpartition('.')[2].removesuffix('Agent')
      for agent in stored.params['agents'].values()
    ]
    task = stored.cpanel.get('model_name') or stored.cpanel.get('config')
  except (OSError, ValueError, TypeError, KeyError, AttributeError):
    return ''
  return ' '.join([*algorithms, str(task or '')]).strip()


def load_runs(groups: Sequence[Sequence[str]], keyx: str) -> list[plot.Run]:
  """Load sessions, labeled by group if nothing else distinguishes them.

  Args:
    groups: List of lists of paths.
    keyx: Key of the meta data in each line, such as `epoch`.
  """
  return [
    plot.Run(describe(x) or name, load_curves(x, keyx), {'sessions': name})
    for name, sessions in zip(make_labels(groups), groups)
    for x in sessions
  ]


def make_labels(groups: Sequence[Sequence[str]]) -> list[str]:
  """Choose short names for groups of sessions.

  Args:
    groups: List of lists of paths.

  Returns:
    List of names: that of the session, or the common prefix of several.
  """
  labels = []
  for group in groups:
    names = [os.path.basename(os.path.normpath(x)) for x in group]
    common = os.path.commonprefix(names).rstrip('_-. ')
    labels.append(names[0] if len(names) == 1 else common or names[0])
  if len(set(labels)) < len(labels):
    labels = [f'{i + 1}: {label}' for i, label in enumerate(labels)]
  return labels


def draw_profile(label: str, tables: Sequence[Mapping[str, Any]]) -> Any:
  """Draw how time was spent, a bar per scope.

  Args:
    label: Name of the experiment.
    tables: List of results of `logs.read` for `prolog.json`.

  Returns:
    The figure.
  """
  rows = list_scopes(tables)
  whole = sum(row['own'] for row in rows) or 1e-9
  figure, axes = plot.make_figure((8.5, 1.3 + 0.32 * len(rows)))
  for y, row in enumerate(rows):
    seconds = row['seconds']
    axes.barh(y, 100 * seconds / whole, color='#b9d3e8')
    axes.barh(y, 100 * row['own'] / whole, color='#2b6ca3')
    each = 1e3 * seconds / max(row['occurs'], 1)
    text = f'{seconds:.3g} s = {row["occurs"]:,.0f} x {each:.3g} ms'
    axes.text(100 * seconds / whole + 1, y, text, va='center', fontsize=8)
  axes.set_yticks(range(len(rows)), [x['path'] for x in rows], fontsize=9)
  axes.invert_yaxis()
  axes.set_xlim(0, 145)
  axes.set_xticks(range(0, 101, 20))
  axes.set(title=label, xlabel='Percent; dark: not in a scope below')
  axes.spines[['top', 'right']].set_visible(False)
  return figure


def list_scopes(tables: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
  """List the scopes, each after its parent.

  Args:
    tables: List of dicts from path to columns `occurs` and `seconds`; for the
      root also `outside`, the seconds of scopes outside of it.

  Returns:
    List of dicts with `path`, `occurs`, `seconds`, and the parts of the time
    spent in recorded child scopes, `inner`, and elsewhere, `own`. The root
    includes the time outside of it.
  """
  rows: dict[str, dict[str, Any]] = {}
  for table in tables:
    for path, columns in table.items():
      row = rows.setdefault(path, {'occurs': 0, 'seconds': 0, 'inner': 0})
      row['occurs'] += np.nansum(columns['occurs'])
      row['seconds'] += np.nansum(columns['seconds'])
      row['seconds'] += np.nansum(columns.get('outside', 0))
  for path in rows:
    parent = _find_parent(path, rows)
    if parent is not None:
      rows[parent]['inner'] += rows[path]['seconds']
  for path, row in rows.items():
    row.update(path=path, own=max(row['seconds'] - row['inner'], 0.0))
  return sorted(rows.values(), key=lambda row: row['path'].split('/'))


def draw_resources(label: str, tables: Sequence[Mapping[str, Any]]) -> Any:
  """Draw the machine's load over time, a line per run.

  Args:
    label: Name of the experiment.
    tables: List of results of `logs.read` for `monlog.json`.

  Returns:
    The figure.
  """
  names = [x for x in _RESOURCES if any(x in table for table in tables)]
  size = (6.4, 0.8 + 1.8 * len(names))
  figure, axes = plot.make_figure(size, max(1, len(names)))
  axes = np.atleast_1d(axes)
  for ax, name in zip(axes, names):
    title, unit = _RESOURCES[name]
    for columns in [x[name] for x in tables[:_MOST_RUNS] if name in x]:
      mean = columns['sum'] / columns['num'] / unit
      (line,) = ax.plot(columns['clock'], mean, linewidth=1.2)
      low, high = columns['min'] / unit, columns['max'] / unit
      color = line.get_color()
      ax.fill_between(columns['clock'], low, high, color=color, alpha=0.2)
    ax.set_ylabel(title, fontsize=9)
    ax.set_ylim(0, 105 if title.endswith('[%]') else None)
    ax.grid(alpha=0.3)
  axes[0].set_title(label)
  axes[-1].set_xlabel('Time [s]')
  return figure


def main(args: argparse.Namespace) -> None:
  """Write the figures and print their paths."""
  groups = [x for x in [args.sessions, *(args.group or [])] if x]
  if not groups:
    raise errors.UsageError('No session given; name at least one folder.')
  groups = [_unique(x) for x in groups]
  output = args.output or os.path.join(groups[0][0], 'plots')
  xlabel, counts = _AXES[args.keyx], args.keyx != 'clock'
  style = plot.Style(xlabel, counts=counts, trim=True, window=args.window)
  runs = load_runs(groups, args.keyx)
  known = {name for run in runs for name in run.curves}
  if not known:
    raise errors.UsageError(
      f'Nothing was logged over {args.keyx!r} in {groups[0][0]!r}; wait for '
      'the first epoch, or choose another --keyx.'
    )
  names = plot.choose_names(known, args.names)
  paths = plot.draw_all(plot.group(runs), names, output, style)
  labels = [] if args.names else make_labels(groups)
  for number, (label, group) in enumerate(zip(labels, groups)):
    suffix = f'_{number + 1}.png' if len(groups) > 1 else '.png'
    for name, source, draw in (
      ('profile', 'prolog.json', draw_profile),
      ('resources', 'monlog.json', draw_resources),
    ):
      places = [os.path.join(session, source) for session in group]
      tables = [logs.read(x) for x in places if os.path.exists(x)]
      if any(tables):
        try:
          figure = draw(label, tables)
        except KeyError as error:
          raise errors.UsageError(
            f'{source} of {label} is damaged: {error} is missing; move it away.'
          ) from None
        paths.append(plot.save(figure, os.path.join(output, name + suffix)))
  for path in paths:
    print(f'Wrote {path}.')


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
  """Parse the command line."""
  parser = entry.Parser(prog='agents-plot', description=__doc__)
  add = parser.add_argument
  add('sessions', nargs='*', metavar='SESSION', help='runs of one experiment')
  text = 'runs of another experiment; repeatable'
  add('--group', nargs='+', metavar='SESSION', action='append', help=text)
  add('--output', metavar='FOLDER', help='folder for figures (default plots/)')
  add('--keyx', choices=_AXES, default='epoch', help='x-axis')
  add(
    '--names', nargs='+', metavar='GLOB', help='variables to plot (default all)'
  )
  text = 'points to average'
  add('--window', type='positive', default=1, metavar='N', help=text)
  return parser.parse_args(argv)


def run(argv: Sequence[str] | None = None) -> int:
  """Run the program; return the exit code."""
  return entry.run(lambda: main(parse_args(argv)))


def _unique(sessions):
  """Return absolute paths; a session that is named twice is one run."""
  found: dict[str, str] = {}
  for path in map(files.absolute, sessions):
    found.setdefault(os.path.realpath(path), path)
  return list(found.values())


def _find_parent(path, rows):
  """Nearest scope around a path that is recorded itself, or None."""
  while path not in ('', '/'):
    path = path.rpartition('/')[0] or '/'
    if path in rows:
      return path
  return None


if __name__ == '__main__':
  sys.exit(run())
