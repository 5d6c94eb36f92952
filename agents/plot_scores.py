"""Draw scores over environment steps, a line per run and group.

Example:

  python -m agents.plot_scores --out curves.png --phase eval \\
      ours=results/ppo/pendulum.csv reference=reference.csv

The files are CSV with the columns `global_step`, `phase`, `mean_score`, and
optionally `seed`; folders of PPO runs stand for the scores.csv in them.
"""

import argparse
import csv
import glob
import os
import sys
from collections.abc import Mapping
from collections.abc import Sequence

from agents.run import entry
from agents.run import errors
from agents.run import files

# Steps and scores of one run.
Curve = list[tuple[int, float]]
_COLORS = ('tab:blue', 'tab:orange', 'tab:green', 'tab:red', 'tab:purple')


def main(argv: Sequence[str] | None = None) -> None:
  """Draw what the command line names."""
  args = parse_args(argv)
  groups: dict[str, list[Curve]] = {}
  for source in args.sources:
    name, _, path = source.rpartition('=')
    groups.setdefault(name or path, []).extend(read_curves(path, args.phase))
  draw(groups, args.out, args.title, args.divide)
  print(f'Wrote {args.out}.')


def read_curves(path: str, phase: str) -> list[Curve]:
  """Lists of (step, score), one per seed.

  Args:
    path: CSV file, or folder with files called `scores.csv` somewhere below.
    phase: Phase to select.

  Raises:
    UsageError: If there is no such file or it holds no scores of the phase.
  """
  names = [path]
  if os.path.isdir(path):
    pattern = os.path.join(glob.escape(path), '**', 'scores.csv')
    names = sorted(glob.glob(pattern, recursive=True))
  curves: dict[tuple[str, str | None], Curve] = {}
  for name in names:
    if not os.path.exists(name):
      raise errors.UsageError(f'There is no file {name}.')
    with open(name, newline='') as file_:
      for row in csv.DictReader(file_):
        if row.get('phase') == phase:
          point = (int(row['global_step']), float(row['mean_score']))
          curves.setdefault((name, row.get('seed')), []).append(point)
  if not curves:
    raise errors.UsageError(f'There are no scores of phase {phase} in {path}.')
  return list(curves.values())


def draw(
  groups: Mapping[str, list[Curve]],
  filename: str,
  title: str,
  divide: float = 1,
) -> None:
  """Write a picture of all curves.

  Args:
    groups: Dict from label to a list of curves, lists of (step, score).
    filename: File to write, such as `curves.png`.
    title: Text above.
    divide: Number that steps are divided by.
  """
  try:
    import matplotlib
  except ImportError:
    raise errors.UsageError(
      "Plots need matplotlib: pip install 'reference-agents[viz]'."
    ) from None
  matplotlib.use('Agg')
  from matplotlib import pyplot

  figure, axes = pyplot.subplots(figsize=(7, 4), layout='constrained')
  for color, (name, curves) in zip(_COLORS, groups.items()):
    for number, curve in enumerate(curves):
      steps, scores = zip(*curve)
      label = f'{name} ({len(curves)})' if not number else None
      scaled = [x / divide for x in steps]
      axes.plot(scaled, scores, color=color, alpha=0.7, label=label)
  axes.set(xlabel='environment steps', ylabel='mean score', title=title)
  axes.grid(alpha=0.3)
  axes.legend()
  with files.atomic_path(filename) as temporary:
    figure.savefig(temporary, dpi=120)


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
  """Parse the command line."""
  parser = argparse.ArgumentParser(
    prog='python -m agents.plot_scores',
    description=__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  parser.add_argument('sources', nargs='+', help='label=file or folder')
  parser.add_argument('--out', required=True, help='picture to write')
  parser.add_argument('--phase', default='eval', help='phase to draw')
  parser.add_argument('--title', default='', help='text above')
  parser.add_argument(
    '--divide', type=float, default=1, help='number to divide steps by'
  )
  return parser.parse_args(argv)


def run(argv: Sequence[str] | None = None) -> int:
  """Run the program; return the exit code."""
  return entry.run(lambda: main(argv))


if __name__ == '__main__':
  sys.exit(run())
