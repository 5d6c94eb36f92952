"""Camera types and the encoding of their images."""

import dataclasses
import functools
import math
from typing import Any

import numpy as np

from planet.envs.carla import places

# Depth in meters that is white: the limit of CARLA's depth cameras.
FAR = 1000.0
# Fraction of it that is black on the logarithmic scale, as in CARLA.
_BLACK = 1 / 300
# Values of `carla.CityObjectLabel` in 0.9.16 and colors from its documentation
# (the palette of Cityscapes). All other classes are black.
_COLORS = {
  'Roads': (1, (128, 64, 128)),
  'Sidewalks': (2, (244, 35, 232)),
  'Buildings': (3, (70, 70, 70)),
  'Walls': (4, (102, 102, 156)),
  'Fences': (5, (190, 153, 153)),
  'Poles': (6, (153, 153, 153)),
  'TrafficLight': (7, (250, 170, 30)),
  'TrafficSigns': (8, (220, 220, 0)),
  'Vegetation': (9, (107, 142, 35)),
  'Terrain': (10, (152, 251, 152)),
  'Sky': (11, (70, 130, 180)),
  'Pedestrians': (12, (220, 20, 60)),
  'Rider': (13, (255, 0, 0)),
  'Car': (14, (0, 0, 142)),
  'Truck': (15, (0, 0, 70)),
  'Bus': (16, (0, 60, 100)),
  'Train': (17, (0, 80, 100)),
  'Motorcycle': (18, (0, 0, 230)),
  'Bicycle': (19, (119, 11, 32)),
  'Static': (20, (110, 190, 160)),
  'Dynamic': (21, (170, 120, 50)),
  'Other': (22, (55, 90, 80)),
  'Water': (23, (45, 60, 150)),
  'RoadLines': (24, (157, 234, 50)),
  'Ground': (25, (81, 0, 81)),
  'Bridge': (26, (150, 100, 100)),
  'RailTrack': (27, (230, 150, 140)),
  'GuardRail': (28, (180, 165, 180)),
}
LABELS = {name: number for name, (number, _) in _COLORS.items()}
# Colors by class, uint8 [256, 3].
PALETTE = np.zeros((256, 3), np.uint8)
for _number, _color in _COLORS.values():
  PALETTE[_number] = _color


@dataclasses.dataclass(frozen=True)
class Sensor:
  """Declaration of a sensor.

  Attributes:
    camera: `rgb`, `depth` or `semantic_segmentation`.
    channels: Number of channels of the images.
    cameras: Number of cameras side by side; their channels are concatenated.
    above: Whether three more channels show the roads from above.
    logarithmic: Whether depth is on a logarithmic scale.
  """

  camera: str
  channels: int
  cameras: int = 1
  above: bool = False
  logarithmic: bool = False

  def positions(self, config: dict[str, Any]) -> list[places.Location]:
    """Return the positions of the cameras from left to right.

    Args:
      config: Dict with `camera` and `stereo_baseline`.
    """
    x, y, z = config['camera']
    half = config['stereo_baseline'] / 2
    sides = ((), (0.0,), (-half, half))[self.cameras]
    return [(x, y + side, z) for side in sides]

  def shrink(self, image: np.ndarray, width: int, height: int) -> np.ndarray:
    """Shrink an image by area averaging; pick the central pixel for classes.

    Args:
      image: uint8 [source height, source width, channels].
      width: New width, at most the old one.
      height: New height, at most the old one.

    Returns:
      uint8 [height, width, channels].
    """
    edges = image.shape[:2], (height, width)
    if self.camera == 'semantic_segmentation':
      rows, columns = (
        ((np.arange(new) + 0.5) * (old / new)).astype(int)
        for old, new in zip(*edges)
      )
      return image[rows[:, None], columns]
    rows, columns = (_weights(old, new) for old, new in zip(*edges))
    channels = image.shape[2]
    result = rows @ image.reshape(image.shape[0], -1).astype(np.float32)
    result = result.reshape(height, -1, channels).transpose(0, 2, 1) @ columns.T
    return (result.transpose(0, 2, 1) + 0.5).astype(np.uint8)


SENSORS = {
  'use_rgb': Sensor('rgb', 3),
  'use_depth': Sensor('depth', 1),
  'use_logdepth': Sensor('depth', 1, logarithmic=True),
  'use_semantic': Sensor('semantic_segmentation', 3),
  'use_2rgb': Sensor('rgb', 6, cameras=2),
  'use_birdseye': Sensor('rgb', 3, cameras=0, above=True),
  'use_rgb_birdseye': Sensor('rgb', 6, above=True),
}


def encode_depth(meters: np.ndarray, logarithmic: bool) -> np.ndarray:
  """Encode depths as bytes from black, near, to white, at least 1000 m.

  Args:
    meters: Distances along the optical axis.
    logarithmic: Whether to use a logarithmic scale that starts at 3.3 m.

  Returns:
    uint8 of the same shape.
  """
  share = np.clip(np.asarray(meters) / FAR, _BLACK if logarithmic else 0, 1)
  if logarithmic:
    share = 1 - np.log(share) / math.log(_BLACK)
  return (255 * share + 0.5).astype(np.uint8)


@functools.cache
def _weights(source, target):
  """Return the weight of source pixels in target pixels, [target, source]."""
  assert target <= source, (target, source)
  edges = np.arange(target + 1) * (source / target)
  low = np.maximum(edges[:-1, None], np.arange(source))
  high = np.minimum(edges[1:, None], np.arange(source) + 1)
  return np.float32(np.maximum(0, high - low) * (target / source))
