"""Batch of environments spread over a few processes."""

import os

import numpy as np

from agents.envs import hosts
from agents.tools import batch_env
from agents.tools.wrappers import process


class ExternalBatchEnv:
  """Step environments in processes, several of them in each.

  There is one message per step and process, not per environment. The
  interface is that of `BatchEnv`.

  Args:
    constructors: Functions that build the environments in their processes.
    num_workers: Number of processes; by default as many as there are cores,
      or environments if these are fewer.

  Raises:
    ValueError: If the spaces of the environments differ.
  """

  def __init__(self, constructors, num_workers=None):
    constructors = list(constructors)
    limit = num_workers or os.cpu_count() or 1
    self._chunks = [
      x
      for x in np.array_split(
        np.arange(len(constructors)), min(limit, len(constructors))
      )
    ]
    self._hosts, self._envs = [], []
    try:
      for chunk in self._chunks:
        host = hosts.EnvHost([constructors[i] for i in chunk], 'process')
        self._hosts.append(host)
        self._envs += [process.RemoteEnv(host, i) for i in range(len(chunk))]
      # Checks the spaces, which also brings up failures of the constructors.
      self._batch = batch_env.BatchEnv(self._envs, blocking=False)
    except BaseException:
      self.close()
      raise

  def __len__(self):
    return len(self._envs)

  def __getitem__(self, index):
    return self._envs[index]

  def __getattr__(self, name):
    if name.startswith('_'):
      raise AttributeError(name)
    return getattr(self._envs[0], name)

  def step(self, actions):
    """Step all environments; see `BatchEnv.step`."""
    batch_env.check_actions(self._envs[0].action_space, actions)
    promises = [
      host.step(actions[chunk])
      for host, chunk in zip(self._hosts, self._chunks)
    ]
    results = [promise() for promise in promises]
    if len(results) == 1:
      return results[0]
    observs, rewards, dones, infos = zip(*results)
    return (
      np.concatenate(observs),
      np.concatenate(rewards),
      np.concatenate(dones),
      sum(infos, ()),
    )

  def reset(self, indices=None):
    """Reset environments; see `BatchEnv.reset`."""
    return self._batch.reset(indices)

  def close(self):
    """End all processes."""
    hosts.close_hosts(self._hosts)
