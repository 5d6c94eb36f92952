"""Videos, animations and contact sheets, without an installed ffmpeg."""

import contextlib
import importlib.util
import io
import os
from collections.abc import Iterable, Sequence

import numpy as np

from agents.run import errors, files

SIZE = 256  # Height or width of frames, whichever is smaller.
GAP = 2  # Pixels between frames that are shown side by side.
_SHEET_WIDTH = 1600
_FONT_SIZES = (16, 14, 12, 10)
_STRIP_HEIGHT = 24


def encode_gif(images: Iterable[np.ndarray], fps: float) -> bytes:
  """Encode frames as a GIF animation that loops forever.

  Args:
    images: uint8 arrays [height, width, 1 or 3].
    fps: Frames per second.
  """
  from PIL import Image

  frames = [_to_image(x) for x in images]
  if frames[0].mode == 'RGB':
    # The default, median cut, takes 20 times as long.
    octree = Image.Quantize.FASTOCTREE
    frames = [x.quantize(method=octree) for x in frames]
  file_ = io.BytesIO()
  frames[0].save(
    file_,
    'GIF',
    save_all=True,
    append_images=frames[1:],
    duration=max(20, round(1000 / fps)),
    loop=0,
  )
  return file_.getvalue()


def _to_image(pixels):
  from PIL import Image

  return Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels)


def write_video(
  filename: str, images: Iterable[np.ndarray], fps: float, scale: int = 1
) -> None:
  """Write frames to an .mp4 or .gif file, completely or not at all.

  Args:
    filename: Path; its extension selects the format.
    images: uint8 arrays [height, width, 3] of one size.
    fps: Frames per second.
    scale: Integer factor by which to enlarge the frames.

  Raises:
    UsageError: If the extension is not supported, the folder is not writable,
      or .mp4 needs the package imageio-ffmpeg, which is missing.
    Failure: If the encoder cannot write all of it.
  """
  ending = check_ending(filename)
  files.check_creatable_file(filename)
  images = (x.repeat(scale, 0).repeat(scale, 1) for x in images)
  with files.atomic_path(filename) as temporary:
    if ending == '.mp4':
      # The encoder fails silently or with many lines of its own.
      with contextlib.suppress(OSError):
        _write_mp4(temporary, images, fps)
      if not _is_whole_mp4(temporary):
        raise errors.Failure(
          f'Cannot write the video {filename}: the encoder failed. Free some '
          'space on the disk, or choose another folder.'
        )
    else:
      with open(temporary, 'wb') as file_:
        file_.write(encode_gif(images, fps))


def check_ending(filename: str) -> str:
  """Return the extension of a file name, `.mp4` or `.gif`.

  Raises:
    UsageError: If it is neither.
  """
  ending = os.path.splitext(filename)[1].lower()
  if ending not in ('.gif', '.mp4'):
    raise errors.UsageError(
      f'Cannot write a video to {filename!r}; use a name that ends in '
      '.mp4 or .gif.'
    )
  return ending


def preferred_ending() -> str:
  """Return `.mp4` if it is supported here, else `.gif`."""
  return '.mp4' if importlib.util.find_spec('imageio_ffmpeg') else '.gif'


def write_png(filename: str, image: np.ndarray) -> None:
  """Write a uint8 image [height, width, 1 or 3], completely or not at all."""
  with files.atomic_write(filename, 'wb') as file_:
    _to_image(np.asarray(image)).save(file_, 'PNG')


def channel_groups(count: int) -> list[slice]:
  """Return the channels of an image that form each picture.

  Args:
    count: Number of channels. A multiple of three is split into color
      pictures; otherwise each channel is a gray picture.
  """
  size = 3 if count % 3 == 0 else 1
  return [slice(first, first + size) for first in range(0, count, size)]


def to_rgb(images: np.ndarray) -> np.ndarray:
  """Convert images with any channels to RGB, with their pictures side by side.

  Args:
    images: uint8 [..., height, width, channels]; see `channel_groups`.

  Returns:
    uint8 [..., height, width of all pictures, 3].
  """
  if images.shape[-1] == 3:
    return images
  parts = [images[..., x] for x in channel_groups(images.shape[-1])]
  joined = np.concatenate(parts, -2)
  return joined if joined.shape[-1] == 3 else joined.repeat(3, -1)


