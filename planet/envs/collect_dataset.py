"""Record episodes to disk."""

import datetime
import os
import uuid
from typing import Any

import numpy as np

from agents.envs.wrappers import Wrapper
from agents.run import files

# Scalar entry of episode files: simulator steps per action.
ACTION_REPEAT = 'action_repeat'


class CollectGymDataset(Wrapper):
  """Collect transitions and write each finished episode to an .npz file.

  An episode of N steps has arrays of length N + 1. Index t holds observation t
  with the action and the reward that led to it; the first action and reward are
  zero. Without a folder, the info of the last step contains the `episode`.

  Records `applied_action` from the info, if present, instead of the given
  action.

  Writes files atomically. Skips episodes whose last step has `step_error` in
  its info.

  Args:
    env: Environment. Observations that are not dicts are recorded as `observ`.
      `step` and `reset` may support `blocking=False`.
    outdir: Folder to write to, created if needed, or None.
    action_repeat: Simulator steps per action, stored with the episode.

  Raises:
    RuntimeError: At the end of an episode with values that are not numbers.
  """

  def __init__(
    self, env: Any, outdir: str | None, action_repeat: int | None = None
  ) -> None:
    super().__init__(env)
    self._action_repeat = action_repeat
    self._outdir = outdir and os.path.expanduser(outdir)
    self._episode: list[dict[str, Any]] = []

  def step(self, action: np.ndarray, blocking: bool = True) -> Any:
    if blocking:
      return self._process_step(action, *self._env.step(action))
    promise = self._env.step(action, blocking=False)
    return lambda: self._process_step(action, *promise())

  def reset(self, blocking: bool = True) -> Any:
    if blocking:
      return self._process_reset(self._env.reset())
    promise = self._env.reset(blocking=False)
    return lambda: self._process_reset(promise())

  def _process_step(self, action, observ, reward, done, info):
    self._record(observ, np.array(info.get('applied_action', action)), reward)
    if done:
      episode = _stack(self._episode)
      if not self._outdir:
        info = dict(info, episode=episode)
      elif info.get('step_error'):
        print('Discarded an episode because one of its steps failed.')
      else:
        write_episode(episode, self._outdir, self._action_repeat)
    return observ, reward, done, info

  def _process_reset(self, observ):
    space = self._env.action_space
    self._episode = []
    # A float makes all rewards of the episode float64, as in the original.
    self._record(observ, np.zeros(space.shape, space.dtype), 0.0)
    return observ

  def _record(self, observ, action, reward):
    observ = observ if isinstance(observ, dict) else {'observ': observ}
    self._episode.append({**observ, 'action': action, 'reward': reward})


def write_episode(
  episode: dict[str, Any], outdir: str, action_repeat: int | None = None
) -> str:
  """Write an episode to a new file in a folder.

  Args:
    episode: Dict of arrays [time, ...].
    outdir: Folder, created if needed.
    action_repeat: See `CollectGymDataset`.

  Returns:
    Path of the file.
  """
  timestamp = datetime.datetime.now().strftime('%Y%m%dT%H%M%S')
  filename = os.path.join(outdir, f'{timestamp}-{uuid.uuid4().hex}.npz')
  if action_repeat:
    episode = {**episode, ACTION_REPEAT: np.int64(action_repeat)}
  with files.atomic_write(filename, 'wb') as file_:
    np.savez_compressed(file_, **episode)
  return filename


def _stack(transitions):
  episode = {
    key: np.array([x[key] for x in transitions]) for key in transitions[0]
  }
  for key, sequence in episode.items():
    if sequence.dtype == object:
      raise RuntimeError(
        f'Entry {key!r} of the episode has values that are not numbers, such '
        f'as {sequence.flat[0]!r}.'
      )
  return episode
