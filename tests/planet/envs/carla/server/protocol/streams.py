"""Streams: listeners of sensors, and what is sent to them."""

import collections
import socket
import struct
import threading
import time

from tests.planet.envs.carla.server.protocol import messages

WORLD_STREAM = 1
# Seconds after which a listener that takes nothing is given up.
_PATIENCE = 2.0


class Streams:
  """Sockets by the streams that they listen to.

  Args:
    port: Port of the streams.
    faults: `Faults`.
  """

  def __init__(self, port, faults):
    self._port, self._faults = port, faults
    self._last = WORLD_STREAM
    self._listeners = collections.defaultdict(list)

  def open(self):
    """Return the number of a new stream."""
    self._last += 1
    return self._last

  def token(self, stream):
    return messages.pack_token(stream, self._port) if stream else b''

  def close(self, stream):
    for listener in self._listeners.pop(stream, []):
      listener.close()

  def is_heard(self, stream):
    return bool(self._listeners.get(stream))

  def send(self, stream, message, delay=0.0):
    """Send a message, now or after some seconds."""
    if delay:
      timer = threading.Timer(delay, self.send, (stream, message))
      timer.daemon = True
      timer.start()
      return
    for listener in list(self._listeners.get(stream, ())):
      try:
        listener.sendall(message)
      except OSError:
        listener.close()
        self._listeners[stream].remove(listener)

  def serve(self, listener):
    """Take up a listener, who first tells the number of a stream."""
    listener.settimeout(_PATIENCE)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    request = listener.recv(4, socket.MSG_WAITALL)
    if len(request) == 4:
      time.sleep(self._faults.subscribe_delay)
      self._listeners[struct.unpack('<I', request)[0]].append(listener)
