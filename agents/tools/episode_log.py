"""Returns and lengths of episodes in a file, as baselines writes them."""

import json
import os
import time

from agents.tools import files


class EpisodeLog:
  """Writes a row of return, length and seconds per episode.

  A file that exists is continued.

  Args:
    path: Path of the file; None for no file.
    name: Id of the environment, for the header.
  """

  def __init__(self, path, name):
    self._path = path
    self._began = time.time()
    if path and not os.path.exists(path):
      header = json.dumps({'t_start': self._began, 'env_id': name})
      with files.atomic_write(path) as file_:
        file_.write(f'# {header}\nr,l,t\n')

  def write(self, return_, length):
    """Add an episode.

    Args:
      return_: Sum of its rewards.
      length: Number of its steps.

    Returns:
      Dict of the return `r`, the length `l` and the seconds `t` since the
      log was opened.
    """
    row = {
      'r': round(return_, 6),
      'l': length,
      't': round(time.time() - self._began, 6),
    }
    if self._path:
      with open(self._path, 'a') as file_:
        file_.write('{r},{l},{t}\n'.format(**row))
    return row
