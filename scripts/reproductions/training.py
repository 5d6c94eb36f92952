"""Start and resume trainings of entries with their public commands."""

import contextlib
import dataclasses
import math
import os
import shlex
import signal
import subprocess
import time
from typing import Any

from agents.run import errors, files, stopping
from agents.run import folder as run_folder
from scripts import machine
from scripts.reproductions import bars, curves
from scripts.reproductions.entry import Entry, fill

_RECORD = 'record.json'
_POLL_SECONDS = 1
# Exit codes of complete trainings; 3 if a session was already complete.
_COMPLETE = (0, 3)


@dataclasses.dataclass(frozen=True)
class Trial:
  """Training of one seed, with a folder for the run and a record.

  Attributes:
    entry: Entry to train.
    seed: Seed.
    out: Folder of all trials.
  """

  entry: Entry
  seed: int
  out: str

  @property
  def folder(self) -> str:
    """Folder of the trial."""
    out = files.absolute(self.out)
    return os.path.join(out, self.entry.name, f'seed{self.seed}')

  @property
  def run(self) -> str:
    """Folder of the training."""
    return os.path.join(self.folder, 'run')

  @property
  def exported(self) -> str:
    """Folder of the trained agent, for the shipped seed."""
    return os.path.join(self.folder, 'agent')

  @property
  def shown(self) -> str:
    """Command of the training, with `RUN` for its folder."""
    return shlex.join(self.entry.command(self.seed, 'RUN'))

  def matches(self, record: dict[str, Any]) -> bool:
    """Return whether a record is of this training, if it has been started."""
    return record.get('command', self.shown) == self.shown

  def read(self) -> dict[str, Any]:
    """Return the record.

    Returns:
      Dict with `complete`, `command`, and `sittings`, a list of dicts with the
      machine, wall seconds and CPU seconds of each start.
    """
    path = os.path.join(self.folder, _RECORD)
    if not os.path.exists(path):
      return {'complete': False, 'sittings': []}
    return files.read_plain(path)

  def write(self, record: dict[str, Any]) -> None:
    """Write the record atomically."""
    files.write_json(os.path.join(self.folder, _RECORD), record, indent=1)


def find(entry: Entry, out: str) -> list[Trial]:
  """Return the trials of an entry that have been started."""
  parent = os.path.dirname(Trial(entry, 0, out).folder)
  folders = run_folder.find(parent, _RECORD)
  seeds = [x.rpartition('seed')[2] for x in folders]
  return [Trial(entry, int(x), out) for x in seeds if x.isdigit()]


def train(trial: Trial) -> None:
  """Train until the run is complete; resume a stopped run.

  Raises:
    UsageError: If another process or command trains here.
    Failure: If the program fails.
    StopRequested: If the user asks to stop.
  """
  entry, seed = trial.entry, trial.seed
  with run_folder.Run.open(trial.folder):
    record = trial.read()
    if not trial.matches(record):
      raise errors.UsageError(
        f'{trial.folder} contains another training, {record["command"]}. '
        'Choose another --out.'
      )
    if record['complete']:
      print(f'{entry.name}, seed {seed}: the training is complete.')
      return
    before = fill(entry.before, seed, trial.run)
    if before and not os.path.exists(before[-1]):
      print(shlex.join(before), flush=True)
      code = subprocess.call(
        machine.resolve(before),
        env=_environ(),
        preexec_fn=machine.end_with_parent,
      )
      if code:
        raise _failure(before, code)
    record.update(command=trial.shown, complete=False)
    record.pop('evaluation', None)
    command = entry.command(seed, trial.run)
    print(shlex.join(command), flush=True)
    code = _run_once(trial, record, command)
  stopping.check()
  if not record['complete']:
    raise _failure(command, code)


def _failure(command, code):
  return errors.Failure(
    f'{shlex.join(command)} ended with exit code {code}; see its output above. '
    'Repeat the command to resume.'
  )


def _run_once(trial, record, command):
  """Run the program until it ends, meets the bar, or is asked to stop."""
  began, before = time.monotonic(), _cpu_seconds()
  sitting = {**machine.describe(), 'cpu_seconds': 0}
  record['sittings'].append(sitting)
  enough = stopped = False
  with stopping.handle_signals():
    # In a new session, so that only this program receives Ctrl-C.
    process = subprocess.Popen(
      machine.resolve(command),
      env=_environ(),
      start_new_session=True,
      preexec_fn=machine.end_with_parent,
    )
    while process.returncode is None:
      with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_POLL_SECONDS)
      used = round(_cpu_seconds() - before)
      sitting['cpu_seconds'] = max(sitting['cpu_seconds'], used)
      sitting['wall_seconds'] = round(time.monotonic() - began)
      enough = trial.entry.stop_early and _has_reached(trial)
      if process.poll() is None and not stopped:
        stopped = enough or stopping.requested()
        if stopped:
          process.send_signal(signal.SIGINT)
      trial.write(record)
  done = process.returncode in _COMPLETE and not stopping.requested()
  record['complete'] = enough or done
  trial.write(record)
  return process.returncode


def _environ():
  """Environment of programs, which find this checkout from every folder."""
  known = os.environ.get('PYTHONPATH')
  paths = [machine.ROOT, *([known] if known else [])]
  return machine.environ(PYTHONPATH=os.pathsep.join(paths))


def _has_reached(trial):
  """Return whether a run that may stop early has met its bar."""
  points = curves.read_run(trial.entry, trial.run)
  bar = trial.entry.bar
  return len(points[0]) > 0 and math.isfinite(bars.measure(bar, points))


def _cpu_seconds():
  """Return the CPU seconds of all child processes.

  Includes running processes, because an interrupted mpirun loses the CPU time
  of its ranks.
  """
  import psutil

  here = psutil.Process()
  used = here.cpu_times()
  total = used.children_user + used.children_system
  for process in here.children(recursive=True):
    with contextlib.suppress(psutil.NoSuchProcess):
      total += sum(process.cpu_times()[:4])
  return total
