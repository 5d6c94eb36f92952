"""Sockets that stand in for a CARLA server as far as `version` goes.

CARLA speaks msgpack-RPC: a request is [0, number, method, arguments], its
answer [1, number, error, result]. Results are [[1, value]], errors of the
simulator [[0, [text]]].
"""

import contextlib
import socket
import struct
import threading


@contextlib.contextmanager
def listen(serve):
  """Accept connections on a free port; yields the port.

  Args:
    serve: Function that handles one connection.
  """
  server = socket.create_server(('127.0.0.1', 0))
  connections = []

  def accept():
    while True:
      try:
        connection, _ = server.accept()
      except OSError:
        return
      connections.append(connection)
      threading.Thread(target=serve, args=(connection,), daemon=True).start()

  threading.Thread(target=accept, daemon=True).start()
  try:
    yield server.getsockname()[1]
  finally:
    # Wakes the thread up, which would accept once more otherwise.
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    for connection in connections:
      connection.close()


def be_silent(unused_connection):
  """Like a program that waits for something else."""


def answer_version(version):
  """Function that answers `version` and refuses all other methods."""

  def serve(connection):
    with contextlib.suppress(OSError):
      while True:
        request = connection.recv(65536)
        if not request:
          return
        number, method = parse(request)
        if method == 'version':
          result = b'\x91\x92\x01' + pack_text(version)
        else:
          result = b'\x91\x92\x00\x91' + pack_text(f'no {method[:20]}')
        connection.sendall(b'\x94\x01' + pack_int(number) + b'\xc0' + result)

  return serve


def parse(request):
  """Number and method of a request."""
  assert request[:2] == b'\x94\x00', request
  kind, rest = request[2], request[3:]
  if kind < 0x80:
    number = kind
  else:
    form = {0xCC: '>B', 0xCD: '>H', 0xCE: '>I'}[kind]
    size = struct.calcsize(form)
    number, rest = struct.unpack(form, rest[:size])[0], rest[size:]
  assert 0xA0 <= rest[0] < 0xC0, rest
  return number, rest[1 : 1 + rest[0] - 0xA0].decode()


def pack_int(number):
  return b'\xce' + struct.pack('>I', number)


def pack_text(text):
  data = text.encode()
  assert len(data) < 32, text
  return bytes([0xA0 + len(data)]) + data
