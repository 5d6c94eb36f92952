"""Servers as tests use them."""

import json
import os
import signal
import socket
import subprocess
import sys
import types

import msgpack

from tests import golden

OPTIONS = 'STAND_IN_OPTIONS'
# Starts a server as CarlaUE4.sh does, with the Python that $PYTHON names.
LAUNCHER = os.path.join(os.path.dirname(__file__), 'CarlaUE4.sh')

_CONFIG = {
  'backend': 'server',
  'x_res': 32,
  'y_res': 32,
  'render_x_res': 40,
  'render_y_res': 36,
  'vehicles': 3,
  'pedestrians': 2,
  'seed': 0,
  'retries': 5,
  'retry_pause': 0.01,
}


class Control:
  """Questions and orders to a running server, beside those of its clients.

  They are answered at once, however slow or silent the server is otherwise.

  Args:
    port: Port of the server.
  """

  def __init__(self, port):
    self.port = port
    self._socket = socket.create_connection(('127.0.0.1', port), 10)
    self._unpacker = msgpack.Unpacker()

  def config(self, **changes):
    """Return settings of a small `CarlaEnv` on this server."""
    return {**_CONFIG, 'port': self.port, **changes}

  def look(self):
    """Return the state as an object, see `world.World.look`.

    It has `calls` as well, a dict of numbers of calls, and `unknown`, a list of
    calls that the server does not know.
    """
    state = types.SimpleNamespace(**self._call('test.look'))
    state.actors = [types.SimpleNamespace(**x) for x in state.actors]
    return state

  def set(self, **switches):
    """Switch faults on and off, see `faults.Faults`."""
    self._call('test.set', switches)

  def hit(self, kind, impulse=500.0, ticks=1):
    """Let the ego vehicle touch a `vehicle`, a `walker` or a wall.

    Args:
      kind: Kind of what is touched; there has to be one.
      impulse: In N s.
      ticks: Number of ticks, from the next on.
    """
    self._call('test.hit', [kind, impulse, ticks])

  def destroy(self, kind):
    """Destroy the first actor whose type starts with this, as others may."""
    self._call('test.destroy', kind)

  def disconnect(self):
    self._socket.close()

  def _call(self, method, *args):
    self._socket.sendall(msgpack.packb([0, 0, method, [[False], *args]]))
    while True:
      data = self._socket.recv(1 << 20)
      assert data, 'the server has ended'
      self._unpacker.feed(data)
      for _, _, _, ((is_fine, value),) in self._unpacker:
        assert is_fine, value
        return value


class Server(Control):
  """Process of a server of its own.

  Args:
    port: Port; by default one that is free, with the next two.
    **options: `town`; `faults`, a dict as of `faults.Faults`; `map`, path of an
      OpenDRIVE file that all towns show; `points`, its spawn points; `ground`,
      the rectangle of its pedestrians, None for none.

  Attributes:
    port: Port.
    pid: Number of the process.
  """

  def __init__(self, port=None, **options):
    package = __name__.rpartition('.')[0]
    flags = [f'-carla-rpc-port={port}'] if port else []
    self._process = subprocess.Popen(
      [sys.executable, '-m', package, *flags],
      cwd=golden.ROOT,
      env={**os.environ, OPTIONS: json.dumps(options)},
      stdout=subprocess.PIPE,
      text=True,
    )
    self.pid = self._process.pid
    super().__init__(int(self._process.stdout.readline().split()[0]))

  def kill(self):
    """End it as a crash does."""
    self._process.send_signal(signal.SIGKILL)
    self._process.wait()

  def close(self):
    self.disconnect()
    self.kill()
    self._process.stdout.close()
