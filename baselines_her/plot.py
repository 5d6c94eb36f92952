"""Plot success rates of finished or running trainings.

Example:

  python -m baselines_her.plot logs/reach0 logs/reach1 logs/reach2

Finds all runs below the folders. Runs of the same environment and settings
become one curve, the median over runs with the band from the 25th to the 75th
percentile.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from agents.run import entry
from agents.run import errors
from agents.run import files
from baselines_her import log_formats

_KEY = 'test/success_rate'


def load_runs(folders: Sequence[str]) -> list[dict[str, Any]]:
  """Return the results of all runs below some folders.

  Args:
    folders: List of paths.

  Returns:
    List of dicts with `env`, `label`, and arrays [epochs] `success` and
    `steps`, the environment steps of all ranks.

  Raises:
    UsageError: If there are none.
  """
  runs = []
  for folder in folders:
    for place, _, names in os.walk(os.path.expanduser(folder)):
      if {'progress.csv', 'params.json'} <= set(names):
        run = _load_run(place)
        if run:
          runs.append(run)
  if not runs:
    raise errors.UsageError(
      f'There are no results in {", ".join(folders)}; give folders of '
      '--log_path with at least one epoch.'
    )
  return runs


def load_reference(path: str) -> list[dict[str, Any]]:
  """Return the results of a CSV file with the columns of the reference's curve.

  Args:
    path: File with the columns `seed`, `epoch`, `timesteps` and
      `test_success_rate`.

  Returns:
    List of dicts like those of `load_runs`.

  Raises:
    UsageError: If the file has other columns.
  """
  try:
    rows = log_formats.read_csv(path)
    seeds = sorted({row.get('seed') for row in rows}, key=str)
    groups = [[x for x in rows if x.get('seed') == seed] for seed in seeds]
    return [
      {
        'label': 'reference',
        'success': np.array([x['test_success_rate'] for x in group]),
        'steps': np.array([x['timesteps'] for x in group]),
      }
      for group in groups
    ]
  except (OSError, KeyError) as error:
    raise errors.UsageError(
      f'Cannot read a curve from {path!r}: {error!r}. It needs the columns '
      'seed, epoch, timesteps and test_success_rate.'
    ) from None


def summarize(curves: Sequence[np.ndarray]) -> np.ndarray:
  """Compute median and quartiles over runs, which may differ in length.

  Args:
    curves: List of arrays [epochs].

  Returns:
    Array [3, longest]: 25th, 50th and 75th percentile of the runs that are
    that long.
  """
  padded = np.full((len(curves), max(map(len, curves))), np.nan)
  for row, curve in zip(padded, curves):
    row[: len(curve)] = curve
  return np.nanpercentile(padded, [25, 50, 75], axis=0)


def smooth(curve: np.ndarray) -> np.ndarray:
  """Apply a box filter whose width grows with the length of the curve."""
  half = int(np.ceil(len(curve) / 60))
  ones = np.ones(2 * half + 1)
  total = np.convolve(curve, ones, 'same')
  return total / np.convolve(np.ones(len(curve)), ones, 'same')


def plot(
  runs: Sequence[dict[str, Any]],
  out: str,
  axis: str = 'epoch',
  smoothed: bool = False,
  reference: Sequence[dict[str, Any]] = (),
) -> list[str]:
  """Draw one figure per environment.

  Args:
    runs: List of dicts of `load_runs`.
    out: Folder of the figures `fig_<env>.png`.
    axis: `epoch` or `steps`.
    smoothed: Whether to smooth the curves.
    reference: Further curves, list of dicts of `load_reference`.

  Returns:
    List of the paths written.
  """
  import matplotlib

  matplotlib.use('Agg')
  from matplotlib import pyplot as plt

  paths = []
  for env in sorted({run['env'] for run in runs}):
    chosen = [x for x in runs if x['env'] == env] + list(reference)
    figure, axes = plt.subplots(figsize=(7, 4.5))
    for label in sorted({x['label'] for x in chosen}):
      group = [x for x in chosen if x['label'] == label]
      _draw_curve(axes, label, group, axis, smoothed)
    names = {'epoch': 'Epoch', 'steps': 'Environment steps of all ranks'}
    axes.set(
      title=env,
      xlabel=names[axis],
      ylabel='Success rate of the evaluation',
      ylim=(-0.02, 1.04),
    )
    if axis == 'epoch':
      locator: Any = axes.xaxis.get_major_locator()
      locator.set_params(integer=True)
    axes.grid(alpha=0.3)
    axes.legend(loc='best')
    figure.tight_layout()
    path = os.path.join(out, f'fig_{env}.png')
    with files.atomic_path(path) as temporary:
      figure.savefig(temporary, dpi=120)
    plt.close(figure)
    paths.append(path)
  return paths


def main(args: argparse.Namespace) -> None:
  """Write the figures and print their paths."""
  runs = load_runs(args.folders)
  reference = load_reference(args.reference) if args.reference else ()
  for path in plot(runs, args.out, args.axis, bool(args.smooth), reference):
    print(f'Wrote {path}.')


def parse_args(argv: list[str] | None = None) -> argparse.Namespace:
  """Parse the command line."""
  parser = argparse.ArgumentParser(
    prog='python -m baselines_her.plot',
    description=__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  add = parser.add_argument
  add('folders', nargs='+', help='folders of runs, or folders of those')
  add('--out', default='.', help='folder of the figures')
  add('--axis', choices=('epoch', 'steps'), default='epoch', help='abscissa')
  add('--smooth', type=int, default=0, help='1 to smooth the curves')
  add('--reference', default=None, help='CSV file with a curve to compare')
  return parser.parse_args(argv)


def run(argv: list[str] | None = None) -> int:
  """Run the program; return the exit code."""
  return entry.run(lambda: main(parse_args(argv)))


def _load_run(folder: str) -> dict[str, Any] | None:
  """Return the results of one run, None before its first epoch."""
  params = log_formats.read_json(os.path.join(folder, 'params.json'))[0]
  rows: dict[int, Any] = {}
  for row in log_formats.read_csv(os.path.join(folder, 'progress.csv')):
    if row.get(_KEY) is not None and row.get('epoch') is not None:
      # Epochs that were repeated after an interruption: the later one counts.
      rows[int(row['epoch'] or 0)] = row
  if not rows:
    return None
  epochs = sorted(rows)
  metrics = os.path.join(folder, 'metrics.jsonl')
  steps = {}
  if os.path.exists(metrics):
    steps = {x['step']: x['env_steps'] for x in log_formats.read_json(metrics)}
  strategy = 'her' if params['replay_strategy'] == 'future' else 'ddpg'
  reward = 'dense' if 'Dense' in params['env_name'] else 'sparse'
  return {
    'env': params['env_name'].replace('Dense', ''),
    'label': f'{strategy}-{reward}',
    'success': np.array([float(rows[x][_KEY]) for x in epochs]),
    'steps': np.array([steps.get(x, np.nan) for x in epochs]),
  }


def _draw_curve(
  axes: Any,
  label: str,
  group: Sequence[dict[str, Any]],
  axis: str,
  smoothed: bool,
) -> None:
  curves = [smooth(x['success']) if smoothed else x['success'] for x in group]
  low, median, high = summarize(curves)
  longest = max(group, key=lambda x: len(x['success']))
  x = longest['steps'] if axis == 'steps' else np.arange(len(median)) + 1
  runs = '1 run' if len(group) == 1 else f'{len(group)} runs'
  (line,) = axes.plot(x, median, label=f'{label} ({runs})', marker='.')
  axes.fill_between(x, low, high, alpha=0.25, color=line.get_color())


if __name__ == '__main__':
  sys.exit(run())
