"""Returns and lengths of episodes in a file, as baselines writes them."""

import json
import os
import time

from agents.run import errors
from agents.run import files


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
      lines = _read_lines(path)
      self._began = _read_start(path, lines)
      self.episodes = len(lines) - 2
      if sum(map(len, lines)) < os.path.getsize(path):
        _write_lines(path, lines)
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
      with open(self._path, 'a') as file_:
        file_.write('{r},{l},{t}\n'.format(**row))
    self.episodes += 1
    return row

  def truncate(self, episodes: int) -> None:
    """Forget all rows after the first `episodes`, if there are more."""
    if episodes >= self.episodes:
      return
    self.episodes = episodes
    if self._path:
      _write_lines(self._path, _read_lines(self._path)[: 2 + episodes])


def _read_lines(path):
  """Lines of a file; a last one that was cut off by a crash is left out."""
  with open(path) as file_:
    return [x for x in file_ if x.endswith('\n')]


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
