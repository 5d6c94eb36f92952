"""Convert an image strip from TensorBoard to a video.

In a strip, time runs from left to right and the sequences of a batch from top
to bottom, with white gaps between them or, in earlier versions, without. The
video shows the sequences side by side. Skips existing videos unless --force is
given.

Example:

  planet-create-video -i strip.png -o video.mp4
"""

import os
import sys
from typing import Any

import numpy as np
from PIL import Image

from agents.envs import video
from agents.run import entry, errors, files


def main(args: Any) -> None:
  """Convert one file.

  Args:
    args: Flags, see `run`.

  Raises:
    UsageError: If the input is not an image or not a strip of such tiles.
  """
  outfile = files.expand(args.output)
  if os.path.exists(outfile) and not args.force:
    print(f'Skipping {outfile}, which exists; use -f to overwrite it.')
    return
  try:
    with Image.open(files.expand(args.input)) as image:
      strip = np.asarray(image.convert('RGB'))
  except (OSError, SyntaxError, Image.DecompressionBombError) as error:
    # Pillow's words for damaged PNG files, and for sizes that are none.
    raise errors.UsageError(
      f'Cannot read the image {args.input}: {errors.reason_of(error)}. Give '
      'a strip, such as a .png file from TensorBoard.'
    ) from None
  frames = split_strip(strip, args.tile_x, args.tile_y)
  video.write_video(outfile, frames, args.fps, max(1, round(args.dpi / 50)))
  print(f'Wrote {len(frames)} frames to {outfile}.')


def split_strip(image: np.ndarray, tile_x: int, tile_y: int) -> np.ndarray:
  """Split a strip into frames.

  Args:
    image: uint8 array [batch * tile_y, time * tile_x, 3], or larger by white
      gaps between the tiles.
    tile_x: Width of one tile.
    tile_y: Height of one tile.

  Returns:
    uint8 array [time, tile_y, batch * tile_x, 3].

  Raises:
    UsageError: If the image size is not a multiple of the tile size.
  """
  image = _remove_gaps(image, tile_x, tile_y)
  height, width, channels = image.shape
  if height % tile_y or width % tile_x:
    raise errors.UsageError(
      f'The image size {width} x {height} is not a multiple of the tile size '
      f'{tile_x} x {tile_y}; set the tile size with -x and -y.'
    )
  batch, time = height // tile_y, width // tile_x
  tiles = image.reshape(batch, tile_y, time, tile_x, channels)
  tiles = tiles.transpose(2, 1, 0, 3, 4)
  return tiles.reshape(time, tile_y, batch * tile_x, channels)


def _remove_gaps(image, tile_x, tile_y):
  """Return the image without white gaps between tiles, if it has any."""
  for axis, tile in ((0, tile_y), (1, tile_x)):
    places = np.arange(image.shape[axis]) % (tile + video.GAP)
    gaps = np.take(image, np.flatnonzero(places >= tile), axis)
    if places[-1] != tile - 1 or not (gaps == 255).all():
      return image
  rows, columns = (
    np.arange(size) % (tile + video.GAP) < tile
    for size, tile in zip(image.shape, (tile_y, tile_x))
  )
  return image[rows][:, columns]


def run(argv: list[str] | None = None) -> int:
  """Run the program; return the exit code."""
  parser = entry.Parser(prog='planet-create-video', description=__doc__)
  add = parser.add_argument
  # Where a flag has several long names, the last one is the original's.
  text = 'image file of the strip'
  add('-i', '--input', '--image-path', required=True, help=text)
  text = 'video file, .mp4 or .gif'
  add('-o', '--output', '--animation-path', required=True, help=text)
  text = 'overwrite an existing video'
  add('-f', '--force', '--overwrite', action='store_true', help=text)
  kind: dict[str, Any] = {'type': 'positive', 'default': 64}
  add('-x', '--tile_x', '--tile-width', help='width of a tile', **kind)
  add('-y', '--tile_y', '--tile-height', help='height of a tile', **kind)
  add('-r', '--fps', type='rate', default=10, help='frames per second')
  add('-d', '--dpi', type='positive', default=50, help='scale; 50 is 1:1')
  return entry.run(lambda: main(parser.parse_args(argv)))


if __name__ == '__main__':
  sys.exit(run())
