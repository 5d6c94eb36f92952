"""Train the original code with the settings of an entry."""

import contextlib
import os
import signal
import subprocess

from agents.run import errors, files, log, stopping
from scripts import compare, machine
from scripts.reproductions.entry import Entry, fill

# Environment steps per episode; HER logs episodes per rank instead of steps.
_STEPS = 50


def train(
  entry: Entry, path: str, seed: int | None, out: str, results: str
) -> None:
  """Train the original and add its curve to the reference file of the entry.

  Also adds the curve after an interruption, unless a longer one is there; the
  next call starts over.

  Args:
    entry: Entry with a reference file.
    path: Clone of the original, or the folder with `pybullet_envs`.
    seed: Seed, by default the first one.
    out: Folder of all runs.
    results: Folder of all results.

  Raises:
    UsageError: If the entry has no reference file, or the path no original.
    Failure: If the original fails.
  """
  if not entry.has_original:
    raise errors.UsageError(f'{entry.name} has no original to train.')
  path = files.absolute(path)
  compare.find_system(path, entry.system)
  seed = entry.seeds[0] if seed is None else seed
  out = files.absolute(out)
  folder = os.path.join(out, entry.name, f'original{seed}')
  os.makedirs(folder, exist_ok=True)
  given = path, fill(entry.flags, seed, folder), folder
  module = f'tests.originals.{entry.system}_original'
  code = f'from {module} import train; train(*{given!r})'
  environ = machine.environ(PYTHONPATH=machine.ROOT, RCALL_NUM_CPU='1')
  start = machine.resolve(entry.python.split())
  command = [*start, '-W', 'ignore', '-c', code]
  with stopping.handle_signals('Stopping the original'):
    # In a new session, so that only this program receives Ctrl-C.
    process = subprocess.Popen(
      command,
      env=environ,
      cwd=folder,
      start_new_session=True,
      preexec_fn=machine.end_with_parent,
    )
    while process.poll() is None:
      with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(1)
      if stopping.requested():
        # Processes of environments would go on alone.
        with contextlib.suppress(ProcessLookupError):
          os.killpg(process.pid, signal.SIGTERM)
  _add(entry, str(seed), folder, results)
  if stopping.requested():
    print('Stopped; its curve ends here. Repeat the command to start over.')
  elif process.returncode:
    raise errors.Failure(
      f'The original ended with exit code {process.returncode}; see its output '
      'above.'
    )


def _add(entry, seed, folder, results):
  """Replace the rows of a seed in the reference file."""
  progress = os.path.join(folder, 'progress.csv')
  rows = list(log.read_table(progress)) if os.path.exists(progress) else []
  if not rows:
    return
  if entry.system == 'her':
    steps = _STEPS * entry.ranks
    rows = [
      {
        'epoch': row['epoch'],
        'timesteps': f'{steps * float(row["train/episode"] or 0):.0f}',
        'test_success_rate': row['test/success_rate'],
        'test_mean_Q': row['test/mean_Q'],
      }
      for row in rows
    ]
  path = os.path.join(results, 'reference', entry.reference)
  before = list(log.read_table(path)) if os.path.exists(path) else []
  known = [x for x in before if x['seed'] == seed]
  if len(known) > len(rows):
    print(f'Kept the curve of seed {seed} in {path}, which is longer.')
    return
  rows = [x for x in before if x not in known] + [
    {'seed': seed, **x} for x in rows
  ]
  rows.sort(key=lambda x: int(x['seed'] or 0))
  columns = list((before or rows)[0])
  log.write_table(path, columns, [[x.get(y) for y in columns] for x in rows])
