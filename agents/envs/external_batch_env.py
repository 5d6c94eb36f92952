"""Batch of environments spread over a few processes or threads."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from agents.envs import vector
from agents.tools import batch_env


class ExternalBatchEnv:
  """Step environments in processes, several of them in each.

  The interface is that of `BatchEnv`.

  Args:
    constructors: Functions that build the environments in their processes.
    num_workers: Number of processes; by default as many as there are cores,
      or environments if these are fewer.
    strategy: `process`, or `thread` for threads instead.

  Raises:
    ValueError: If the spaces of the environments differ.
  """

  def __init__(
    self,
    constructors: Iterable[Callable[[], Any]],
    num_workers: int | None = None,
    strategy: str = 'process',
  ):
    self._vector = vector.Vector(
      _Batch, constructors, num_workers or None, strategy
    )
    self._spaces = self._vector.common_spaces()
    self._envs = [self._vector[i] for i in range(len(self._vector))]

  def __len__(self) -> int:
    return len(self._envs)

  def __getitem__(self, index: int) -> Any:
    return self._envs[index]

  def __getattr__(self, name: str) -> Any:
    if name.startswith('_'):
      raise AttributeError(name)
    return getattr(self._envs[0], name)

  @property
  def observation_space(self) -> Any:
    return self._spaces[0]

  @property
  def action_space(self) -> Any:
    return self._spaces[1]

  def step(self, actions: np.ndarray) -> tuple:
    """Step all environments; see `BatchEnv.step`."""
    batch_env.check_actions(self.action_space, actions)
    return vector.join_transitions(self._vector.call('step', actions))

  def reset(
    self, indices: Sequence[int] | np.ndarray | None = None
  ) -> np.ndarray:
    """Reset environments; see `BatchEnv.reset`."""
    if indices is None:
      indices = np.arange(len(self))
    return self._vector.reset(indices)

  def close(self) -> None:
    """Close the environments and end their hosts."""
    self._vector.close()


class _Batch(vector.Group):
  """Environments of one host."""

  def step(self, actions):
    return batch_env.stack_transitions(
      [env.step(action) for env, action in zip(self.envs, actions)]
    )

  def reset(self, rows):
    return vector.stack([self.envs[row].reset() for row in rows])


def make_batch_env(
  constructors: Iterable[Callable[[], Any]],
  isolate_envs: str,
  num_workers: int | None = None,
) -> Any:
  """Create a batch of environments where they should live.

  Args:
    constructors: Functions that build the environments.
    isolate_envs: `none` for this thread, `thread` for a thread each, or
      `process` for a few processes.
    num_workers: Number of processes, see `ExternalBatchEnv`.

  Raises:
    NotImplementedError: For other values of `isolate_envs`.
  """
  if isolate_envs == 'none':
    return batch_env.BatchEnv([x() for x in constructors], blocking=True)
  if isolate_envs == 'thread':
    constructors = list(constructors)
    return ExternalBatchEnv(constructors, len(constructors), 'thread')
  if isolate_envs == 'process':
    return ExternalBatchEnv(constructors, num_workers)
  raise NotImplementedError(
    f"Unknown isolate_envs {isolate_envs!r}; use 'none', 'thread' or 'process'."
  )
