"""Ground texture: a bird's-eye image with a color palette.

Entries of the palette: shades of grass, asphalt and shoulders, then two colors
of lines.
"""

import numpy as np

from planet.envs.carla import lanes as lanes_lib

GRASS, ASPHALT, SHOULDER = (0, 32), (32, 48), (48, 56)
WHITE, YELLOW = 56, 57
_MARGIN = 30.0
_MOST_PIXELS_PER_METER = 8.0
_MAX_PIXELS = 2**24
_SHOULDER_WIDTH = 1.5
_LINE = 0.15
_DASH, _PERIOD = 3.0, 9.0


class Texture:
  """Ground of a map.

  Args:
    lanes: `Lanes` of the map.

  Attributes:
    pixels: Entries of the palette, uint8 [height, width]; rows along y.
    scale: Pixels per meter, at most 8; large maps have fewer, to limit the
      texture to 16 MiB.
    origin: Coordinates of the first pixel in meters, x and y.
  """

  def __init__(self, lanes: lanes_lib.Lanes):
    points = np.concatenate([x.points[:, :2] for x in lanes.all])
    low, high = points.min(0) - _MARGIN, points.max(0) + _MARGIN
    area = float(np.prod(high - low))
    self.scale = min(_MOST_PIXELS_PER_METER, (_MAX_PIXELS / area) ** 0.5)
    self.origin = low
    width, height = np.ceil((high - low) * self.scale).astype(int)
    random = np.random.default_rng(0)
    self.pixels = _grass(random, height, width)
    self._noise = random.integers(0, 16, (256, 256), np.uint8)
    self._draw(lanes)

  def _draw(self, lanes):
    streets = [x for x in lanes.all if x.junction is None]
    for lane in streets:
      if lane.curb:
        side = lane.width / 2
        self._band(lane, side - 0.2, side + _SHOULDER_WIDTH, SHOULDER[0], 8)
    for lane in lanes.all:
      half = lane.width / 2 + 0.1
      self._band(lane, -half, half, ASPHALT[0], 16)
    for lane in streets:
      self._mark(lane)

  def _mark(self, lane):
    """Draw the lane markings of the map, or else typical ones."""
    half = lane.width / 2
    left, right = lane.marks
    right = right or ('solid' if lane.curb else 'broken')
    self._line(lane, half - _LINE / 2, right, WHITE)
    self._line(lane, -half, left or 'broken', YELLOW)

  def _line(self, lane, offset, kind, color):
    low, high = offset - _LINE / 2, offset + _LINE / 2
    dash = _DASH if kind == 'broken' else None
    self._band(lane, low, high, color, 1, dash)

  def _band(self, lane, low, high, first, shades, dash=None):
    """Fill the band between two offsets to the right of a lane."""
    step = 0.6 / self.scale
    arc = np.linspace(0, lane.length, max(2, int(lane.length / step)))
    if dash:
      arc = arc[arc % _PERIOD < dash]
    x, y, yaw = (np.interp(arc, lane.arc, c) for c in lane.points.T)
    right = np.linspace(low, high, max(2, int((high - low) / step) + 1))
    columns = x[:, None] - np.sin(yaw)[:, None] * right
    rows = y[:, None] + np.cos(yaw)[:, None] * right
    columns = ((columns - self.origin[0]) * self.scale).astype(int)
    rows = ((rows - self.origin[1]) * self.scale).astype(int)
    value = np.uint8(first)
    if shades > 1:
      value = first + self._noise[rows % 256, columns % 256] % shades
    self.pixels[rows, columns] = value


def _grass(random, height, width):
  """Return grass with patches of different sizes, uint8 [height, width]."""
  total = random.integers(0, 8, (height, width), np.uint8)
  for size, strength in ((8, 8), (40, 17)):
    shape = (height // size + 1, width // size + 1)
    patches = random.integers(0, strength, shape, np.uint8)
    total += patches.repeat(size, 0).repeat(size, 1)[:height, :width]
  return total
