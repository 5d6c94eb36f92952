"""Program between us and a CARLA server, which ends with us.

Its input is a pipe that nobody writes to. The end of that pipe means that we
have closed it or died, also by SIGKILL; then the whole process group of the
server is ended, politely first. Prints the process id of the server, and exits
with the exit code of the server. Run by file name, with the standard library
only:

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
  """Run a server until it ends, or until our input does.

  Args:
    log: File for the output of the server.
    seconds: Time that it is given to end before it is killed.
    *command: Program and flags of the server.

  Returns:
    Exit code of the server, 128 and the number of the signal that ended it.
  """
  # What the server has started becomes our child when its parent ends, so
  # that we can wait for all of the group.
  ctypes.CDLL(None).prctl(_BECOME_SUBREAPER, 1)
  for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    # A server would inherit that a signal is ignored, but not a function.
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
  """Tell whether all processes of the group end in time."""
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
