"""The environments of an explorer, here or in processes of their own.

Free of TensorFlow, as environments are built in processes of their own.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from agents.envs import vector


class EnvPool:
  """Workers that step together, with one message per process and step.

  Args:
    constructors: Functions that build the workers; picklable by cloudpickle
      for processes.
    processes: Number of processes to spread them over, 0 for this one, None
      for one per core.

  Attributes:
    description: What the first environment looks like, see `probe.describe`.
  """

  def __init__(
    self,
    constructors: Iterable[Callable[[], Any]],
    processes: int | None = None,
  ):
    self._vector = vector.Vector(WorkerGroup, constructors, processes)
    self.description = self._vector.get('description')[0]

  def reset(self) -> dict[str, np.ndarray]:
    """Begin episodes; dict from path to observations [workers, ...]."""
    return vector.join(self._vector.call('reset'))

  def step(self, actions: dict[str, np.ndarray]) -> tuple:
    """Step all workers.

    Args:
      actions: Dict from name of agent to array [workers, ...].

    Returns:
      Tuple of observations, a dict from path to array [workers, ...]; rewards
      float32 [workers]; ends, bool [workers]; and a dict from row to what the
      worker tells, if it does. See `Worker.step`.
    """
    parts = self._vector.call('step', actions)
    *transition, infos = vector.join_transitions(parts)
    return *transition, {row: x for row, x in enumerate(infos) if x}

  def state_dicts(self) -> list[dict]:
    """Return the states of the workers."""
    return vector.join(self._vector.call('state_dicts'))

  def load_state_dicts(self, states: list[dict]) -> list:
    """Restore states; list of what `Worker.load_state_dict` returns."""
    return vector.join(self._vector.call('load_state_dicts', states))

  def close(self) -> None:
    """Close the environments and end their processes."""
    self._vector.close()


class WorkerGroup(vector.Group):
  """Workers in one process; `EnvPool` tells what the methods mean."""

  @property
  def description(self) -> dict:
    return self.envs[0].description

  def reset(self) -> dict[str, np.ndarray]:
    return vector.stack([x.reset() for x in self.envs])

  def step(self, actions: dict[str, np.ndarray]) -> tuple:
    rewards = np.empty(len(self.envs), np.float32)
    dones = np.zeros(len(self.envs), bool)
    observations, infos = [], []
    for row, worker in enumerate(self.envs):
      own = {name: value[row] for name, value in actions.items()}
      observation, rewards[row], dones[row], info = worker.step(own)
      observations.append(observation)
      infos.append(info)
    return vector.stack(observations), rewards, dones, infos

  def state_dicts(self) -> list[dict]:
    return [x.state_dict() for x in self.envs]

  def load_state_dicts(self, states: list[dict]) -> list:
    return [x.load_state_dict(y) for x, y in zip(self.envs, states)]
