"""Single environments in a process or thread of their own."""

from collections.abc import Callable
from typing import Any

from agents.envs import hosts, wrappers


class Async(hosts.RemoteEnv):
  """Create an environment in a thread or process and step it from here.

  Args:
    constructor: Function without arguments that returns the environment; those
      of gymnasium and gym are adapted.
    strategy: Either `thread` or `process`. Processes need a constructor that
      can be pickled; they neither import the main program again nor load
      TensorFlow.

  Raises:
    NotImplementedError: For any other strategy.
    WorkerError: On the first use after the environment failed; includes the
      traceback. Later uses, and all uses after the process died, raise
      RuntimeError.
  """

  def __init__(self, constructor: Callable[[], Any], strategy: str = 'thread'):
    create = lambda: wrappers.adapted(constructor())
    super().__init__(hosts.EnvHost(create, strategy))


class ExternalProcess(Async):
  """Create an environment in a separate process; see `Async`."""

  def __init__(self, constructor: Callable[[], Any]):
    super().__init__(constructor, 'process')
