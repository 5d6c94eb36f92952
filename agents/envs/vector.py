"""N environments on H hosts: requests are split, results are joined.

Each call sends one message per host, not per environment. Each host holds a
group, an object that is created from the constructors of its environments and
has methods for all of them.
"""

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from agents.envs import hosts
from agents.run import limits


class Vector:
  """Groups of environments, each in its own host or all in this thread.

  Args:
    group: Function from a list of constructors to a `Group`, picklable by
      cloudpickle.
    constructors: Functions that create the environments, picklable by
      cloudpickle.
    num_workers: Number of hosts, at most one per environment; 0 for this
      thread, None for one per core.
    strategy: Kind of host, `process` or `thread`.
  """

  def __init__(
    self,
    group: Callable[[list[Callable[[], Any]]], Any],
    constructors: Iterable[Callable[[], Any]],
    num_workers: int | None = None,
    strategy: str = 'process',
  ):
    constructors = list(constructors)
    if num_workers is None:
      num_workers = max(1, round(limits.allowed_cores()))
    count = min(num_workers, len(constructors))
    self._rows = _split_evenly(len(constructors), max(1, count))
    self._hosts: list[Any] = []
    try:
      for rows in self._rows:
        build = functools.partial(group, constructors[rows])
        host = hosts.EnvHost(build, strategy) if count else build()
        self._hosts.append(host)
    except BaseException:
      self.close()
      raise

  def __len__(self) -> int:
    return self._rows[-1].stop

  def __getitem__(self, index: int) -> Any:
    """Return one of the environments, or its proxy."""
    index = range(len(self))[index]
    number = sum(index >= rows.stop for rows in self._rows)
    row = index - self._rows[number].start
    host = self._hosts[number]
    return host[row] if isinstance(host, Group) else hosts.RemoteEnv(host, row)

  def get(self, name: str) -> list[Any]:
    """Return an attribute of each group; closes all groups if that fails."""
    try:
      promises = [host.access(None, name) for host in self._hosts]
      return [promise() for promise in promises]
    except BaseException:
      self.close()
      raise

  def send(
    self, name: str, *args: Any, **kwargs: Any
  ) -> Callable[[], list[Any]]:
    """Call a method of all groups in parallel.

    Args:
      name: Name of the method.
      *args: Lists, arrays, or dictionaries of them, with an entry per
        environment. Each group receives the entries of its environments.
      **kwargs: Passed to all groups unchanged.

    Returns:
      Function that waits for the list of results, one per group.
    """
    promises = [
      host.call(None, name, *[take(x, rows) for x in args], **kwargs)
      for host, rows in zip(self._hosts, self._rows)
    ]
    return lambda: [promise() for promise in promises]

  def call(self, name: str, *args: Any, **kwargs: Any) -> list[Any]:
    """Call a method of all groups and wait; see `send`."""
    return self.send(name, *args, **kwargs)()

  def reset(self, indices: Sequence[int] | np.ndarray | None = None) -> Any:
    """Reset environments.

    Args:
      indices: Indices of the environments; all by default.

    Returns:
      Joined observations in the order of the indices; None if the groups
      return None.
    """
    indices = range(len(self)) if indices is None else indices
    order = np.argsort(indices, kind='stable')
    ordered = np.asarray(indices)[order]
    promises = []
    for host, rows in zip(self._hosts, self._rows):
      first, last = np.searchsorted(ordered, [rows.start, rows.stop])
      if first < last:
        own = (ordered[first:last] - rows.start).tolist()
        promises.append(host.call(None, 'reset', own))
    parts = [promise() for promise in promises]
    return None if parts[0] is None else take(join(parts), np.argsort(order))

  def each(self, name: str, *args: Any) -> list[Any]:
    """Call a method of each environment and return the results.

    Args:
      name: Name of the method.
      *args: Lists or arrays of arguments, with an entry per environment.
    """
    return join(self.call('each', *args, method=name))

  def find_states(self, name: str) -> list[Any] | None:
    """Return what a method returns for each, None if a host has failed.

    The states of its environments are lost, but not the rest of a training.
    """
    failed = any(getattr(x, 'has_failed', False) for x in self._hosts)
    return None if failed else self.each(name)

  def close(self) -> None:
    """Close the environments and end their hosts."""
    hosts.close_hosts(x for x in self._hosts if isinstance(x, hosts.EnvHost))
    for host in self._hosts:
      host.close()


