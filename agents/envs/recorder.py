"""Record videos of environments while they are played."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from agents.envs import guard, images, video, window
from agents.envs.wrappers import Wrapper

_DEFAULT_FPS = 30


class Recorder:
  """Collect the frames of one video at a time and write them.

  Args:
    render: Function that returns an image, uint8 [height, width, 3].
    fps: Frames per second.
    largest: Maximum length of the shorter side of frames in pixels; larger
      images are scaled down. None for no limit. Small images are scaled up.
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
    """Whether a video is being recorded."""
    return self._path is not None

  def begin(self, path: str) -> None:
    """Start a video with a first frame; discards an unfinished one.

    Args:
      path: File name; its extension selects the format.
    """
    self._path, self._frames = path, []
    self.add()

  def add(self) -> None:
    """Add a frame, if a video is being recorded."""
    if not self.recording:
      return
    frame = np.asarray(self._render())
    frame = video.resize(frame, largest=self._largest)
    if self._frames:
      # Some environments draw images of several sizes.
      frame = video.scale(frame, self._frames[0].shape[:2])
    # Environments may draw to the same memory again.
    self._frames.append(frame.copy())

  def finish(self) -> str | None:
    """Write the current video, if it has frames, and return its path."""
    path, frames = self._path, self._frames
    self.cancel()
    if not (path and frames):
      return None
    video.write_video(path, frames, self._fps)
    return path

  def cancel(self) -> None:
    """Discard the current video."""
    self._path, self._frames = None, []


class RecordEpisodes(Wrapper):
  """Write a video of each episode, show it in a window, or both.

  The last step of a recorded episode has `info['episode']`, a dict of `video`,
  the path, `return` and `length`. Discards episodes that are reset early.

  Args:
    env: Environment whose `render` returns images.
    paths: File names of the episodes, in folders that exist; later episodes are
      not recorded.
    title: Title of a window that shows all episodes, None for no window.
    largest: See `Recorder`.

  Raises:
    BadNumber: If a reward is infinite or NaN.
  """

  def __init__(
    self,
    env: Any,
    paths: Iterable[str],
    title: str | None = None,
    largest: int | None = None,
  ):
    super().__init__(env)
    self._paths = iter(paths)
    self._return = 0.0
    self._window: window.Window | None = None
    fps = find_fps(env)
    if title is not None:
      self._window = window.Window(title, fps)
    self._recorder = Recorder(self._render, fps, largest)

  def reset(self) -> Any:
    observ = self._env.reset()
    self._return = 0.0
    self._recorder.cancel()
    path = next(self._paths, None)
    if path:
      self._recorder.begin(path)
    elif self._window:
      self._render()
    return observ

  def step(self, action: Any) -> tuple:
    observ, reward, done, info = self._env.step(action)
    guard.check_finite(reward, 'reward', self._env)
    self._return += float(reward)
    if self._recorder.recording:
      self._recorder.add()
    elif self._window:
      self._render()
    if done and self._recorder.recording:
      length = len(self._recorder) - 1
      path = self._recorder.finish()
      episode = {'video': path, 'return': self._return, 'length': length}
      info = {**info, 'episode': episode}
    return observ, reward, done, info

  def close(self) -> None:
    """Close the window and the environment."""
    if self._window:
      self._window.close()
    super().close()

  def _render(self):
    name = guard.find_name(self._env)
    image = images.for_people(self._env.render('rgb_array'), name)
    if self._window:
      self._window.show(image)
    return image


def find_fps(env: Any) -> float:
  """Return the frame rate that an environment declares, in 1/s."""
  metadata = getattr(env, 'metadata', None) or {}
  fps = metadata.get('render_fps') or metadata.get('video.frames_per_second')
  return float(fps or _DEFAULT_FPS)
