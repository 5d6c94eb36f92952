"""Plot success rates of finished or running trainings.

Example:

  her-plot logs/reach0 logs/reach1 logs/reach2

Finds all runs below the given folders. Runs with the same environment, replay
and kind of reward are combined into one curve: their median, with the runs as
thin lines or, from five on, a band from the 25th to the 75th percentile.
"""

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from agents.run import entry, errors, log, plot
from baselines_her import config, logger

_logger = logging.getLogger(__name__)
_AXES = {'epoch': 'Epoch', 'steps': 'Environment steps of all ranks'}


def load_runs(folders: Sequence[str], axis: str = 'epoch') -> list[plot.Run]:
  """Return the results of all runs below some folders.

  Args:
    folders: List of paths.
    axis: `epoch` or `steps`, the environment steps of all ranks.

  Returns:
    List of runs with one curve each, whose name is the environment.

  Raises:
    UsageError: If there are no results.
  """
  places = plot.find_runs(folders, 'progress.csv', 'params.json')
  found = [_load_run(place, axis) for place in places]
  runs = [run for run in found if run]
  if not runs:
    raise errors.UsageError(
      f'There are no results in {", ".join(folders)}; give --log_path folders '
      'with at least one epoch.'
    )
  return runs


def smooth(curve: np.ndarray) -> np.ndarray:
  """Apply a box filter whose width grows with the length of the curve."""
  return plot.smooth(curve, 2 * int(np.ceil(len(curve) / 60)) + 1)


def main(args: argparse.Namespace) -> None:
  """Write a figure per environment and print its path."""
  runs = load_runs(args.folders, args.axis)
  envs = sorted({env for run in runs for env in run.curves})
  if args.reference:
    column = 'timesteps' if args.axis == 'steps' else 'epoch'
    seeds = plot.read_seeds(args.reference, column, 'test_success_rate')
    for x, y in seeds.values():
      points = x + (args.axis == 'epoch'), y
      runs.append(plot.Run('reference', dict.fromkeys(envs, points)))
  if args.smooth:
    for run in runs:
      run.curves = {k: (x, smooth(y)) for k, (x, y) in run.curves.items()}
  ylabel = 'Success rate in evaluation'
  style = plot.Style(_AXES[args.axis], ylabel, (-0.02, 1.04), quartiles=True)
  groups = dict(sorted(plot.group(runs).items()))
  for path in plot.draw_all(groups, envs, args.out, style, prefix='fig_'):
    print(f'Wrote {path}.')


def parse_args(argv: list[str] | None = None) -> argparse.Namespace:
  """Parse the command line."""
  parser = entry.Parser(prog='her-plot', description=__doc__)
  add = parser.add_argument
  add('folders', nargs='+', help='folders to search for runs')
  add('--out', default='.', help='folder to write figures to')
  add('--axis', choices=list(_AXES), default='epoch', help='x-axis')
  add('--smooth', type=int, default=0, help='1 smooths the curves')
  text = 'CSV file of a curve to add, with the columns of results/reference'
  add('--reference', default=None, help=text)
  return parser.parse_args(argv)


def run(argv: list[str] | None = None) -> int:
  """Run the program; return the exit code."""
  return entry.run(lambda: main(parse_args(argv)))


def _load_run(folder, axis):
  """Return the results of one run, None before its first epoch."""
  params = config.read_params(folder)
  rows = logger.read_csv(os.path.join(folder, 'progress.csv'))
  # Epochs that were repeated after an interruption: the later one counts. Some
  # forks of baselines do not number them.
  pairs = (
    (x.get('epoch', float(number)), x.get('test/success_rate'))
    for number, x in enumerate(rows)
  )
  rates: dict[Any, Any] = {
    epoch: rate
    for epoch, rate in pairs
    if isinstance(epoch, float) and isinstance(rate, float)
  }
  epochs = sorted(rates)
  x = [epoch + 1 for epoch in epochs]
  if axis == 'steps':
    rows = log.read_metrics(folder)
    steps = {x['step']: x.get('env_steps', np.nan) for x in rows}
    if rates and not steps:
      _logger.warning(
        'Left out %s, as it has no metrics.jsonl with the environment steps; '
        '--axis=epoch shows it.',
        folder,
      )
    x = [steps.get(epoch, np.nan) for epoch in epochs]
  points = plot.make_points(x, [rates[epoch] for epoch in epochs])
  strategy = 'her' if params['replay_strategy'] == 'future' else 'ddpg'
  reward = 'dense' if 'Dense' in params['env_name'] else 'sparse'
  curves = {params['env_name'].replace('Dense', ''): points}
  return plot.Run(f'{strategy}-{reward}', curves) if len(points[0]) else None


if __name__ == '__main__':
  sys.exit(run())
