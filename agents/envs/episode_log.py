"""Log files of episode returns and lengths, in the format of baselines."""

import json
import os
import time
from collections.abc import Sequence
from typing import Any

from agents.envs.wrappers import Wrapper
from agents.run import errors, files, log


class Monitor(Wrapper):
  """Log the return, length and duration of every finished episode.

  The row is also `info['episode']` of the last step, a dict with `r`, `l` and
  `t` in seconds. Episodes that are reset early leave no row. Appends to an
  existing file: times continue from the `t_start` in its header, as readers of
  the format expect.

  Args:
    env: Environment.
    filename: Path without the suffix `.monitor.csv`; None for no file.
    name: Name of the environment in the file; its id by default.
    columns: Further columns, which `find_further` returns.

  Attributes:
    episode_return: Sum of the rewards of the current episode.
    episode_length: Number of its steps.
    episodes: Number of rows.

  Raises:
    UsageError: If the file exists but has no header, or other columns.
  """

  EXT = 'monitor.csv'

  def __init__(
    self,
    env: Any,
    filename: str | None = None,
    name: str | None = None,
    columns: Sequence[str] = (),
  ):
    super().__init__(env)
    self.episode_return, self.episode_length, self.episodes = 0.0, 0, 0
    path = filename
    if path and not path.endswith(self.EXT):
      path = f'{path}.{self.EXT}'
    self._path: Any = path
    # The file has a date; times of episodes go on if the clock is set.
    start = now = time.time()
    header = log.format_rows([['r', 'l', 't', *columns]])
    if path and os.path.exists(path):
      log.append(path, '')
      lines = self._read()
      start = _read_start(path, lines, header)
      self.episodes = len(lines) - 2
    elif path:
      env_id = name or getattr(getattr(env, 'spec', None), 'id', None)
      first = json.dumps({'t_start': start, 'env_id': env_id})
      self._write([f'# {first}\n', header])
    self._began = time.monotonic() - max(0, now - start)

  def reset(self, **kwargs: Any) -> Any:
    self.episode_return, self.episode_length = 0.0, 0
    return self._env.reset(**kwargs)

  def step(self, action: Any) -> tuple:
    obs, reward, done, info = self._env.step(action)
    self.episode_return += float(reward)
    self.episode_length += 1
    if done:
      row = {
        'r': round(self.episode_return, 6),
        'l': self.episode_length,
        't': round(time.monotonic() - self._began, 6),
        **self.find_further(info),
      }
      if self._path:
        log.append(self._path, log.format_rows([row.values()]))
      self.episodes += 1
      info = dict(info, episode=row)
    return obs, reward, done, info

  def find_further(self, info: dict[str, Any]) -> dict[str, Any]:
    """Return the values of the further columns, from the last info."""
    return {}

  def truncate(self, episodes: int) -> None:
    """Remove all rows after the first `episodes`."""
    if episodes < self.episodes:
      self.episodes = episodes
      if self._path:
        self._write(self._read()[: 2 + episodes])

  def get_state(self) -> dict:
    """Return the state of the environment and the number of rows."""
    return {'env': self._env.get_state(), 'episodes': self.episodes}

  def set_state(self, state: dict) -> None:
    """Restore the result of `get_state`; removes rows written since then."""
    self._env.set_state(state['env'])
    self.truncate(state['episodes'])

  def _read(self):
    with open(self._path, errors='replace') as file_:
      return file_.readlines()

  def _write(self, lines):
    with files.atomic_write(self._path) as file_:
      file_.writelines(lines)


def begin_anew(folder: str, rank: int) -> None:
  """Remove the files of a rank before a training starts over.

  Otherwise it would append to the episodes of a training that ended before its
  first checkpoint.
  """
  for name in os.listdir(folder):
    if name.startswith(f'{rank}.') and name.endswith(Monitor.EXT):
      os.remove(os.path.join(folder, name))


def _read_start(path, lines, header):
  try:
    start = float(json.loads(lines[0].removeprefix('# '))['t_start'])
  except (IndexError, ValueError, KeyError, TypeError):
    raise errors.UsageError(
      f'File {path} has no header of an episode log; move it away, or choose '
      'another folder.'
    ) from None
  if lines[1:] and lines[1] != header:
    raise errors.UsageError(
      f'File {path} has the columns {lines[1].strip()}, not {header.strip()}; '
      'move it away, or choose another folder.'
    )
  return start
