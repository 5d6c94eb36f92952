"""Bird's-eye maps of roads, with markers."""

import copy
import math
from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw

from planet.envs.carla import lanes as lanes_lib
from planet.envs.carla import places

Color = tuple[int, int, int]
_ROAD, _GROUND = (118, 118, 124), (48, 66, 44)
WAY, OTHERS, OWN = (70, 120, 230), (250, 200, 60), (240, 50, 50)
# Meters that a view shows, ahead and to both sides together, and behind.
_SPAN, _BEHIND = 48.0, 12.0
# Pixels per meter of the map below a view, and its largest side.
_DETAIL, _LARGEST = 4.0, 4096
# Half of the length and width of vehicles in meters.
_LENGTH, _WIDTH = 2.25, 0.95


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

  def dot(self, x: float, y: float, color: Color, radius: int = 2) -> None:
    """Mark a position, given in meters, with a square."""
    ((column, row),) = self._locate(np.array([[x, y]]))
    box = column - radius, row - radius, column + radius, row + radius
    ImageDraw.Draw(self._picture).rectangle(box, color)

  def path(self, points: np.ndarray, color: Color, width: int = 3) -> None:
    """Draw a line through positions in meters, float [positions, 2]."""
    line = self._locate(points)
    ImageDraw.Draw(self._picture).line(line, color, width, joint='curve')

  def _locate(self, points):
    pixels = ((np.asarray(points) - self._origin) * self._scale).astype(int)
    return [tuple(x) for x in pixels.tolist()]

  def cut(
    self, size: tuple[int, int], start: places.Point, right: float, down: float
  ) -> Image.Image:
    """Return a part of the picture, turned and scaled.

    Args:
      size: Width and height in pixels.
      start: Position of the upper left corner in meters.
      right: Direction of the rows in radians.
      down: Meters per pixel.
    """
    cos = math.cos(right) * down * self._scale
    sin = math.sin(right) * down * self._scale
    x, y = (np.array(start) - self._origin) * self._scale
    return self._picture.transform(
      size,
      Image.Transform.AFFINE,
      (cos, -sin, x, sin, cos, y),
      Image.Resampling.BILINEAR,
      fillcolor=_GROUND,
    )


class View:
  """Picture from above that moves and turns with the car, which looks up.

  Shows 48 m to both sides together, 36 m ahead and 12 m behind: roads, the way
  ahead, other vehicles as squares, and the car.

  Args:
    lanes: `Lanes` of the map.
    width: Width of the images in pixels.
    height: Height of the images in pixels.
  """

  def __init__(self, lanes: lanes_lib.Lanes, width: int, height: int):
    points = np.concatenate([x.points[:, :2] for x in lanes.all])
    side = float(np.ptp(points, 0).max()) + 16
    self._map = Map(lanes, min(_LARGEST, math.ceil(_DETAIL * side)))
    self._size = width, height

  def draw(
    self,
    position: places.Point,
    yaw: float,
    way: np.ndarray,
    others: Sequence[places.Point],
  ) -> np.ndarray:
    """Draw the surroundings of the car.

    Args:
      position: Position of the car in meters.
      yaw: Heading of the car in degrees.
      way: Positions on the way ahead in meters, [positions, 2].
      others: Positions of other vehicles in meters.

    Returns:
      uint8 [height, width, 3].
    """
    # Drawn as a square, as deep as it is wide.
    side = max(self._size)
    scale = side / _SPAN
    heading = math.radians(yaw)
    turn = np.array(
      [
        [math.cos(heading), math.sin(heading)],
        [-math.sin(heading), math.cos(heading)],
      ]
    )

    def locate(points):
      """Return columns and rows of positions in meters."""
      ahead, right = turn @ (np.reshape(points, (-1, 2)) - position).T
      rows = (_SPAN - _BEHIND - ahead) * scale
      columns = (_SPAN / 2 + right) * scale
      return np.stack([columns, rows], 1)

    corner = np.array([_SPAN - _BEHIND, -_SPAN / 2]) @ turn + position
    right = heading + math.pi / 2
    picture = self._map.cut((side, side), tuple(corner), right, 1 / scale)
    pen = ImageDraw.Draw(picture)
    if len(way) > 1:
      line = [tuple(x) for x in locate(way).tolist()]
      pen.line(line, WAY, max(1, round(scale)), joint='curve')
    for column, row in locate(others).tolist():
      reach = _LENGTH * scale / 1.4
      box = column - reach, row - reach, column + reach, row + reach
      pen.rectangle(box, OTHERS)
    ((column, row),) = locate([position]).tolist()
    width, length = _WIDTH * scale, _LENGTH * scale
    box = column - width, row - length, column + width, row + length
    pen.rectangle(box, OWN)
    return np.array(picture.resize(self._size))
