"""Bytes of the protocol: calls, tokens of streams, and what streams carry.

Calls are msgpack-RPC over TCP without framing. A call is [0, number, method,
arguments], its answer [1, number, None, result]. The first argument is [true]
if no answer is wanted.
"""

import struct

import msgpack

# Numbers of the sensors in the table of the client.
COLLISION, DEPTH, RGB, SEMANTIC, WORLD = 0, 1, 13, 14, 17
# Types of attributes of blueprints.
BOOL, INT, FLOAT, STRING = 1, 2, 3, 4

_STATE_SIZE = 54


def unpacker():
  """Return what calls are fed to, and iterated over."""
  return msgpack.Unpacker(raw=False, strict_map_key=False)


def pack_answer(number, result):
  return msgpack.packb([1, number, None, result])


def success(value):
  return [[1, value]]


def failure(text):
  return [[0, [text]]]


def nothing(error=None):
  """Result of a call that returns nothing, or its error."""
  return [[False]] if error is None else [[True, [error]]]


def pack_token(stream, port):
  """Return the 24 bytes by which a client finds a stream."""
  return struct.pack('<IHBB16s', stream, port, 1, 0, b'')


def pack_frame(sensor, frame, seconds, pose, data):
  """Return a message of a stream: size, 48 bytes of header, and the data.

  Args:
    sensor: Number of the kind of sensor.
    frame: Number of the tick.
    seconds: Time of the simulation.
    pose: x, y, z in meters, pitch, yaw, roll in degrees.
    data: Bytes that depend on the kind.
  """
  header = struct.pack('<QQd6f', sensor, frame, seconds, *pose)
  return struct.pack('<I', len(header) + len(data)) + header + data


def pack_world(episode, clock, dt, actors):
  """Return the state of all actors, 119 bytes for each."""
  data = [struct.pack('<Qdf3iI', episode, clock, dt, 0, 0, 0, 0)]
  for actor in actors:
    state = b''
    if actor.is_vehicle:
      *pedals, gear = actor.control
      # Speed limit, light: unknown, none; no failure.
      state = struct.pack('<3f3?i', *pedals, gear)
      state += struct.pack('<fB?IB', 30.0, 4, False, 0, 0)
    data += [
      struct.pack('<IB', actor.id, 3),
      struct.pack('<6f', *actor.position, *actor.rotation),
      struct.pack('<9f', *actor.velocity, 0, 0, actor.turn, 0, 0, 0),
      state.ljust(_STATE_SIZE, b'\0'),
    ]
  return b''.join(data)


def pack_image(width, height, fov, pixels):
  """Return an image, whose pixels are BGRA."""
  return struct.pack('<IIf', width, height, fov) + pixels


def pack_collision(own, other, impulse):
  """Return a contact of two actors as of `describe`, impulse in N s."""
  return msgpack.packb([own, other, list(impulse)], use_single_float=True)


def describe(number, parent, definition, extent, tags=b'', token=b''):
  """Return an actor as calls hand it out."""
  box = [[0.0, 0.0, 0.7], list(extent), [0.0, 0.0, 0.0]]
  return [number, parent, definition, box, tags, token]
