"""Plot returns and losses of runs.

Example:

  planet-plot ~/logdir/a ~/logdir/b --out figures

Finds all runs in the folders. Draws the mean of runs that differ only in their
seed, with the runs as thin lines or, from five on, one standard deviation as a
band. Writes one PNG file per variable.
"""

import fnmatch
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from agents.run import entry, errors, log, names, plot, training
from agents.run import folder as folders
from planet.scripts import parameters, presets

_AXES = {
  'env_steps': 'Environment steps',
  'global_step': 'Global step',
  'epoch': 'Epoch',
}
_NAMES = ('return/*', 'loss/*', 'optimizer/grad_norm')
_MEANS = ('return/train', 'return/test')
# Runs that differ only in these parameters are averaged.
_NEUTRAL = (
  'tasks max_steps total_env_steps isolate_envs checkpoint_every '
  'checkpoint_minutes'
).split()


def load_run(folder: str, axis: str = 'env_steps') -> plot.Run:
  """Return the scalars of a run.

  Args:
    folder: Folder with `config.yaml` and `metrics.jsonl`.
    axis: One of `env_steps`, `global_step` and `epoch`. Epochs between two
      reports are interpolated.

  Returns:
    Run with curves by the names of `agents.run.names`.

  Raises:
    UsageError: If PlaNet did not write `config.yaml`.
  """
  stored = folders.read_settings(folder)
  preset, params = str(stored.get('config')), stored.get('params')
  if preset not in presets.PRESETS or not isinstance(params, dict):
    raise errors.UsageError(
      f'The config.yaml in {folder} does not come from PlaNet. Give folders '
      'written by planet-train.'
    )
  tasks = params.get('tasks', parameters.usual_tasks(preset))
  rows = log.read_metrics(folder)
  columns: dict[str, list[tuple[int, float]]] = {}
  for row in rows:
    for name in [x for x in row if x not in training.RESERVED]:
      # Returns of different tasks are not comparable.
      if len(tasks) == 1 or name not in _MEANS:
        columns.setdefault(name, []).append((row['global_step'], row[name]))
  curves = {}
  for name, pairs in columns.items():
    steps, values = np.array(pairs, float).T
    points = plot.make_points(_convert(steps, rows, axis), values)
    if len(points[0]):
      curves[name] = points
  settings = {k: v for k, v in params.items() if k not in _NEUTRAL}
  return plot.Run(f'{preset}: {", ".join(tasks)}', curves, settings)


def main(args: Any) -> None:
  """Write the figures and print their paths.

  Raises:
    UsageError: If there are no runs, or no scalars match the names.
  """
  style = plot.Style(_AXES[args.axis], window=args.window)
  found = plot.find_runs(args.logdirs, 'config.yaml', 'metrics.jsonl')
  runs = [load_run(x, args.axis) for x in found]
  known = {name for run in runs for name in run.curves}
  if not known:
    raise errors.UsageError(
      f'There is nothing to plot in {", ".join(args.logdirs)}; give the '
      '--logdir of runs that completed at least one epoch.'
    )
  usual = [x for x in _NAMES if fnmatch.filter(known, x)]
  # Names of earlier versions are known, too.
  given = [names.plain_name(x) for x in args.names or usual]
  chosen = plot.choose_names(known, given)
  for path in plot.draw_all(plot.group(runs), chosen, args.out, style):
    print(f'Wrote {path}.')


def run(argv: Sequence[str] | None = None) -> int:
  """Run the program; return the exit code."""
  parser = entry.Parser(prog='planet-plot', description=__doc__)
  add = parser.add_argument
  add('logdirs', nargs='+', metavar='LOGDIR', help='folders to search for runs')
  add('--out', default='.', help='output folder')
  add('--axis', choices=_AXES, default='env_steps', help='x-axis')
  text = f'variables to plot, * for all; default: {" ".join(_NAMES)}'
  add('--names', nargs='+', metavar='GLOB', help=text)
  add('--window', type='positive', default=1, help='moving average in points')
  return entry.run(lambda: main(parser.parse_args(argv)))


def _convert(steps, rows, axis):
  """Convert global steps to values on the x-axis; NaN where unknown."""
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
