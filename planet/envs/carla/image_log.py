"""Files of what the camera sees, as images or videos."""

import importlib.util
import logging
import os
import tempfile
import time
from typing import Any

import numpy as np

from agents.envs import video

FOLDER_VARIABLE = 'CARLA_OUT'
_FOLDER = '~/carla_out'


class ImageLog:
  """Write the images of all episodes.

  Each log has a folder of its own within the given one, named by the time of
  its first image. An image file is named by its episode and step. A video
  replaces the images of its episode when this is over; it is an .mp4 file, or
  a .gif file where the package imageio-ffmpeg is missing.

  Args:
    folder: Folder for the logs of all environments.
    as_video: Whether images become videos.
    fps: Images per second of the videos.
  """

  def __init__(self, folder: str, as_video: bool, fps: float):
    self._parent = os.path.expanduser(folder)
    self._as_video, self._fps = as_video, fps
    self._folder: str | None = None
    self._episode = 0
    self._written: list[str] = []

  def begin(self, episode: int) -> None:
    """Begin an episode by its number, after finishing the one before."""
    self.finish()
    self._episode = episode

  def add(self, image: np.ndarray) -> None:
    """Write the next image, uint8 [height, width, 3]."""
    if self._folder is None:
      os.makedirs(self._parent, exist_ok=True)
      prefix = time.strftime('%Y%m%d_%H%M%S_')
      self._folder = tempfile.mkdtemp(prefix=prefix, dir=self._parent)
    name = f'{self._stem}_step_{len(self._written):05}.png'
    path = os.path.join(self._folder, name)
    video.write_png(path, image)
    self._written.append(path)

  def finish(self) -> None:
    """Complete the episode; safe to call twice."""
    if self._as_video and self._folder and self._written:
      has_ffmpeg = importlib.util.find_spec('imageio_ffmpeg')
      ending = '.mp4' if has_ffmpeg else '.gif'
      images = [_read(x) for x in self._written]
      path = os.path.join(self._folder, self._stem + ending)
      video.write_video(path, images, self._fps)
      for path in self._written:
        os.remove(path)
    self._written = []

  @property
  def _stem(self):
    return f'episode_{self._episode:05}'


def make(config: dict[str, Any]) -> ImageLog | None:
  """Create the log that a configuration asks for, or None.

  Args:
    config: Dict as of `env_config.complete`.
  """
  if not config['log_images']:
    if config['convert_images_to_video']:
      logging.getLogger(__name__).warning(
        'Setting convert_images_to_video has no effect without log_images.'
      )
    return None
  folder = config['image_folder'] or os.environ.get(FOLDER_VARIABLE, _FOLDER)
  return ImageLog(folder, config['convert_images_to_video'], 1 / config['dt'])


def _read(path):
  from PIL import Image

  with Image.open(path) as image:
    return np.asarray(image)
