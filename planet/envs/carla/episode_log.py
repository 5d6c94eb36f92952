"""Log images, videos and measurements of episodes to files."""

import json
import os
import tempfile
import time
from typing import Any, TextIO

import numpy as np

from agents.envs import video
from agents.run import files

FOLDER_VARIABLE = 'CARLA_OUT'
_FOLDER = '~/carla_out'
# Seconds to encode the video of an episode when the environment is closed.
_SECONDS_FOR_VIDEO = 10.0


class EpisodeLog:
  """Write images and measurements of all episodes.

  Creates a subfolder named after the time of the first file. File names contain
  the episode, and the step of images. With videos, writes one at the end of
  each episode instead of images: .mp4, or .gif without the package
  imageio-ffmpeg. Measurements are a .jsonl file with one line for the reset and
  each step, written immediately.

  Args:
    config: Complete settings, see `env_config.complete`.

  Attributes:
    seconds_to_close: Time that the last `finish` may take.

  Raises:
    UsageError: If the folder is not writable.
  """

  def __init__(self, config: dict[str, Any]):
    folder = config['log_folder'] or os.environ.get(FOLDER_VARIABLE, _FOLDER)
    self._parent = files.expand(folder)
    self._fps = 1 / config['dt']
    self._images = config['log_images']
    self._videos = config['convert_images_to_video']
    self._measurements = config['log_measurements']
    if self._images or self._videos or self._measurements:
      files.check_creatable(self._parent)
    self.seconds_to_close: float = _SECONDS_FOR_VIDEO if self._videos else 0.0
    self._folder: str | None = None
    self._lines: TextIO | None = None
    self._episode = 0
    self._step = 0
    self._frames: list[np.ndarray] = []

  def begin(self, episode: int) -> None:
    """Finish the previous episode and start the one with this number."""
    self.finish()
    self._episode, self._step = episode, 0

  def add_image(self, image: np.ndarray) -> None:
    """Write the next image, uint8 [height, width, channels], if enabled."""
    if self._videos:
      self._frames.append(video.to_rgb(image))
    elif self._images:
      path = self._locate(f'_step_{self._step:05}.png')
      video.write_png(path, video.to_rgb(image))
      self._step += 1

  def add_measurements(self, now: dict[str, Any]) -> None:
    """Write a line of plain values, if measurements are enabled."""
    if self._measurements:
      if self._lines is None:
        # Line buffering: write each line immediately.
        self._lines = open(self._locate('.jsonl'), 'w', buffering=1)
      self._lines.write(json.dumps(now) + '\n')

  def finish(self) -> None:
    """Complete the episode; safe to call twice."""
    if self._lines:
      self._lines.close()
      self._lines = None
    if self._frames:
      path = self._locate(video.preferred_ending())
      video.write_video(path, self._frames, self._fps)
    self._frames = []

  def _locate(self, ending):
    """Return the path of a file of this episode; create its folder."""
    if self._folder is None:
      os.makedirs(self._parent, exist_ok=True)
      prefix = time.strftime('%Y%m%d_%H%M%S_')
      self._folder = tempfile.mkdtemp(prefix=prefix, dir=self._parent)
    return os.path.join(self._folder, f'episode_{self._episode:05}{ending}')
