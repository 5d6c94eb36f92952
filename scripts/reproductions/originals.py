"""Curves of the original code, trained on the setting of a row."""

import os
import subprocess
import sys

from agents.run import errors, log
from scripts import machine
from scripts.reproductions.entry import ROOT, Entry, fill

# Environment steps of an episode, which HER counts instead of steps.
_STEPS = 50


def train(
  entry: Entry, path: str, seed: int | None, out: str, results: str
) -> None:
  """Train the original and put its curve into the row's file of references.

  What it has reached is added when it is interrupted, too; it begins anew then.

  Args:
    entry: Row of PPO or HER.
    path: Clone of openai/baselines, or the folder with `pybullet_envs`.
    seed: Seed, by default the first one.
    out: Folder of all runs.
    results: Folder of all results.

  Raises:
    UsageError: If the row has no curve of an original.
  """
  if not entry.reference.endswith('.csv'):
    raise errors.UsageError(f'{entry.name} has no curve of an original.')
  seed = entry.seeds[0] if seed is None else seed
  folder = os.path.join(os.path.abspath(out), entry.name, f'original{seed}')
  os.makedirs(folder, exist_ok=True)
  given = os.path.abspath(path), fill(entry.flags, seed, folder), folder
  module = f'scripts.comparison.{entry.system}_original'
  code = f'from {module} import train; train(*{given!r})'
  environ = machine.environ(PYTHONPATH=ROOT, RCALL_NUM_CPU='1')
  command = [sys.executable, '-W', 'ignore', '-c', code]
  try:
    subprocess.run(command, env=environ, cwd=folder, check=True)
  finally:
    _add(entry, str(seed), folder, results)


def _add(entry, seed, folder, results):
  """Replace the rows of a seed in the file of references."""
  rows = list(log.read_table(os.path.join(folder, 'progress.csv')))
  if entry.system == 'her':
    rows = [
      {
        'epoch': row['epoch'],
        'timesteps': f'{_STEPS * float(row["train/episode"] or 0):.0f}',
        'test_success_rate': row['test/success_rate'],
        'test_mean_Q': row['test/mean_Q'],
      }
      for row in rows
    ]
  path = os.path.join(results, 'reference', entry.reference)
  before = list(log.read_table(path))
  rows = [x for x in before if x['seed'] != seed] + [
    {'seed': seed, **x} for x in rows
  ]
  rows.sort(key=lambda x: int(x['seed'] or 0))
  columns = list(before[0])
  log.write_table(path, columns, [[x.get(y) for y in columns] for x in rows])
