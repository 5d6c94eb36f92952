"""Videos of what happens in a vector of environments."""

import os

import numpy as np

from agents.envs import video


class VecVideoRecorder:
  """Writes an .mp4 file each time that a trigger asks for one.

  The environments have to live in processes without TensorFlow, made with
  `render=True`.

  Args:
    venv: Vector of environments.
    directory: Folder of the videos.
    record_video_trigger: Function from the number of steps so far to whether
      a video begins.
    video_length: Number of steps per video.
    filename: Name of the file instead of one with process and step.
    fps: Frames per second.
  """

  def __init__(
    self,
    venv,
    directory,
    record_video_trigger,
    video_length=200,
    filename=None,
    fps=25,
  ):
    self.venv = venv
    self._directory = os.path.abspath(os.path.expanduser(directory))
    self._trigger = record_video_trigger
    self._length = video_length
    self._filename = filename
    self._fps = fps
    self._step = 0
    self._frames = None
    self._path = None

  def __getattr__(self, name):
    if name == 'venv' or name.startswith('__'):
      raise AttributeError(name)
    return getattr(self.venv, name)

  def reset(self):
    obs = self.venv.reset()
    # The original begins a video at every reset, whatever the trigger says.
    self._begin_if_due()
    return obs

  def step(self, actions):
    self.venv.step_async(actions)
    return self.step_wait()

  def step_wait(self):
    result = self.venv.step_wait()
    self._step += 1
    if self._frames is not None:
      self._frames.append(self._image())
      if len(self._frames) > self._length:
        self.finish()
    self._begin_if_due()
    return result

  def finish(self):
    """Write the current video, if there is one; returns its path."""
    if self._frames is None:
      return None
    frames, self._frames = self._frames, None
    video.write_video(self._path, np.stack(frames), self._fps)
    return self._path

  def close(self):
    self.finish()
    self.venv.close()

  def _begin_if_due(self):
    if self._frames is None and self._trigger(self._step):
      name = self._filename or (
        f'vecenv.video.{os.getpid()}.video{self._step:06d}.mp4'
      )
      self._path = os.path.join(self._directory, name)
      self._frames = [self._image()]

  def _image(self):
    return self.venv.render(mode='rgb_array')
