"""Videos of environments while these are played."""

from collections.abc import Callable
from typing import Any

import numpy as np

from agents.envs import video

_DEFAULT_FPS = 30


class Recorder:
  """Collect the frames of one video at a time, and write them.

  Args:
    render: Function that returns an image uint8 [height, width, 3].
    fps: Frames per second.
    largest: Greatest height or width, whichever is smaller, of the frames;
      larger images are reduced. None for no limit. Small images are enlarged.
  """

  def __init__(
    self,
    render: Callable[[], np.ndarray],
    fps: float,
    largest: int | None = None,
  ):
    self._render = render
    self._fps = fps
    self._largest = largest
    self._path: str | None = None
    self._frames: list[np.ndarray] = []

  def __len__(self) -> int:
    """Return the number of frames of the current video."""
    return len(self._frames)

  @property
  def recording(self) -> bool:
    """Whether a video has begun."""
    return self._path is not None

  def begin(self, path: str) -> None:
    """Begin a video with a first frame; a current one is forgotten.

    Args:
      path: Name of the file; its ending decides the format.
    """
    self._path, self._frames = path, []
    self.add()

  def add(self) -> None:
    """Add a frame, if there is a current video."""
    if not self.recording:
      return
    frame = np.asarray(self._render())
    frame = video.resize(frame, largest=self._largest)
    # Environments may draw to the same memory again.
    self._frames.append(frame.copy())

  def finish(self) -> str | None:
    """Write the current video, if there is one; return its path."""
    path, frames = self._path, self._frames
    self.cancel()
    if path:
      video.write_video(path, np.stack(frames), self._fps)
    return path

  def cancel(self) -> None:
    """Forget the current video."""
    self._path, self._frames = None, []


def find_fps(env: Any) -> float:
  """Return the frames per second that an environment asks for."""
  metadata = getattr(env, 'metadata', None) or {}
  fps = metadata.get('render_fps') or metadata.get('video.frames_per_second')
  return float(fps or _DEFAULT_FPS)
