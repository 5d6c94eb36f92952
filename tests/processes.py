"""Programs in processes of their own, and limits on time."""

import contextlib
import os
import signal
import subprocess
import sys
import time

from tests import golden


@contextlib.contextmanager
def time_limit(seconds):
  """Fail instead of waiting for ever; only for the main thread."""

  def interrupt(unused_signal, unused_frame):
    raise AssertionError(f'took more than {seconds} seconds')

  previous = signal.signal(signal.SIGALRM, interrupt)
  signal.setitimer(signal.ITIMER_REAL, seconds)
  try:
    yield
  finally:
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, previous)


def start_python(*args):
  """Start Python in the folder of the project; its output is a pipe."""
  return subprocess.Popen(
    [sys.executable, *args],
    cwd=golden.ROOT,
    env={**os.environ, 'PYTHONPATH': golden.ROOT},
    stdout=subprocess.PIPE,
    text=True,
  )


def run_python(*args, seconds=120):
  """Run Python in the folder of the project; returns its output."""
  process = start_python(*args)
  try:
    output, _ = process.communicate(timeout=seconds)
  finally:
    process.kill()
  assert process.returncode == 0, output
  return output


def is_running(pid):
  """Whether a process exists; what only waits for its parent does not."""
  try:
    with open(f'/proc/{pid}/stat') as file_:
      return file_.read().rpartition(')')[2].split()[0] != 'Z'
  except (FileNotFoundError, ProcessLookupError):
    return False


def wait_for_end(pids, seconds=30):
  """Processes of a list that still run after some seconds."""
  limit = time.time() + seconds
  while time.time() < limit:
    if not any(is_running(pid) for pid in pids):
      return []
    time.sleep(0.05)
  return [pid for pid in pids if is_running(pid)]
