"""Images made smaller, each pixel counted by its area."""

import numpy as np

from planet.envs.carla import resize


def test_area_resize():
  """Means of blocks, and weights at fractional edges."""
  image = np.arange(24, dtype=np.uint8).reshape(4, 6, 1) * 10
  blocks = image.reshape(2, 2, 3, 2).astype(int).sum((1, 3))
  np.testing.assert_array_equal(
    resize.resize_area(image, 3, 2)[..., 0], (blocks + 2) // 4
  )
  row = np.uint8([[[0], [90], [180]]])
  # Each target pixel is one and a half source pixels wide.
  assert resize.resize_area(row, 2, 1).ravel().tolist() == [30, 150]
