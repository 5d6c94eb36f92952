"""Bird's-eye maps of roads, with markers."""

import copy

import numpy as np
from PIL import Image, ImageDraw

from planet.envs.carla import lanes as lanes_lib

Colour = tuple[int, int, int]
_ROAD, _GROUND = (118, 118, 124), (48, 66, 44)


class Map:
  """Image of all lanes.

  Args:
    lanes: `Lanes` of the map.
    size: Larger side of the image in pixels.
  """

  def __init__(self, lanes: lanes_lib.Lanes, size: int = 256):
    points = np.concatenate([x.points[:, :2] for x in lanes.all])
    low, high = points.min(0) - 8.0, points.max(0) + 8.0
    self._origin, self._scale = low, size / np.max(high - low)
    width, height = np.ceil((high - low) * self._scale).astype(int).tolist()
    self._picture = Image.new('RGB', (width, height), _GROUND)
    for lane in lanes.all:
      wide = max(3, round(lane.width * self._scale))
      self.path(lane.points[:, :2], _ROAD, wide)

  @property
  def image(self) -> np.ndarray:
    """Image as uint8 [height, width, 3]."""
    return np.array(self._picture)

  def copy(self) -> 'Map':
    """Return a copy with the same markers."""
    result = copy.copy(self)
    result._picture = self._picture.copy()
    return result

  def dot(self, x: float, y: float, colour: Colour, radius: int = 2) -> None:
    """Mark a position, given in metres, with a square."""
    ((column, row),) = self._locate(np.array([[x, y]]))
    box = column - radius, row - radius, column + radius, row + radius
    ImageDraw.Draw(self._picture).rectangle(box, colour)

  def path(self, points: np.ndarray, colour: Colour, width: int = 3) -> None:
    """Draw a line through positions in metres, float [positions, 2]."""
    line = self._locate(points)
    ImageDraw.Draw(self._picture).line(line, colour, width, joint='curve')

  def _locate(self, points):
    pixels = ((np.asarray(points) - self._origin) * self._scale).astype(int)
    return [tuple(x) for x in pixels.tolist()]
