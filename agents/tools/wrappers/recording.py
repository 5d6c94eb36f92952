"""Wrapper that turns episodes into videos."""

import os
from typing import Any

import numpy as np

from agents.envs import recorder
from agents.envs import window as window_lib
from agents.run import log
from agents.tools.wrappers.base import Wrapper


class RecordEpisodes(Wrapper):
  """Write a video of each episode, and a line about it.

  The videos are called `<name>-<episode>.mp4`, counted from 1. A line of JSON
  with `video`, `return` and `length` is appended to `episodes.jsonl` when an
  episode is over.

  Args:
    env: Environment whose `render` gives images.
    outdir: Folder, created if needed.
    name: Beginning of the names of the videos.
    episodes: Number of episodes to record; later ones are only played.
    window: Whether to show what is recorded in a window, too, at the speed of
      the video.
  """

  def __init__(
    self,
    env: Any,
    outdir: str,
    name: str = 'episode',
    episodes: int = 1,
    window: bool = False,
  ):
    super().__init__(env)
    os.makedirs(outdir, exist_ok=True)
    self._outdir = outdir
    self._name = name
    self._episodes = episodes
    self._episode = 0
    self._return = 0.0
    fps = recorder.find_fps(env)
    self._window = window_lib.Window(name, fps) if window else None
    self._recorder = recorder.Recorder(self._render, fps)

  def reset(self) -> Any:
    observ = self._env.reset()
    self._episode += 1
    self._return = 0.0
    self._recorder.cancel()
    if self._episode <= self._episodes:
      filename = f'{self._name}-{self._episode}.mp4'
      self._recorder.begin(os.path.join(self._outdir, filename))
    return observ

  def step(self, action: Any) -> tuple:
    observ, reward, done, info = self._env.step(action)
    self._return += float(reward)
    self._recorder.add()
    if done and self._recorder.recording:
      self._write()
    return observ, reward, done, info

  def close(self) -> None:
    """Close the window and the environment."""
    if self._window:
      self._window.close()
    self._env.close()

  def _render(self):
    image = np.asarray(self._env.render('rgb_array'))
    if self._window:
      self._window.show(image)
    return image

  def _write(self):
    length = len(self._recorder) - 1
    path = self._recorder.finish()
    assert path, 'something was recorded'
    line = {
      'video': os.path.basename(path),
      'return': self._return,
      'length': length,
    }
    log.append_json(os.path.join(self._outdir, 'episodes.jsonl'), line)
