"""The environments of an explorer, here or in processes of their own."""

import os

import numpy as np

from agents.tools import env_host


class EnvPool:
  """Workers that step together.

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
    self._size = len(constructors)
    self._hosts, self._rows, self._workers = [], [], []
    try:
      if processes:
        chunks = np.array_split(np.arange(self._size), processes)
        self._rows = [x.tolist() for x in chunks if len(x)]
        self._hosts = [
          env_host.EnvHost([constructors[i] for i in rows], 'process')
          for rows in self._rows
        ]
        self.description = self._hosts[0].access(0, 'description')()
      else:
        self._workers = [constructor() for constructor in constructors]
        self.description = self._workers[0].description
    except BaseException:
      self.close()
      raise

  def __len__(self):
    return self._size

  def step(self, actions):
    """Step all workers.

    Args:
      actions: List of what each worker gets.

    Returns:
      Tuple of what the workers have returned: list of observations, float
      array [workers] of rewards, bool array [workers] of ends, list of infos.
    """
    if self._workers:
      results = [w.step(x) for w, x in zip(self._workers, actions)]
      observations, rewards, dones, infos = zip(*results)
      return observations, np.array(rewards, np.float32), dones, infos
    promises = [
      host.step([actions[i] for i in rows])
      for host, rows in zip(self._hosts, self._rows)
    ]
    parts = [promise() for promise in promises]
    observations, rewards, dones, infos = zip(*parts)
    return (
      [x for part in observations for x in part],
      np.concatenate(rewards),
      np.concatenate(dones),
      [x for part in infos for x in part],
    )

  def call(self, name, *args):
    """Call a method of each worker.

    Args:
      name: Name of the method.
      *args: Lists of one argument per worker.

    Returns:
      List of results.
    """
    args = list(zip(*args)) or [()] * self._size
    if self._workers:
      return [getattr(w, name)(*x) for w, x in zip(self._workers, args)]
    promises = [
      host.call(index, name, *args[row])
      for host, rows in zip(self._hosts, self._rows)
      for index, row in enumerate(rows)
    ]
    return [promise() for promise in promises]

  def close(self):
    """Close the environments and end their processes."""
    env_host.close_hosts(self._hosts)
    for worker in self._workers:
      worker.close()
    self._workers = []
