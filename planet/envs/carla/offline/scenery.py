"""Poles and houses along the roads that make motion visible."""

import numpy as np

from planet.envs.carla import lanes as lanes_lib
from planet.envs.carla import sensors
from planet.envs.carla.offline import boxes as boxes_lib

_EVERY = 25.0
_WALLS = np.array([(196, 178, 150), (172, 112, 92), (150, 158, 170)], float)
_POLE = (112, 104, 96)


def place(lanes: lanes_lib.Lanes) -> boxes_lib.Boxes:
  """Return poles and houses beside the lanes of a map, the same each time."""
  random = np.random.default_rng(0)
  points = np.concatenate([x.points[:, :2] for x in lanes.all])
  poses, sizes, colors, labels = [], [], [], []
  for lane in lanes.all:
    if lane.junction is not None or not lane.curb:
      continue
    for arc in np.arange(_EVERY / 2, lane.length, _EVERY):
      side = lane.width / 2
      house = np.append(random.uniform(2.5, 5, 2), random.uniform(3.5, 8))
      away = side + 4 + house[:2].max() + random.uniform(0, 6)
      wall = _WALLS[random.integers(len(_WALLS))]
      for right, size, color, label in (
        (side + 2.5, np.array([0.15, 0.15, 5.0]), _POLE, 'Poles'),
        (away, house, wall, 'Buildings'),
      ):
        shift = arc + random.uniform(-6, 6)
        pose = lane.at(min(max(shift, 0), lane.length), right)
        gap = np.hypot(*(points - pose[:2]).T).min()
        if gap > np.hypot(*size[:2]) + side + 1.5:
          poses.append(pose)
          sizes.append(size)
          colors.append(color)
          labels.append(sensors.LABELS[label])
  return boxes_lib.Boxes(
    np.reshape(poses, (-1, 3)),
    np.reshape(sizes, (-1, 3)),
    np.reshape(colors, (-1, 3)).astype(float),
    np.zeros(len(poses), bool),
    np.array(labels, np.uint8),
  )
