"""Environments in a thread or process of their own."""

from collections.abc import Callable
from typing import Any

from agents.envs import hosts


class RemoteEnv:
  """One of the environments of a host, as if it were here.

  Args:
    host: The `EnvHost` that the environment lives in.
    index: Number of the environment within the group that the host holds, or
      None if it holds a single environment.
  """

  def __init__(self, host: hosts.EnvHost, index: int | None = None):
    self._host = host
    self._index = index
    self._spaces: dict[str, Any] = {}

  @property
  def observation_space(self) -> Any:
    return self._space('observation_space')

  @property
  def action_space(self) -> Any:
    return self._space('action_space')

  def __getattr__(self, name: str) -> Any:
    if name.startswith('_'):
      raise AttributeError(name)
    return self._host.access(self._index, name)()

  def call(self, name: str, *args: Any, **kwargs: Any) -> Callable[[], Any]:
    """Call a method; return a function that waits for its result."""
    return self._host.call(self._index, name, *args, **kwargs)

  def step(self, action: Any, blocking: bool = True) -> Any:
    """Return the transition, or its promise when not blocking."""
    promise = self.call('step', action)
    return promise() if blocking else promise

  def reset(self, blocking: bool = True) -> Any:
    """Return the observation, or its promise when not blocking."""
    promise = self.call('reset')
    return promise() if blocking else promise

  def render(self, *args: Any, **kwargs: Any) -> Any:
    return self.call('render', *args, **kwargs)()

  def seed(self, seed: int) -> Any:
    return self.call('seed', seed)()

  def close(self) -> None:
    """Close the host with all its environments; may be called twice."""
    self._host.close()

  def _space(self, name):
    if name not in self._spaces:
      self._spaces[name] = self._host.access(self._index, name)()
    return self._spaces[name]


class Async(RemoteEnv):
  """Build an environment in a thread or process to step it from here.

  Args:
    constructor: Function without arguments that returns the environment.
    strategy: Either `thread` or `process`. The constructor has to be
      picklable for processes, which neither import the main program again
      nor contain TensorFlow.

  Raises:
    NotImplementedError: For any other strategy.
    WorkerError: From any use after the environment failed, with the
      traceback; RuntimeError from the uses after that one, or if the process
      has died.
  """

  def __init__(self, constructor: Callable[[], Any], strategy: str = 'thread'):
    super().__init__(hosts.EnvHost(constructor, strategy))


class ExternalProcess(Async):
  """Build an environment in a process of its own; see `Async`."""

  def __init__(self, constructor: Callable[[], Any]):
    super().__init__(constructor, 'process')
