"""Boxes on the ground, for collisions and rendering."""

import dataclasses

import numpy as np


@dataclasses.dataclass
class Boxes:
  """Upright boxes on flat ground.

  Attributes:
    pose: x, y and heading, float64 [boxes, 3] in meters and radians.
    size: Half length, half width and height, float64 [boxes, 3] in meters.
    color: RGB from 0 to 255, float64 [boxes, 3].
    glass: Whether boxes have windows, bool [boxes].
    label: Class, see `sensors.LABELS`, uint8 [boxes].
  """

  pose: np.ndarray
  size: np.ndarray
  color: np.ndarray
  glass: np.ndarray
  label: np.ndarray

  def __len__(self):
    return len(self.pose)


def join(parts: list[Boxes]) -> Boxes:
  """Concatenate collections of boxes."""
  fields = [x.name for x in dataclasses.fields(Boxes)]
  return Boxes(
    *[np.concatenate([getattr(x, name) for x in parts]) for name in fields]
  )


def overlap(
  pose: tuple[float, float, float],
  extent: tuple[float, ...],
  poses: np.ndarray,
  sizes: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
  """Find boxes that overlap a rectangle, by the separating axis theorem.

  Args:
    pose: x, y and heading of the rectangle.
    extent: Half length and half width of the rectangle.
    poses: Poses of the boxes [boxes, 3].
    sizes: Sizes of the boxes [boxes, 3 or 2].

  Returns:
    Tuple of indices of overlapping boxes, int [n], and the shortest moves of
    the rectangle out of each, float64 [n, 2].
  """
  gaps = poses[:, :2] - pose[:2]
  reach = np.hypot(extent[0], extent[1]) + np.hypot(sizes[:, 0], sizes[:, 1])
  near = np.flatnonzero((gaps**2).sum(1) < reach**2)
  if not len(near):
    return near, np.zeros((0, 2))
  gaps, half = gaps[near], sizes[near, :2]
  yaw = np.stack([np.full(len(near), pose[2]), poses[near, 2]], 1)
  forward = np.stack([np.cos(yaw), np.sin(yaw)], -1)
  side = np.stack([-forward[..., 1], forward[..., 0]], -1)
  axes = np.concatenate([forward, side], 1)
  # Half extents of both shapes along each of the four axes.
  own = sum(
    h * np.abs((axes * x).sum(-1))
    for h, x in zip(extent, (forward[:, :1], side[:, :1]))
  )
  other = sum(
    half[:, i, None] * np.abs((axes * x).sum(-1))
    for i, x in enumerate((forward[:, 1:], side[:, 1:]))
  )
  along = (axes * gaps[:, None]).sum(-1)
  depth = own + other - np.abs(along)
  hit = (depth > 0).all(1)
  axis = depth.argmin(1)
  rows = np.arange(len(near))
  ways = -np.sign(along[rows, axis])[:, None] * axes[rows, axis]
  ways *= depth[rows, axis][:, None]
  return near[hit], ways[hit]
