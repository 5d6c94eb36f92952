"""A TensorBoard server beside a run."""

import socket
import subprocess
import sys

_PORT = 6006
# The end of its standard input tells the server that the run has ended, even
# if that was killed.
_SERVER = """
import os, runpy, threading

def wait():
  while os.read(0, 1024):
    pass
  os._exit(0)

threading.Thread(target=wait, daemon=True).start()
runpy.run_module('tensorboard.main', run_name='__main__', alter_sys=True)
"""


def start(folder):
  """Start a server in a process of its own, which ends with this one.

  Args:
    folder: Folder of event files.

  Returns:
    Tuple of a function that ends the server, and its address.
  """
  port = _find_port()
  # Quiet: the server warns on every start that it runs without TensorFlow.
  process = subprocess.Popen(
    [sys.executable, '-c', _SERVER, '--logdir', folder, '--port', str(port)],
    stdin=subprocess.PIPE,
    stdout=subprocess.DEVNULL,
    stderr=subprocess.DEVNULL,
    start_new_session=True,
  )

  def stop():
    process.stdin.close()
    process.terminate()
    try:
      process.wait(10)
    except subprocess.TimeoutExpired:
      process.kill()
      process.wait()

  return stop, f'http://localhost:{port}'


def _find_port():
  """The usual port, or any other one if that is taken."""
  for port in (_PORT, 0):
    with socket.socket() as probe:
      probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
      try:
        probe.bind(('localhost', port))
      except OSError:
        continue
      return probe.getsockname()[1]
  raise RuntimeError('no free port for TensorBoard')
