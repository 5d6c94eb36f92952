"""Record videos of a vector of environments."""

import os
from collections.abc import Callable
from typing import Any

from agents.envs import recorder
from agents.run import files
from baselines_her.vec_env import VecEnvWrapper


class VecVideoRecorder(VecEnvWrapper):
  """Writes an .mp4 file whenever a trigger asks for one.

  The environments must run in processes without TensorFlow, created with a
  `render` mode.

  Args:
    venv: Vector of environments.
    directory: Folder of the videos.
    record_video_trigger: Function from the number of steps so far to whether
      to start a video.
    video_length: Number of steps per video.
    filename: Name of the file; by default composed of process and step.
  """

  def __init__(
    self,
    venv: Any,
    directory: str,
    record_video_trigger: Callable[[int], bool],
    video_length: float = 200,
    filename: str | None = None,
  ):
    super().__init__(venv)
    self._directory = files.absolute(directory)
    self._trigger, self._length = record_video_trigger, video_length
    self._filename = filename
    self._step = 0
    self._recorder = recorder.Recorder(lambda: venv.render('rgb_array'), fps=25)

  def reset(self) -> dict:
    obs = self.venv.reset()
    # The original begins a video at every reset, whatever the trigger says.
    self._begin_if_due()
    return obs

  def step_wait(self) -> tuple:
    result = self.venv.step_wait()
    self._step += 1
    self._recorder.add()
    if len(self._recorder) > self._length:
      self.finish()
    self._begin_if_due()
    return result

  def finish(self) -> str | None:
    """Write the current video, if any, and return its path."""
    return self._recorder.finish()

  def close(self) -> None:
    self.finish()
    self.venv.close()

  def _begin_if_due(self):
    if not self._recorder.recording and self._trigger(self._step):
      name = self._filename or (
        f'vecenv.video.{os.getpid()}.video{self._step:06d}.mp4'
      )
      self._recorder.begin(os.path.join(self._directory, name))
