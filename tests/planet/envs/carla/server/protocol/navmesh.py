"""A rectangle of sidewalk as a navigation mesh of Detour, as CARLA's Nav/*.bin.

Walkers of the client need one. This is version 7 of the tiles of
https://github.com/recastnavigation/recastnavigation, DetourNavMesh.h, below the
header of its samples.
"""

import struct

_SET, _TILE = b'TESM', b'VAND'
_NO_LINK = 0xFFFFFFFF
_SIDEWALK, _WALKABLE = 1, 2
_AGENT = 2.0, 0.35, 0.4  # Height, radius, and climb.
_INNER_BITS = 4


def make(x0, y0, x1, y1):
  """Return the file of a mesh of one polygon at height 0.

  Args:
    x0: Least x in meters, as in the world.
    y0: Least y.
    x1: Greatest x.
    y1: Greatest y.
  """
  low, high = (x0, -1.0, y0), (x1, 2.0, y1)
  corners = (x0, 0, y0), (x0, 0, y1), (x1, 0, y1), (x1, 0, y0)
  counts = (1, len(corners), len(corners), 1, 0, 2, 1, 0, 1)
  parts = [
    # Version, place and layer of the tile, its number, counts of what follows.
    struct.pack('<4s5i9i', _TILE, 7, 0, 0, 0, 0, *counts),
    struct.pack('<10f', *_AGENT, *low, *high, 1.0),
    *(struct.pack('<3f', *corner) for corner in corners),
    struct.pack('<I6H', _NO_LINK, 0, 1, 2, 3, 0, 0),
    struct.pack('<6HHBB', *[0] * 6, _WALKABLE, len(corners), _SIDEWALK),
    bytes(12 * len(corners)),
    struct.pack('<IIBBxx', 0, 0, 0, 2),
    # Two triangles. The last byte marks the edges at the boundary, two bits
    # each; without them the library crashes.
    bytes([0, 1, 2, 0b00_01_01]) + bytes([0, 2, 3, 0b01_01_00]),
    struct.pack('<6Hi', 0, 0, 0, *[0xFFFF] * 3, 0),
  ]
  tile = b''.join(parts)
  size = x1 - x0, y1 - y0
  header = struct.pack('<4sii', _SET, 1, 1)
  header += struct.pack('<3f2fii', *low, *size, 1, 1 << _INNER_BITS)
  return header + struct.pack('<II', 1 << _INNER_BITS, len(tile)) + tile
