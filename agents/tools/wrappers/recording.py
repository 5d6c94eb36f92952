"""Wrapper that turns episodes into videos."""

import json
import os

from agents.envs import video
from agents.tools.wrappers.base import Wrapper

_DEFAULT_FPS = 30


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
  """

  def __init__(self, env, outdir, name='episode', episodes=1):
    super().__init__(env)
    os.makedirs(outdir, exist_ok=True)
    self._outdir = outdir
    self._name = name
    self._episodes = episodes
    self._episode = 0
    self._frames = []
    self._return = 0.0

  def reset(self):
    observ = self._env.reset()
    self._episode += 1
    self._frames, self._return = [], 0.0
    self._record()
    return observ

  def step(self, action):
    observ, reward, done, info = self._env.step(action)
    self._return += float(reward)
    self._record()
    if done and self._recording:
      self._write()
    return observ, reward, done, info

  @property
  def _recording(self):
    return self._episode <= self._episodes

  def _record(self):
    if self._recording:
      self._frames.append(self._env.render('rgb_array'))

  def _write(self):
    filename = f'{self._name}-{self._episode}.mp4'
    video.write_video(
      os.path.join(self._outdir, filename), self._frames, self._fps()
    )
    line = {
      'video': filename,
      'return': self._return,
      'length': len(self._frames) - 1,
    }
    with open(os.path.join(self._outdir, 'episodes.jsonl'), 'a') as file_:
      file_.write(json.dumps(line) + '\n')
    self._frames = []

  def _fps(self):
    metadata = getattr(self._env, 'metadata', None) or {}
    fps = metadata.get('render_fps') or metadata.get('video.frames_per_second')
    return float(fps or _DEFAULT_FPS)
