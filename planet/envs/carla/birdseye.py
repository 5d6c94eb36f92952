"""Roads from above, small, with marks on them."""

import numpy as np

from planet.envs.carla import lanes as lanes_lib

Colour = tuple[int, int, int]
_ROAD, _GROUND = (118, 118, 124), (48, 66, 44)


class Map:
  """Picture of all lanes.

  Args:
    lanes: `Lanes` of the map.
    size: Largest extent of the picture in pixels.

  Attributes:
    image: uint8 [height, width, 3].
  """

  def __init__(self, lanes: lanes_lib.Lanes, size: int = 256):
    points = np.concatenate([x.points[:, :2] for x in lanes.all])
    low, high = points.min(0) - 8.0, points.max(0) + 8.0
    self._origin, self._scale = low, size / np.max(high - low)
    width, height = np.ceil((high - low) * self._scale).astype(int)
    self.image = np.empty((height, width, 3), np.uint8)
    self.image[:] = _GROUND
    for lane in lanes.all:
      count = max(2, int(lane.length * self._scale * 2))
      arc = np.linspace(0, lane.length, count)
      x, y = (np.interp(arc, lane.arc, c) for c in lane.points.T[:2])
      self.dots(x, y, _ROAD, max(1, round(lane.width * self._scale / 2)))

  def dot(self, x: float, y: float, colour: Colour, radius: int = 2) -> None:
    """Mark a place, given in metres."""
    self.dots(np.array([x]), np.array([y]), colour, radius)

  def path(self, points: np.ndarray, colour: Colour) -> None:
    """Mark the way through places, metres [places, 2]."""
    x, y = np.asarray(points).T
    self.dots(x, y, colour)

  def dots(
    self, x: np.ndarray, y: np.ndarray, colour: Colour, radius: int = 1
  ) -> None:
    """Mark places with squares.

    Args:
      x: Coordinates in metres, float64 [places].
      y: The same along the other axis.
      colour: RGB.
      radius: Half the size of a square in pixels.
    """
    column = ((np.asarray(x) - self._origin[0]) * self._scale).astype(int)
    row = ((np.asarray(y) - self._origin[1]) * self._scale).astype(int)
    height, width = self.image.shape[:2]
    for down in range(-radius, radius + 1):
      for right in range(-radius, radius + 1):
        rows = np.clip(row + down, 0, height - 1)
        columns = np.clip(column + right, 0, width - 1)
        self.image[rows, columns] = colour
