"""Load the files of a session for evaluation.

A session is a package: `from my_sessions.session_x import loader`.
"""

import os
import sys
from importlib import machinery
from typing import Any

from agents.pipeline import checkpoints, logs
from agents.run import errors, files


class Loader:
  """Parameters, paths and logs of a session.

  Args:
    path: Folder of the session.

  Attributes:
    path: The folder.
    cpanel: Control panel of the run, dict.
    params: Tree of parameters, dict.
  """

  def __init__(self, path: Any) -> None:
    self.path = path
    self.cpanel = files.read_plain(os.path.join(path, 'cpanel.json'))
    self.params = files.read_yaml(os.path.join(path, 'params.yaml'))

  @property
  def checkpoints(self) -> dict[int, str]:
    """Dict from epoch to path of every complete checkpoint."""
    return checkpoints.list_checkpoints(self.path)

  def getVarlogLoader(self) -> dict[str, Any]:
    """Return the arrays of the Monitor by name; see `logs.read`."""
    return logs.read(os.path.join(self.path, 'varlog.json'))

  def getPrologLoader(self) -> dict[str, Any]:
    """Return the arrays of the Profiler by name; see `logs.read`."""
    return logs.read(os.path.join(self.path, 'prolog.json'))

  def getMonlogLoader(self) -> dict[str, Any]:
    """Return the logs of CPU, memory and GPUs by name; see `logs.read`."""
    return logs.read(os.path.join(self.path, 'monlog.json'))

  def activate_modules(self, *names: str) -> None:
    """Use the session's copies of packages in all later imports.

    Unloads modules that were already imported from these packages. The copies
    contain code of the session's author, so packages must be named explicitly.

    Args:
      *names: Packages in the folder `modules`, such as `agents`.

    Raises:
      UsageError: If no name is given, or there is no copy of a package.
    """
    folder = os.path.join(self.path, 'modules')
    known = [x.removesuffix('.py') for x in os.listdir(folder)]
    for name in names or [None]:
      if name not in known:
        raise errors.UsageError(
          f'Name the modules of a session to import, not {name!r}, and only '
          f'those that you trust. {errors.suggest(str(name), known)}'
        )
    for name in [x for x in sys.modules if x.partition('.')[0] in names]:
      del sys.modules[name]
    sys.meta_path.insert(0, _CopiesFinder(folder, names))


class _CopiesFinder:
  """Finds only the given packages in a folder."""

  def __init__(self, folder, names):
    self._folder = folder
    self._names = names

  def find_spec(self, name, path=None, target=None):
    if path is None and name in self._names:
      return machinery.PathFinder.find_spec(name, [self._folder], target)
    return None
