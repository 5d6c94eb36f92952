"""Plot returns over steps of training and evaluation, a line per group of runs.

Example:

  ppo-plot --out curves.png --phase eval \\
      ours=results/ppo_pendulum/curve.csv \\
      reference=results/reference/ppo_pendulum_curve.csv

Reads CSV files with the columns `global_step`, `phase`, `mean_score` and,
optionally, `seed`. For a folder, reads the scores.csv of all PPO runs in it.
Draws the mean over the seeds of a label or, for folders, over runs with the
same settings, with the runs as thin lines or, from five on, one standard
deviation as a band.
"""

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from agents.run import entry, errors, files, plot
from agents.run import folder as folder_lib

# What does not set runs apart in the legend.
_NEUTRAL = ('seed', 'logdir', 'steps', 'use_gpu')


def main(argv: Sequence[str] | None = None) -> None:
  """Draw the curves that the command line selects."""
  args = parse_args(argv)
  sources: dict[str, list[str]] = {}
  for source in args.sources:
    label, _, path = source.rpartition('=')
    if os.path.exists(files.expand(source)):
      label, path = '', source
    sources.setdefault(label, []).append(path)
  runs = []
  for label, paths in sources.items():
    runs += load_runs(paths, args.phase, label, args.divide)
  groups = {
    label: [run.curves[args.phase] for run in members]
    for label, members in plot.group(runs).items()
  }
  xlabel = 'Environment steps of training and evaluation'
  style = plot.Style(xlabel=xlabel, ylabel='mean return', window=args.window)
  style.counts = args.divide == 1
  plot.save(plot.draw(args.title, groups, style), args.out)
  print(f'Wrote {args.out}.')


def load_runs(
  path: str | os.PathLike[str] | Iterable[str],
  phase: str,
  label: str = '',
  divide: float = 1,
) -> list[plot.Run]:
  """Return the scores of one or many runs.

  Args:
    path: CSV file, or folder with `scores.csv` files at any depth; or several
      of them. A file that lies in several of them counts once.
    phase: Phase to select, and the name of the curves.
    label: Label of the runs; by default, their configuration and environment,
      or the name of the file.
    divide: Number to divide steps by.

  Raises:
    UsageError: If the file does not exist or has no scores of the phase, or the
      settings of a run are damaged.
  """
  loaded: dict[str, list[plot.Run]] = {}
  places = [path] if isinstance(path, str | os.PathLike) else path
  for place in [os.fspath(x) for x in places]:
    names = {os.path.realpath(x): x for x in _find_files(place)}
    for key, name in names.items():
      if key not in loaded:
        loaded[key] = _load(name, phase, label, divide)
    if not any(loaded[key] for key in names):
      raise errors.UsageError(
        f'There are no scores of phase {phase} in {place}; give another '
        '--phase, train or eval, or a folder of runs.'
      )
  return [run for runs in loaded.values() for run in runs]


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
  """Parse the command line."""
  parser = entry.Parser(prog='ppo-plot', description=__doc__)
  add = parser.add_argument
  add('sources', nargs='+', help='label=path of a CSV file or a folder of runs')
  add('--out', required=True, help='image file to write')
  add('--phase', default='eval', help='phase to plot, train or eval')
  add('--title', default='', help='title of the plot')
  add('--divide', type='rate', default=1, help='number to divide the steps by')
  add('--window', type='positive', default=1, help='points to average')
  return parser.parse_args(argv)


def _find_files(path: str) -> list[str]:
  """Return the paths of the files of scores in a folder, or that of a file."""
  place = files.expand(path)
  if os.path.exists(place) and not os.path.isdir(place):
    return [place]
  folders = plot.find_runs([path], 'scores.csv')
  return [os.path.join(x, 'scores.csv') for x in folders]


def _load(name: str, phase: str, label: str, divide: float) -> list[plot.Run]:
  """Return the scores of a file, a run for each seed in it."""
  task, settings = _describe(name)
  seeds = plot.read_seeds(name, 'global_step', 'mean_score', phase)
  return [
    plot.Run(label or task, {phase: (steps / divide, scores)}, settings)
    for steps, scores in seeds.values()
  ]


def _describe(path: str) -> tuple[str, dict[str, Any]]:
  """Return the label of a run, and its settings.

  Args:
    path: File of scores, in the folder of a run or elsewhere.
  """
  folder, name = os.path.split(os.path.abspath(path))
  if not folder_lib.is_run(folder):
    return name.removesuffix('.csv'), {}
  config = folder_lib.read_settings(folder)
  # A link to a run may have any name.
  own = os.path.basename(os.path.realpath(folder))
  source = own.partition('-')[2] or 'ppo'
  settings = {k: v for k, v in config.items() if k not in _NEUTRAL}
  return f'{source} {config.get("env", "")}', settings


def run(argv: Sequence[str] | None = None) -> int:
  """Run the program; return the exit code."""
  return entry.run(lambda: main(argv))


if __name__ == '__main__':
  sys.exit(run())
