"""Returns and lengths of episodes in a file, as baselines writes them."""

import json
import os
import time
from typing import Any

from agents.envs.wrappers import Wrapper
from agents.run import errors, files, log


class EpisodeLog:
  """Writes a row of return, length and seconds per episode.

  A file that exists is continued: its seconds go on to count from the
  `t_start` of its header, which is what readers of the format add to them.

  Args:
    path: Path of the file; None for no file.
    name: Id of the environment, for the header.

  Attributes:
    episodes: Number of rows.

  Raises:
    UsageError: If the file exists and has no header.
  """

  def __init__(self, path: str | None, name: str):
    self._path = path
    self._began = time.time()
    self.episodes = 0
    if path and os.path.exists(path):
      log.append(path, '')
      lines = _read_lines(path)
      self._began = _read_start(path, lines)
      self.episodes = len(lines) - 2
    elif path:
      header = json.dumps({'t_start': self._began, 'env_id': name})
      _write_lines(path, [f'# {header}\n', 'r,l,t\n'])

  def write(self, return_: float, length: int) -> dict:
    """Add an episode.

    Args:
      return_: Sum of its rewards.
      length: Number of its steps.

    Returns:
      Dict of the return `r`, the length `l` and the seconds `t` since the
      start of the file.
    """
    row = {
      'r': round(return_, 6),
      'l': length,
      't': round(time.time() - self._began, 6),
    }
    if self._path:
      log.append(self._path, '{r},{l},{t}\n'.format(**row))
    self.episodes += 1
    return row

  def truncate(self, episodes: int) -> None:
    """Forget all rows after the first `episodes`, if there are more."""
    if episodes >= self.episodes:
      return
    self.episodes = episodes
    if self._path:
      _write_lines(self._path, _read_lines(self._path)[: 2 + episodes])


class Monitor(Wrapper):
  """Write a row per finished episode, and put it in the info of its last step.

  A file that exists is continued. Episodes that are reset early leave no row.

  Args:
    env: Environment.
    filename: Path without the ending `.monitor.csv`; None for no file.
    name: Name of the environment in the file; by default its id.

  Attributes:
    episode_return: Sum of the rewards of the current episode.
    episode_length: Number of its steps.
    log: The `EpisodeLog`.
  """

  EXT = '.monitor.csv'

  def __init__(
    self, env: Any, filename: str | None = None, name: str | None = None
  ):
    super().__init__(env)
    self.episode_return, self.episode_length = 0.0, 0
    path = filename and filename.removesuffix(self.EXT) + self.EXT
    self.log = EpisodeLog(path, name or env.spec.id)

  def reset(self) -> Any:
    self.episode_return, self.episode_length = 0.0, 0
    return self._env.reset()

  def step(self, action: Any) -> tuple:
    obs, reward, done, info = self._env.step(action)
    self.episode_return += float(reward)
    self.episode_length += 1
    if done:
      row = self.log.write(self.episode_return, self.episode_length)
      info = dict(info, episode=row)
    return obs, reward, done, info

  def get_state(self) -> dict:
    """Return the environment's state, and how many rows belong to it."""
    return {'env': self._env.get_state(), 'episodes': self.log.episodes}

  def set_state(self, state: dict) -> None:
    """Undo `get_state`; rows of episodes since then are removed."""
    if 'episodes' not in state:  # Written before rows were counted.
      self._env.set_state(state)
      return
    self._env.set_state(state['env'])
    self.log.truncate(state['episodes'])


def begin_anew(folder: str, rank: int) -> None:
  """Remove the files of a rank, for a training that begins anew.

  Otherwise it would add to the episodes of one that ended before its first
  checkpoint.
  """
  for name in os.listdir(folder):
    if name.startswith(f'{rank}.') and name.endswith(Monitor.EXT):
      os.remove(os.path.join(folder, name))


def _read_lines(path):
  with open(path) as file_:
    return file_.readlines()


def _write_lines(path, lines):
  with files.atomic_write(path) as file_:
    file_.writelines(lines)


def _read_start(path, lines):
  try:
    return float(json.loads(lines[0].removeprefix('# '))['t_start'])
  except (IndexError, ValueError, KeyError, TypeError):
    raise errors.UsageError(
      f'File {path} begins with no header, so it is not a list of episodes; '
      'move it away, or choose another folder.'
    ) from None
