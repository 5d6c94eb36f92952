"""A TensorBoard server beside a run."""

import socket
import subprocess
import sys

_PORT = 6006


def start(folder):
  """Start a server in a process of its own.

  Args:
    folder: Folder of event files.

  Returns:
    Tuple of a function that ends the server, and its address.
  """
  port = _find_port()
  # Quiet: the server warns on every start that it runs without TensorFlow.
  process = subprocess.Popen(
    [sys.executable, '-m', 'tensorboard.main', '--logdir', folder]
    + ['--port', str(port)],
    stdin=subprocess.DEVNULL,
    stdout=subprocess.DEVNULL,
    stderr=subprocess.DEVNULL,
    start_new_session=True,
  )

  def stop():
    process.terminate()
    process.wait(10)

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
