"""The environments of an explorer, here or in processes of their own.

Free of TensorFlow, as environments are built in processes of their own.
"""

import functools
import os

import numpy as np

from agents.envs import hosts


class EnvPool:
  """Workers that step together, with one message per process and step.

  Args:
    constructors: Functions that build the workers; picklable by cloudpickle
      for processes.
    processes: Number of processes to spread them over, 0 for this one, None
      for one per core.

  Attributes:
    description: What the first environment looks like, see
      `env_config.inspect`.
  """

  def __init__(self, constructors, processes=None):
    constructors = list(constructors)
    if processes is None:
      processes = os.cpu_count() or 1
    processes = min(processes, len(constructors))
    bounds = np.linspace(0, len(constructors), max(1, processes) + 1).astype(
      int
    )
    self._rows = [slice(*x) for x in zip(bounds[:-1], bounds[1:])]
    groups = [
      functools.partial(WorkerGroup, constructors[rows]) for rows in self._rows
    ]
    self._hosts, self._local = [], None
    if not processes:
      self._local = groups[0]()
      self.description = self._local.description
      return
    try:
      for group in groups:
        self._hosts.append(hosts.EnvHost([group], 'process'))
      self.description = self._hosts[0].access(0, 'description')()
    except BaseException:
      self.close()
      raise

  def reset(self):
    """Begin episodes; dict from path to observations [workers, ...]."""
    if self._local:
      return self._local.reset()
    return _join(self._call('reset', [()] * len(self._hosts)))

  def step(self, actions):
    """Step all workers; see `WorkerGroup.step`."""
    if self._local:
      return self._local.step(actions)
    parts = self._call(
      'step',
      [({k: v[rows] for k, v in actions.items()},) for rows in self._rows],
    )
    observations, rewards, dones, infos = zip(*parts)
    infos = {
      rows.start + row: info
      for rows, part in zip(self._rows, infos)
      for row, info in part.items()
    }
    rewards, dones = np.concatenate(rewards), np.concatenate(dones)
    return _join(observations), rewards, dones, infos

  def state_dicts(self):
    """List of the states of the workers."""
    if self._local:
      return self._local.state_dicts()
    parts = self._call('state_dicts', [()] * len(self._hosts))
    return [x for part in parts for x in part]

  def load_state_dicts(self, states):
    """Restore states; list of what `Worker.load_state_dict` returns."""
    if self._local:
      return self._local.load_state_dicts(states)
    parts = self._call(
      'load_state_dicts', [(states[rows],) for rows in self._rows]
    )
    return [x for part in parts for x in part]

  def close(self):
    """Close the environments and end their processes."""
    hosts.close_hosts(self._hosts)
    if self._local:
      self._local.close()

  def _call(self, name, args):
    """Results of a method of all groups, which work at the same time."""
    promises = [
      host.call(0, name, *each) for host, each in zip(self._hosts, args)
    ]
    return [promise() for promise in promises]


class WorkerGroup:
  """Workers in one process.

  Args:
    constructors: Functions that build the workers.

  Attributes:
    description: What the first environment looks like, see
      `env_config.inspect`.
  """

  def __init__(self, constructors):
    self._workers = [constructor() for constructor in constructors]
    self.description = self._workers[0].description

  def reset(self):
    """Begin episodes; dict from path to observations [workers, ...]."""
    return _stack([x.reset() for x in self._workers])

  def step(self, actions):
    """Step all workers.

    Args:
      actions: Dict from name of agent to array [workers, ...].

    Returns:
      Tuple of observations, a dict from path to array [workers, ...]; rewards
      float32 [workers]; ends, bool [workers]; and a dict from row to what the
      worker tells, if it does. See `Worker.step`.
    """
    rewards = np.empty(len(self._workers), np.float32)
    dones = np.zeros(len(self._workers), bool)
    observations, infos = [], {}
    for row, worker in enumerate(self._workers):
      own = {name: value[row] for name, value in actions.items()}
      observation, rewards[row], dones[row], info = worker.step(own)
      observations.append(observation)
      if info:
        infos[row] = info
    return _stack(observations), rewards, dones, infos

  def state_dicts(self):
    """List of the states of the workers."""
    return [x.state_dict() for x in self._workers]

  def load_state_dicts(self, states):
    """Restore states; list of what `Worker.load_state_dict` returns."""
    return [x.load_state_dict(y) for x, y in zip(self._workers, states)]

  def close(self):
    """Close the environments."""
    for worker in self._workers:
      worker.close()


def _stack(observations):
  # Copies, not views: environments may write to their arrays again.
  return {
    path: np.array([x[path] for x in observations]) for path in observations[0]
  }


def _join(parts):
  return {path: np.concatenate([x[path] for x in parts]) for path in parts[0]}
