"""Small sessions of real parts, for tests of what runs inside of one."""

import os
import types

from agents.pipeline import logs
from agents.run import mpi


class SmallSession:
  """What agents, explorers and memories need of a session.

  Args:
    path: Folder to write to; nothing is written if None.
  """

  def __init__(self, path=None):
    self.path = path and str(path)
    self.comm = mpi.world()
    self.args = types.SimpleNamespace()
    self.is_loading = self.is_playing = self.is_resumed = False
    self.params = {}
    self.logger = logs.Logger(self._file('report.log'), level=0)
    self.monitor = logs.Monitor(self._file('varlog.json'))
    self.profiler = logs.Profiler(self._file('prolog.json'))
    self.writer = logs.Writer()
    self.packs = []
    self.monitor.listeners.append(lambda *args: self.packs.append(args))
    self._graph = self._tf_session = None

  def folder(self, name):
    """Path of a sub-folder, None without a folder."""
    if not self.path:
      return None
    folder = os.path.join(self.path, name)
    os.makedirs(folder, exist_ok=True)
    return folder

  @property
  def graph(self):
    from agents.tools.tf1 import tf

    self._graph = self._graph or tf.Graph()
    return self._graph

  def tf_session(self):
    """Session of TensorFlow on the graph, made when it is first asked for."""
    from agents.tools.tf1 import tf

    if not self._tf_session:
      config = tf.ConfigProto(
        intra_op_parallelism_threads=1, inter_op_parallelism_threads=1
      )
      self._tf_session = tf.Session(graph=self.graph, config=config)
    return self._tf_session

  def _file(self, name):
    return self.path and os.path.join(self.path, name)
