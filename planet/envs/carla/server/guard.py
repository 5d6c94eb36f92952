"""Program that runs a CARLA server and stops it when its parent ends.

Standard input is a pipe without data. When the parent closes it or dies, even
by SIGKILL, the program sends SIGTERM and then SIGKILL to the process group of
the server. Prints the process id of the server and exits with its exit code.
Run it by file name; it needs only the standard library:

  python -I guard.py LOG SECONDS PROGRAM [FLAGS ...]
"""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time

_BECOME_SUBREAPER = 36
_PAUSE = 0.1


def main(log: str, seconds: str, *command: str) -> int:
  """Run a server until it or standard input ends.

  Args:
    log: File for the output of the server.
    seconds: Seconds between SIGTERM and SIGKILL.
    *command: Program and flags of the server.

  Returns:
    Exit code of the server, or 128 plus the signal that ended it.
  """
  # Processes started by the server become our children when it ends, so we can
  # wait for the whole group.
  ctypes.CDLL(None).prctl(_BECOME_SUBREAPER, 1)
  for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    # Unlike SIG_IGN, a function is not inherited by the server.
    signal.signal(number, lambda *unused_args: None)
  with open(log, 'ab') as output:
    server = subprocess.Popen(
      command,
      stdin=subprocess.DEVNULL,
      stdout=output,
      stderr=subprocess.STDOUT,
      start_new_session=True,
    )
  print(server.pid, flush=True)
  while server.poll() is None:
    if select.select([sys.stdin], [], [], _PAUSE)[0]:
      break
  for number in (signal.SIGTERM, signal.SIGKILL):
    with contextlib.suppress(ProcessLookupError):
      os.killpg(server.pid, number)
    if _wait(server, float(seconds)):
      break
  code = server.poll()
  return 128 if code is None else code if code >= 0 else 128 - code


def _wait(server, seconds):
  """Return whether all processes of the group end in time."""
  limit = time.monotonic() + seconds
  while time.monotonic() < limit:
    if server.poll() is not None:
      try:
        while os.waitpid(-server.pid, os.WNOHANG)[0]:
          pass
      except ChildProcessError:
        return True
    time.sleep(_PAUSE)
  return False


if __name__ == '__main__':
  sys.exit(main(*sys.argv[1:]))
