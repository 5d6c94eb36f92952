"""What a session has written, for those who evaluate it.

A session is a package: `from my_sessions.session_x import loader`.
"""

import json
import os
import sys

from agents.pipeline import folders
from agents.pipeline import logs
from agents.tools import files


class Loader:
  """Parameters, paths and logs of a session.

  Args:
    path: Folder of the session.

  Attributes:
    path: The folder.
    cpanel: Control panel of the run, dict.
    params: Tree of parameters, dict.
  """

  def __init__(self, path):
    self.path = path
    with open(os.path.join(path, 'cpanel.json')) as file_:
      self.cpanel = json.load(file_)
    self.params = files.read_yaml(os.path.join(path, 'params.yaml'))

  @property
  def checkpoints(self):
    """Dict from epoch to path of all complete checkpoints."""
    return dict(folders.list_checkpoints(self.path))

  def getVarlogLoader(self):
    """Dict of name to arrays of the Monitor; see `logs.read`."""
    return logs.read(os.path.join(self.path, 'varlog.json'))

  def getPrologLoader(self):
    """The same of the Profiler."""
    return logs.read(os.path.join(self.path, 'prolog.json'))

  def getMonlogLoader(self):
    """The same of CPU, memory and GPUs."""
    return logs.read(os.path.join(self.path, 'monlog.json'))

  def activate_modules(self):
    """Import the copied code of the session from now on."""
    sys.path.insert(0, os.path.join(self.path, 'modules'))