def resize(
  image: np.ndarray, smallest: int = SIZE, largest: int | None = SIZE
) -> np.ndarray:
  """Scale an image so that its shorter side is within limits.

  Small images are enlarged without blur, so that their pixels stay visible.

  Args:
    image: uint8 array [height, width, 3].
    smallest: Minimum length of the shorter side.
    largest: Maximum length of the shorter side, None for no limit.

  Returns:
    uint8 array [height, width, 3].
  """
  side = min(image.shape[:2])
  wanted = max(side, smallest)
  wanted = min(wanted, largest or wanted)
  return scale(image, [round(x * wanted / side) for x in image.shape[:2]])


def scale(image: np.ndarray, size: Sequence[int]) -> np.ndarray:
  """Scale an image, without blur if it becomes much larger.

  Args:
    image: uint8 array [height, width, 3].
    size: Height and width of the result.
  """
  from PIL import Image

  height, width = size
  if image.shape[:2] == (height, width):
    return image
  sharp = min(height, width) >= 2 * min(image.shape[:2])
  kind = Image.Resampling.NEAREST if sharp else Image.Resampling.LANCZOS
  return np.asarray(Image.fromarray(image).resize((width, height), kind))


def caption(image: np.ndarray, text: str) -> np.ndarray:
  """Add a dark strip with a line of text below an image.

  Args:
    image: uint8 array [height, width, 3].
    text: Text; the font shrinks if it would be too wide.

  Returns:
    uint8 array [height + strip, width, 3].
  """
  from PIL import Image, ImageDraw, ImageFont

  width = image.shape[1]
  strip = Image.new('RGB', (width, _STRIP_HEIGHT), (24, 24, 24))
  draw = ImageDraw.Draw(strip)
  fonts = [ImageFont.load_default(x) for x in _FONT_SIZES]
  fitting = [x for x in fonts if x.getlength(text) <= width - 8]
  font = (fitting or fonts[-1:])[0]
  place = (4, _STRIP_HEIGHT // 2)
  draw.text(place, text, fill=(240, 240, 240), font=font, anchor='lm')
  return np.concatenate([image, np.asarray(strip)], 0)


def contact_sheet(videos: Sequence[np.ndarray]) -> np.ndarray:
  """Arrange evenly spaced frames of several videos, one video per row.

  Frames keep their size, so that text in them stays readable; a row has as many
  as fit on a screen.

  Args:
    videos: List of uint8 arrays [time, height, width, 3] of one frame size.

  Returns:
    uint8 array [height of the sheet, width of the sheet, 3].
  """
  columns = max(3, _SHEET_WIDTH // (videos[0].shape[2] + GAP))
  rows = []
  for video in videos:
    index = np.linspace(0, len(video) - 1, columns).round().astype(int)
    pad = ((0, 0), (0, GAP), (0, GAP), (0, 0))
    frames = np.pad(np.asarray(video)[index], pad, constant_values=255)
    rows.append(np.concatenate(list(frames), 1))
  return np.concatenate(rows, 0)


def _write_mp4(filename, images, fps):
  import imageio.v2 as imageio

  errors.check_installed(
    'imageio_ffmpeg',
    'Writing .mp4 files',
    errors.how_to_install('viz'),
    'choose a name that ends in .gif',
  )
  writer = imageio.get_writer(
    filename,
    format='FFMPEG',
    fps=fps,
    codec='libx264',
    quality=8,
    macro_block_size=1,
  )
  with contextlib.closing(writer):
    for image in images:
      # The encoder requires even sizes.
      pad = [(0, x % 2) for x in image.shape[:2]] + [(0, 0)]
      writer.append_data(np.pad(image, pad, mode='edge'))


def _is_whole_mp4(filename):
  """Return whether a file has the index, which is written last."""
  names, place = [], 0
  with contextlib.suppress(OSError), open(filename, 'rb') as file_:
    while head := file_.read(8):
      names.append(head[4:])
      size = int.from_bytes(head[:4], 'big')
      # A size above 4 GB follows in 64 bits.
      size = int.from_bytes(file_.read(8), 'big') if size == 1 else size
      place += max(8, size)
      file_.seek(place)
  return b'moov' in names
