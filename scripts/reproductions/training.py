"""Trainings of entries: begun or continued by their public commands."""

import contextlib
import datetime
import json
import math
import os
import resource
import shlex
import signal
import subprocess
import time
from typing import Any

from agents.run import errors, files, stopping
from agents.run import folder as run_folder
from scripts import machine
from scripts.reproductions import curves
from scripts.reproductions.entry import ROOT, Entry, executable, fill

_RECORD = 'record.json'
_POLL_SECONDS = 10
# Exit codes of programs whose training is complete; 3 is that of sessions
# which had been so before.
_COMPLETE = (0, 3)


def train(entry: Entry, seed: int, out: str) -> None:
  """Train until the run is complete; a run that was stopped is continued.

  Args:
    entry: What to train.
    seed: Seed.
    out: Folder of all runs. The run lies in `<out>/<name>/seed<seed>/run`, what
      is known about it in `record.json` beside it.

  Raises:
    UsageError: If another process trains here, or the program fails.
    StopRequested: If the user asks to stop.
  """
  folder = make_folder(entry, seed, out)
  os.makedirs(folder, exist_ok=True)
  lock = run_folder.lock(folder)
  if lock is None:
    raise errors.UsageError(
      f'Another process trains in {folder}; wait, or choose another --out.'
    )
  with lock:
    record = read_record(folder)
    if record['complete']:
      print(f'{entry.name}, seed {seed}: the training is complete.')
      return
    run = os.path.join(folder, 'run')
    _run_before(entry, seed, run)
    command = entry.command(seed, run)
    print(shlex.join(command), flush=True)
    record['command'] = shlex.join(entry.command(seed, 'RUN'))
    _run_once(entry, command, folder, record)
  stopping.check()


def make_folder(entry: Entry, seed: int, out: str) -> str:
  """Return the folder of a seed."""
  out = os.path.abspath(os.path.expanduser(out))
  return os.path.join(out, entry.name, f'seed{seed}')


def find_seeds(entry: Entry, out: str) -> list[int]:
  """Return the seeds of the folders that hold a run."""
  parent = os.path.dirname(make_folder(entry, 0, out))
  found = run_folder.find(parent, _RECORD)
  names = [os.path.basename(x).removeprefix('seed') for x in found]
  return sorted(int(x) for x in names if x.isdigit())


def read_record(folder: str) -> dict[str, Any]:
  """Return what is known about a run.

  Returns:
    Dict with `complete`, `sittings`, a list of dicts with the machine, the
    wall and the CPU seconds of each, and `command`.
  """
  path = os.path.join(folder, _RECORD)
  if not os.path.exists(path):
    return {'complete': False, 'sittings': []}
  with open(path) as file_:
    return json.load(file_)


def write_record(folder: str, record: dict[str, Any]) -> None:
  """Write what is known about a run, completely or not at all."""
  with files.atomic_write(os.path.join(folder, _RECORD)) as file_:
    json.dump(record, file_, indent=1)


def make_environ() -> dict[str, str]:
  """Return variables of a program; root may use MPI in containers."""
  paths = [ROOT, *filter(None, [os.environ.get('PYTHONPATH')])]
  environ = {**os.environ, 'PYTHONPATH': os.pathsep.join(paths)}
  if os.geteuid() == 0:
    environ['OMPI_ALLOW_RUN_AS_ROOT'] = '1'
    environ['OMPI_ALLOW_RUN_AS_ROOT_CONFIRM'] = '1'
  return environ


def _run_before(entry, seed, run):
  """Make what the training needs besides, once."""
  command = fill(entry.before, seed, run)
  if command and not os.path.exists(command[-1]):
    print(shlex.join(command), flush=True)
    subprocess.run(executable(command), env=make_environ(), check=True)


def _run_once(entry, command, folder, record):
  """Run the program until it ends, has reached enough, or is to stop."""
  began, before, enough = time.time(), _cpu_seconds(), False
  sitting: dict[str, Any] = {
    'began': datetime.datetime.now().isoformat(timespec='seconds'),
    'cpu_seconds': 0,
    **machine.describe(entry.system),
  }
  record['sittings'].append(sitting)
  with stopping.handle_signals():
    # A group of its own: Ctrl-C reaches this program, which passes it on.
    process = subprocess.Popen(
      executable(command), env=make_environ(), start_new_session=True
    )
    while process.returncode is None:
      with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_POLL_SECONDS)
      used = round(_cpu_seconds(process.pid) - before)
      sitting['cpu_seconds'] = max(sitting['cpu_seconds'], used)
      sitting['wall_seconds'] = round(time.time() - began)
      if process.returncode is None and not enough:
        enough = _has_enough(entry, folder)
        if enough or stopping.requested():
          process.send_signal(signal.SIGINT)
      else:
        done = process.returncode in _COMPLETE and not stopping.requested()
        record['complete'] = process.returncode is not None and (enough or done)
      write_record(folder, record)
  if not record['complete'] and not stopping.requested():
    raise errors.UsageError(
      f'{shlex.join(command)} ended with exit code {process.returncode}; its '
      'last words are above. Repeat the command to continue.'
    )


def _has_enough(entry, folder):
  """Whether a run that may be stopped early has reached its bar."""
  if not entry.stop_early:
    return False
  points = curves.read_run(entry, os.path.join(folder, 'run'))
  return len(points[0]) > 0 and math.isfinite(entry.bar.measure(points))


def _cpu_seconds(pid=None):
  """CPU seconds of programs that ended, and of one that may still run.

  An mpirun that is interrupted ends without those of its ranks, so they are
  counted before.
  """
  import psutil

  used = resource.getrusage(resource.RUSAGE_CHILDREN)
  total = used.ru_utime + used.ru_stime
  with contextlib.suppress(psutil.NoSuchProcess):
    root = psutil.Process(pid)
    for process in [root, *root.children(recursive=True)] if pid else ():
      with contextlib.suppress(psutil.NoSuchProcess):
        total += sum(process.cpu_times()[:4])
  return total
