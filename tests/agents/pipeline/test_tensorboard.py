"""The server beside a run."""

import os
import signal

from tests import processes

# Prints the number of the server's process. Unless it is stopped before, the
# program ends as after a second Ctrl-C, with no time to close anything.
PROGRAM = """
import os, subprocess, sys, time, urllib.request
popen = subprocess.Popen
def start(*args, **kwargs):
  process = popen(*args, **kwargs)
  print(process.pid, flush=True)
  return process
subprocess.Popen = start
from agents.pipeline import tensorboard
stop, address = tensorboard.start(sys.argv[1])
if sys.argv[2] == 'stop':
  stop()
  sys.exit()
while True:
  try:
    page = urllib.request.urlopen(address, timeout=10).read()
    break
  except OSError:
    time.sleep(0.1)
print('TensorBoard' in page.decode(), flush=True)
os._exit(130)
"""


def run(folder, how):
  """Output of the program after the number, and whether its server ended."""
  process = processes.start_python('-c', PROGRAM, str(folder), how)
  server = int(process.stdout.readline())
  try:
    output, _ = process.communicate(timeout=60)
    return output.split(), not processes.wait_for_end([server])
  finally:
    process.kill()
    if processes.is_running(server):
      os.kill(server, signal.SIGKILL)


def test_server_ends_with_a_killed_run(tmp_path):
  assert run(tmp_path, 'exit') == (['True'], True)


def test_server_is_stopped(tmp_path):
  assert run(tmp_path, 'stop') == ([], True)