class Group:
  """Environments that share a host.

  Args:
    constructors: Functions that create the environments.

  Attributes:
    envs: List of the environments.
  """

  def __init__(self, constructors: Iterable[Callable[[], Any]]):
    self.envs: list[Any] = []
    try:
      for constructor in constructors:
        self.envs.append(constructor())
    except BaseException:
      Group.close(self)
      raise

  def __getitem__(self, index: int) -> Any:
    return self.envs[index]

  @property
  def spaces(self) -> list[tuple[Any, Any]]:
    """Return the observation and action space of each environment."""
    return [(x.observation_space, x.action_space) for x in self.envs]

  @property
  def seconds_to_close(self) -> float:
    """Extra seconds that closing may take."""
    return sum(map(hosts.find_seconds_to_close, self.envs))

  def step(self, actions: Any) -> tuple:
    """Step all environments; `actions` has an entry for each, see `take`."""
    steps = [x.step(take(actions, row)) for row, x in enumerate(self.envs)]
    return stack_transitions(steps)

  def reset(self, rows: Sequence[int]) -> Any:
    """Reset some environments and return their observations."""
    return self.stack([self.envs[row].reset() for row in rows])

  def stack(self, observations: Sequence[Any]) -> Any:
    """Stack observations of several environments."""
    return stack(observations)

  def each(self, *args: Any, method: str) -> list[Any]:
    """Call a method of each environment, see `Vector.each`."""
    return [getattr(x, method)(*own) for x, *own in zip(self.envs, *args)]

  def close(self) -> None:
    """Close all environments that have a `close` method."""
    for env in self.envs:
      with contextlib.suppress(Exception, SystemExit):
        getattr(env, 'close', lambda: None)()

  def access(self, unused_index: Any, name: str) -> Callable[[], Any]:
    """Return an attribute of the group, as `EnvHost` does."""
    value = getattr(self, name)
    return lambda: value

  def call(
    self, unused_index: Any, name: str, *args: Any, **kwargs: Any
  ) -> Callable[[], Any]:
    """Call a method of the group, as `EnvHost` does."""
    value = getattr(self, name)(*args, **kwargs)
    return lambda: value


def stack(
  observations: Sequence[Any], dtypes: dict[str, Any] | None = None
) -> Any:
  """Stack observations of several environments, as copies.

  Args:
    observations: List of arrays, or of dictionaries of arrays.
    dtypes: Dict from key to dtype, None to keep the dtype, of the entries to
      stack; all entries unchanged by default.

  Returns:
    Array [environments, ...], or a dictionary of such arrays.
  """
  if not isinstance(observations[0], dict):
    return np.array(observations)
  dtypes = dtypes or dict.fromkeys(observations[0])
  return {
    key: np.array([x[key] for x in observations], dtype)
    for key, dtype in dtypes.items()
  }


def stack_transitions(transitions: Sequence[tuple]) -> tuple:
  """Stack the (observation, reward, done, info) tuples of a batch."""
  observs, rewards, dones, infos = zip(*transitions)
  observ = stack(observs)
  return observ, np.array(rewards, np.float32), np.array(dones, bool), infos


def join(parts: Sequence[Any]) -> Any:
  """Join results of groups: arrays, dictionaries of arrays, lists or tuples."""
  first = parts[0]
  if len(parts) == 1:
    return first
  if isinstance(first, dict):
    return {key: join([x[key] for x in parts]) for key in first}
  if isinstance(first, np.ndarray):
    return np.concatenate(parts)
  return type(first)(itertools.chain(*parts))


def join_transitions(parts: Sequence[tuple]) -> tuple:
  """Join transitions: tuples of observations, rewards, done flags and infos."""
  if len(parts) == 1:
    return parts[0]
  return tuple(join(x) for x in zip(*parts))


def _split_evenly(count, number):
  """List of slices whose lengths differ by at most one."""
  bounds = [(i * count + number - 1) // number for i in range(number + 1)]
  return [slice(*x) for x in zip(bounds[:-1], bounds[1:])]


def take(value: Any, rows: Any) -> Any:
  """Return some entries of an array or list, or of a dict of them."""
  if isinstance(value, dict):
    return {key: take(x, rows) for key, x in value.items()}
  return value[rows]
