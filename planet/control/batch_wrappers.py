"""Wrappers of batch environments."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np


class BatchWrapper:
  """Forward everything to a batch environment.

  Args:
    batch_env: Batch environment.
  """

  def __init__(self, batch_env: Any) -> None:
    self._batch_env = batch_env

  def __getattr__(self, name: str) -> Any:
    if name.startswith('_'):
      raise AttributeError(name)
    return getattr(self._batch_env, name)

  def __len__(self) -> int:
    return len(self._batch_env)

  def __getitem__(self, index: int) -> Any:
    return self._batch_env[index]


class GuidedEnv(BatchWrapper):
  """Keep at which actions plans should begin.

  Environments tell their measurements as an attribute of this name and as the
  info of each step.

  Args:
    batch_env: Batch environment.
    rule: Function from measurements to an action, float32 [actions].
  """

  def __init__(
    self, batch_env: Any, rule: Callable[[Mapping[str, Any]], np.ndarray]
  ) -> None:
    super().__init__(batch_env)
    self._rule = rule
    self._actions = np.stack([rule({})] * len(batch_env))

  def guide(self, indices: Sequence[int] | np.ndarray) -> np.ndarray:
    """Return the actions of some environments, float32 [n, actions]."""
    return self._actions[indices]

  def reset(self, indices: Sequence[int] | np.ndarray) -> np.ndarray:
    observ = self._batch_env.reset(indices)
    for index in indices:
      measurements = self._batch_env[int(index)].measurements
      self._actions[index] = self._rule(measurements)
    return observ

  def step(self, actions: np.ndarray) -> tuple:
    transition = self._batch_env.step(actions)
    for index, info in enumerate(transition[3]):
      # After a step that failed nothing is known.
      if not info.get('step_error'):
        self._actions[index] = self._rule(info)
    return transition
