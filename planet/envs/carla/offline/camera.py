"""Software camera for a flat world with upright boxes, in NumPy.

The camera looks straight ahead, so each pixel below the horizon shows a fixed
position relative to the vehicle, which is looked up in a ground texture. Boxes
are intersected with the vertical planes of all columns at once.
"""

import math

import numpy as np

from planet.envs.carla.offline import boxes as boxes_lib
from planet.envs.carla.offline import texture
from planet.envs.carla.offline import weather as weather_lib

_NEAR, _FAR = 0.3, 150.0
_MOST_BOXES = 32
# Bottom and top of windows, relative to the height of the vehicle.
_GLASS = (0.58, 0.9)
_SHADES = np.array([1.0, 0.78])
_DARK = np.array([44.0, 52.0, 62.0])
_DROP = 4


class Camera:
  """Pinhole camera that moves with a vehicle.

  Args:
    width: Width of the images in pixels.
    height: Height of the images in pixels.
    source: Width and height of the simulated camera; its images are scaled to
      the image size.
    fov: Horizontal field of view in degrees.
    position: Meters ahead of, to the right of, and above the vehicle.
    supersample: Samples per pixel and direction, 1 or 2.

  Attributes:
    channels: Number of channels of the images.
  """

  channels = 3

  def __init__(
    self,
    width: int,
    height: int,
    source: tuple[int, int] = (400, 175),
    fov: float = 120.0,
    position: tuple[float, float, float] = (2.0, 0.0, 1.4),
    supersample: int = 2,
  ):
    assert supersample in (1, 2), supersample
    self._supersample = supersample
    self._shape = height * supersample, width * supersample
    focal = source[0] / 2 / math.tan(math.radians(fov) / 2)
    self._focal = (
      focal * self._shape[1] / source[0],
      focal * self._shape[0] / source[1],
    )
    self._center = self._shape[1] / 2, self._shape[0] / 2
    self._position = position
    # With odd heights, the middle row shows the horizon.
    self._horizon = (self._shape[0] + 1) // 2
    self._slopes = np.float32(
      (np.arange(self._shape[1]) + 0.5 - self._center[0]) / self._focal[0]
    )
    self._rows = np.arange(self._shape[0])[:, None]
    self._define_ground()
    self._canvas = np.empty(self._shape, np.uint32)

  def render(
    self,
    pose: tuple[float, float, float],
    ground: texture.Texture,
    look: weather_lib.Look,
    boxes: boxes_lib.Boxes,
    random: np.random.Generator,
  ) -> np.ndarray:
    """Render the world.

    Args:
      pose: x, y and heading of the vehicle, in meters and radians.
      ground: `Texture`.
      look: `Look` of the weather.
      boxes: `Boxes` to render.
      random: NumPy generator for the rain.

    Returns:
      uint8 [height, width, channels].
    """
    canvas = self._canvas
    canvas[: self._horizon] = self._sky(look)[:, None]
    canvas[self._horizon :] = self._ground(pose, ground, look)
    if len(boxes):
      self._paint(pose, look, boxes)
    if look.rain:
      self._rain(look, random)
    if self._supersample == 2:
      canvas = _halve(canvas)
    parts = canvas.view(np.uint8).reshape(canvas.shape + (4,))
    return parts[..., : self.channels].copy()

  def _define_ground(self):
    """Define positions and fog levels of pixels below the horizon."""
    rows = np.arange(self._horizon, self._shape[0]) + 0.5 - self._center[1]
    # Distance to the ground along the optical axis in meters, by row.
    self._depths = depth = self._focal[1] * self._position[2] / rows
    side = depth[:, None] * self._slopes
    ahead = np.broadcast_to(depth[:, None], side.shape)
    places = np.stack([ahead + self._position[0], side + self._position[1]])
    self._places = places.reshape(2, -1).astype(np.float32)
    level = np.searchsorted(weather_lib.DISTANCES, depth)
    level = np.minimum(level, weather_lib.LEVELS - 1) * 256
    self._levels = np.ascontiguousarray(
      np.broadcast_to(level[:, None], side.shape).ravel().astype(np.intp)
    )

  def _sky(self, look):
    share = np.linspace(0, 1, self._horizon)[:, None] ** 1.5
    return weather_lib.pack((1 - share) * look.zenith + share * look.horizon)

  def _ground(self, pose, ground, look):
    x, y, yaw = pose
    cos, sin = math.cos(yaw) * ground.scale, math.sin(yaw) * ground.scale
    places = np.array([[cos, -sin], [sin, cos]], np.float32) @ self._places
    height, width = ground.pixels.shape
    columns, rows = places
    columns += np.float32((x - ground.origin[0]) * ground.scale)
    rows += np.float32((y - ground.origin[1]) * ground.scale)
    np.clip(columns, 0, width - 1, out=columns)
    np.clip(rows, 0, height - 1, out=rows)
    index = rows.astype(np.intp)
    index *= width
    index += columns.astype(np.intp)
    index = self._levels + ground.pixels.ravel().take(index)
    return look.palette.ravel().take(index).reshape(-1, self._shape[1])

  def _paint(self, pose, look, boxes):
    """Paint boxes from far to near."""
    x, y, yaw = pose
    cos, sin = math.cos(yaw), math.sin(yaw)
    x, y = (
      x + cos * self._position[0] - sin * self._position[1],
      y + sin * self._position[0] + cos * self._position[1],
    )
    gaps = boxes.pose[:, :2] - (x, y)
    ahead = gaps @ (cos, sin)
    side = np.abs(gaps @ (-sin, cos))
    reach = boxes.size[:, 0] + boxes.size[:, 1]
    seen = (ahead + reach > _NEAR) & (ahead < _FAR)
    seen &= side < (ahead + reach) * -self._slopes[0] + reach
    seen = np.flatnonzero(seen)
    if len(seen) > _MOST_BOXES:
      seen = seen[np.argsort(ahead[seen], kind='stable')[:_MOST_BOXES]]
    if len(seen):
      enter, hit, face = self._intersect(
        gaps[seen], boxes.pose[seen, 2] - yaw, boxes.size[seen], (cos, sin)
      )
      met = hit.any(1)
      self._fill(look, boxes, seen[met], enter[met], hit[met], face[met])

  def _intersect(self, gaps, yaw, size, heading):
    """Intersect columns with boxes.

    Returns:
      Tuple of depths, whether boxes are hit, and whether they are hit at the
      front or back instead of a side, each [boxes, columns].
    """
    cos, sin = heading
    ahead = (gaps @ (cos, sin))[:, None]
    side = (gaps @ (-sin, cos))[:, None]
    turn_cos, turn_sin = np.cos(yaw)[:, None], np.sin(yaw)[:, None]
    along = np.float32(turn_cos * ahead + turn_sin * side)
    across = np.float32(turn_cos * side - turn_sin * ahead)
    turn_cos, turn_sin = np.float32(turn_cos), np.float32(turn_sin)
    ray_along = turn_cos + turn_sin * self._slopes
    ray_across = turn_cos * self._slopes - turn_sin
    inverse_along = 1 / np.where(np.abs(ray_along) < 1e-6, 1e-6, ray_along)
    inverse_across = 1 / np.where(np.abs(ray_across) < 1e-6, 1e-6, ray_across)
    half = np.float32(size)
    middle, width = along * inverse_along, np.abs(half[:, :1] * inverse_along)
    enter_along, leave = middle - width, middle + width
    middle = across * inverse_across
    width = np.abs(half[:, 1:2] * inverse_across)
    enter_across = middle - width
    leave = np.minimum(leave, middle + width)
    enter = np.maximum(enter_along, enter_across)
    hit = leave > np.maximum(enter, np.float32(_NEAR))
    enter = np.maximum(enter, np.float32(_NEAR))
    return enter, hit, enter_along > enter_across

  def _fill(self, look, boxes, seen, enter, hit, face):
    columns = self._shape[1]
    first = hit.argmax(1)
    last = columns - hit[:, ::-1].argmax(1)
    nearest = np.where(hit, enter, np.float32(np.inf)).min(1)
    order = np.argsort(-nearest, kind='stable')
    inverse = self._focal[1] / enter
    height = boxes.size[seen, 2:]
    eye = self._position[2]
    limit = self._shape[0]
    bounds = [
      np.clip(self._center[1] + (eye - z * height) * inverse, 0, limit)
      for z in (0.0, 1.0) + _GLASS
    ]
    bottom, top, low, high = (np.rint(x).astype(np.intp) for x in bounds)
    walls, windows = self._color(look, boxes, seen, nearest, enter, face)
    for k in order:
      span = slice(first[k], last[k])
      self._put(span, top[k, span], bottom[k, span], walls[k, span])
      if windows is not None and boxes.glass[seen[k]]:
        self._put(span, high[k, span], low[k, span], windows[k])

  def _color(self, look, boxes, seen, far, unused_enter, face):
    """Return packed colors of boxes [boxes, columns] and windows [boxes]."""
    colors = boxes.color[seen][:, None] * _SHADES[:, None]
    far = far[:, None]
    colors = look.shade(colors, far)
    dark = look.shade(np.broadcast_to(_DARK, (len(seen), 1, 3)), far)[:, 0]
    return np.where(face, colors[:, 1:], colors[:, :1]), dark

  def _put(self, span, top, bottom, color):
    """Paint columns from their top to their bottom row."""
    first, last = top.min(), bottom.max()
    rows = self._rows[first:last]
    np.copyto(
      self._canvas[first:last, span],
      color,
      where=(rows >= top) & (rows < bottom),
    )

  def _rain(self, look, random):
    height, width = self._shape
    count = int(look.rain * height * width / 1000)
    rows = random.integers(0, height - _DROP, count)[:, None]
    columns = random.integers(0, width, count)[:, None]
    drop = weather_lib.pack(np.array([190.0, 196.0, 206.0]))
    self._canvas[rows + np.arange(_DROP), columns] = drop


def _halve(pixels):
  """Average 2 x 2 packed pixels, rounding half up, two channels at a time."""
  even, odd = np.uint32(0x00FF00FF), np.uint32(0x00020002)
  low = pixels & even
  high = (pixels >> np.uint32(8)) & even
  means = []
  for part in (low, high):
    part = part[::2] + part[1::2]
    part = part[:, ::2] + part[:, 1::2]
    part += odd
    part >>= np.uint32(2)
    part &= even
    means.append(part)
  return means[0] | (means[1] << np.uint32(8))
