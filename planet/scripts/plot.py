"""Plot returns and losses of runs.

Example:

  planet-plot ~/logdir/a ~/logdir/b --out figures

Finds all runs below the folders. Averages runs with the same preset, tasks and
parameters, such as seeds, and shades one standard deviation. Writes a PNG file
per variable.
"""

import argparse
import fnmatch
import os
import sys
from collections.abc import Sequence

import numpy as np

from agents.run import entry, errors, files, log, plot, tags
from planet.scripts import presets

_AXES = {
  'env_steps': 'Environment steps',
  'global_step': 'Global step',
  'epoch': 'Epoch',
}
_NAMES = ('returns/*', 'objectives/*', 'gradients/norm')
_MEANS = ('returns/train', 'returns/test')
_META = ('phase', 'step', 'global_step', 'wall_time', 'env_steps')
# Parameters that do not set runs apart.
_NEUTRAL = ('tasks', 'max_steps', 'isolate_envs', 'checkpoint_every')


def load_run(folder: str, axis: str = 'env_steps') -> plot.Run:
  """Return the scalars of a run.

  Args:
    folder: Folder with `config.yaml` and `metrics.jsonl`.
    axis: One of `env_steps`, `global_step` and `epoch`. Epochs between two
      reports are interpolated.

  Returns:
    Run with curves by plain names, see `agents.run.tags`; others keep their
    tags after the name of the phase.

  Raises:
    UsageError: If `config.yaml` is not one of PlaNet.
  """
  try:
    stored = files.read_yaml(os.path.join(folder, 'config.yaml'))
    params = stored['params']
    preset = presets.PRESETS[stored['config']]
    tasks = {'tasks': ['cheetah_run'], **preset, **params}['tasks']
    label = f'{stored["config"]}: {", ".join(tasks)}'
    settings = {k: v for k, v in params.items() if k not in _NEUTRAL}
  except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
    raise errors.UsageError(
      f'Cannot read the config.yaml of {folder}: {error!r}. Give folders that '
      'planet.scripts.train has written.'
    ) from None
  rows = log.read_metrics(folder)
  columns = _make_columns(rows)
  if len(tasks) > 1:
    # The mean over several tasks tells nothing.
    columns = {k: v for k, v in columns.items() if k not in _MEANS}
  curves = {}
  for name, pairs in columns.items():
    steps, values = np.array(pairs, float).T
    points = plot.make_points(_convert(steps, rows, axis), values)
    if len(points[0]):
      curves[name] = points
  return plot.Run(label, curves, settings)


def main(args: argparse.Namespace) -> None:
  """Write the figures and print their paths.

  Raises:
    UsageError: If there are no runs, or none with scalars of such names.
  """
  style = plot.Style(_AXES[args.axis], window=args.window)
  folders = plot.find_runs(args.logdirs, 'config.yaml', 'metrics.jsonl')
  runs = [load_run(x, args.axis) for x in folders]
  known = {name for run in runs for name in run.curves}
  if not known:
    raise errors.UsageError(
      f'There is nothing to draw in {", ".join(args.logdirs)}; give the '
      '--logdir of trainings with at least one epoch.'
    )
  usual = [x for x in _NAMES if fnmatch.filter(known, x)]
  names = plot.choose_names(known, args.names or usual)
  for path in plot.draw_all(plot.group(runs), names, args.out, style):
    print(f'Wrote {path}.')


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
  """Parse the command line."""
  parser = argparse.ArgumentParser(
    prog='planet-plot',
    description=__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  add = parser.add_argument
  add('logdirs', nargs='+', metavar='LOGDIR', help='folders to search for runs')
  add('--out', default='.', help='output folder')
  add('--axis', choices=_AXES, default='env_steps', help='x-axis')
  add(
    '--names',
    nargs='+',
    metavar='GLOB',
    help=f'variables to plot, * for all; default: {" ".join(_NAMES)}',
  )
  add(
    '--window',
    type=int,
    default=1,
    help='moving average in points',
  )
  return parser.parse_args(argv)


def run(argv: Sequence[str] | None = None) -> int:
  """Run the program; return the exit code."""
  return entry.run(lambda: main(parse_args(argv)))


def _make_columns(rows):
  """Return a dict from name to a list of global step and number."""
  columns: dict[str, list[tuple[int, float]]] = {}
  for row in rows:
    for tag, value in row.items():
      if tag not in _META:
        name = tags.plain_name(tag, row['phase']) or f'{row["phase"]}/{tag}'
        columns.setdefault(name, []).append((row['global_step'], value))
  return columns


def _convert(steps, rows, axis):
  """Return abscissas of global steps, NaN where they are not known yet."""
  if axis == 'global_step':
    return steps
  if axis == 'epoch':
    known = {x['global_step']: x['step'] for x in rows if x['phase'] == 'epoch'}
  else:
    known = {x['global_step']: x['env_steps'] for x in rows if 'env_steps' in x}
  x = sorted(known)
  return np.interp(steps, x, [known[k] for k in x]) if x else steps * np.nan


if __name__ == '__main__':
  sys.exit(run())
