"""Images made smaller."""

import numpy as np


def resize_area(image: np.ndarray, width: int, height: int) -> np.ndarray:
  """Shrink an image so that every source pixel counts by its area.

  Args:
    image: uint8 [source height, source width, channels].
    width: New width, not larger than the old one.
    height: New height, not larger than the old one.

  Returns:
    uint8 [height, width, channels].
  """
  rows = _weights(image.shape[0], height)
  columns = _weights(image.shape[1], width)
  channels = image.shape[2]
  result = rows @ image.reshape(image.shape[0], -1).astype(np.float32)
  result = result.reshape(height, -1, channels).transpose(0, 2, 1) @ columns.T
  return (result.transpose(0, 2, 1) + 0.5).astype(np.uint8)


def pick(image: np.ndarray, width: int, height: int) -> np.ndarray:
  """Shrink an image to the pixels in the middle of each new one.

  Args:
    image: [source height, source width, channels].
    width: New width, not larger than the old one.
    height: New height, not larger than the old one.

  Returns:
    [height, width, channels].
  """
  rows, columns = (
    ((np.arange(new) + 0.5) * (old / new)).astype(int)
    for old, new in zip(image.shape, (height, width))
  )
  return image[rows[:, None], columns]


def _weights(source, target):
  """Share of each source pixel in each target pixel, [target, source]."""
  assert target <= source, (target, source)
  edges = np.arange(target + 1) * (source / target)
  low = np.maximum(edges[:-1, None], np.arange(source))
  high = np.minimum(edges[1:, None], np.arange(source) + 1)
  return np.float32(np.maximum(0, high - low) * (target / source))
