"""Environments that step together, in this process or in others."""

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from agents.envs import vector


class VectorEnv(vector.Vector):
  """Environments in this thread, or spread over processes or threads.

  Items are the environments; attributes that this class lacks are those of the
  first one.

  Args:
    constructors: Functions that build the environments.
    num_workers: Number of processes, 0 for this one, None for one per core;
      never more than there are environments.
    strategy: `process`, or `thread` for threads instead.

  Raises:
    ValueError: If the spaces of the environments differ.
  """

  group: type[vector.Group] = vector.Group

  def __init__(
    self,
    constructors: Iterable[Callable[[], Any]],
    num_workers: int | None = 0,
    strategy: str = 'process',
  ):
    super().__init__(self.group, constructors, num_workers, strategy)
    pairs = vector.join(self.get('spaces'))
    for kind, spaces in zip(('observation', 'action'), zip(*pairs)):
      if not all(space == spaces[0] for space in spaces):
        self.close()
        raise ValueError(f'All environments must use the same {kind} space.')
    self.observation_space, self.action_space = pairs[0]

  def __getattr__(self, name: str) -> Any:
    if name.startswith('_'):
      raise AttributeError(name)
    return getattr(self[0], name)

  def step(self, actions: np.ndarray) -> tuple:
    """Step all environments.

    Args:
      actions: Array of one action per environment, [N, ...], of the dtype of
        the action space.

    Returns:
      Tuple of observations [N, ...], rewards float32 [N], done flags bool
      [N], and a tuple of N info dictionaries.

    Raises:
      ValueError: If an action is not in the action space.
    """
    check_actions(self.action_space, actions)
    return vector.join_transitions(self.call('step', actions))


class _Promising(vector.Group):
  """Environments that work while the others begin."""

  def step(self, actions):
    steps = [x.step(y, blocking=False) for x, y in zip(self.envs, actions)]
    return vector.stack_transitions([step() for step in steps])

  def reset(self, rows):
    resets = [self.envs[row].reset(blocking=False) for row in rows]
    return vector.stack([reset() for reset in resets])


class BatchEnv(VectorEnv):
  """Combine environments to step them in a batch.

  Args:
    envs: List of environments with equal spaces.
    blocking: Call one environment after another. Otherwise their `step` and
      `reset` take `blocking=False` and return promises; all are started
      before the first result is collected.
  """

  def __init__(self, envs: Sequence[Any], blocking: bool):
    self.group = vector.Group if blocking else _Promising
    super().__init__([functools.partial(_same, env) for env in envs])


def _same(env):
  return env


def check_actions(space: Any, actions: np.ndarray) -> None:
  """Make sure that each action of a batch lies in a space.

  Raises:
    ValueError: Naming the index and the action that do not fit.
  """
  if _all_in_box(space, actions):
    return
  for index, action in enumerate(actions):
    if not space.contains(action):
      raise ValueError(
        f'Invalid action at index {index}: {action} is not in {space}.'
      )


def _all_in_box(space, actions):
  """Whether the whole batch lies in a box; cheap compared to `contains`."""
  return (
    isinstance(actions, np.ndarray)
    and hasattr(space, 'low')
    and np.can_cast(actions.dtype, space.dtype)
    and actions.shape[1:] == space.shape
    # Comparisons with NaN are false.
    and bool(((actions >= space.low) & (actions <= space.high)).all())
  )
