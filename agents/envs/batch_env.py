"""Batches of environments, stepped in this process or in others."""

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from agents.envs import vector, wrappers


class VectorEnv(vector.Vector):
  """Environments in this thread, or spread over processes or threads.

  Indexing returns an environment; attributes that this class lacks are those
  of the first environment.

  Args:
    constructors: Functions that create the environments.
    num_workers: Number of processes, at most one per environment; 0 for this
      process, None for one per core.
    strategy: `process` or `thread`.

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
      actions: Array [N, ...] with one action per environment; those of a box
        may have another dtype of its kind, such as float64.

    Returns:
      Tuple of observations [N, ...], rewards float32 [N], done flags bool
      [N], and a tuple of N info dictionaries.

    Raises:
      ValueError: If an action is not in the action space.
    """
    check_actions(self.action_space, actions)
    return vector.join_transitions(self.call('step', actions))


class _Promising(vector.Group):
  """Environments that step in parallel."""

  def step(self, actions):
    steps = [x.step(y, blocking=False) for x, y in zip(self.envs, actions)]
    return vector.stack_transitions([step() for step in steps])

  def reset(self, rows):
    resets = [self.envs[row].reset(blocking=False) for row in rows]
    return vector.stack([reset() for reset in resets])


class BatchEnv(VectorEnv):
  """Combine environments to step them in a batch.

  Args:
    envs: List of environments with equal spaces; those of gymnasium and gym
      are adapted.
    blocking: Whether to step one environment after another. Otherwise `step`
      and `reset` of the environments are called with `blocking=False` and
      return promises; all start before the first result is collected.
  """

  def __init__(self, envs: Sequence[Any], blocking: bool):
    self.group = vector.Group if blocking else _Promising
    super().__init__([functools.partial(wrappers.adapted, x) for x in envs])


def check_actions(space: Any, actions: np.ndarray) -> None:
  """Check that each action of a batch is in a space.

  Raises:
    ValueError: Names the index and the action that is not.
  """
  if _all_in_box(space, actions):
    return
  for index, action in enumerate(actions):
    # Boxes of current gym refuse float64, those of the original's time did not.
    row = np.asarray(action)[None] if hasattr(space, 'low') else action
    if not (_all_in_box(space, row) or space.contains(action)):
      raise ValueError(
        f'Invalid action at index {index}: {action} is not in {space}.'
      )


def _all_in_box(space, actions):
  """Whether the whole batch lies in a box; cheap compared to `contains`."""
  return (
    isinstance(actions, np.ndarray)
    and hasattr(space, 'low')
    and np.can_cast(actions.dtype, space.dtype, 'same_kind')
    and actions.shape[1:] == space.shape
    # Comparisons with NaN are false.
    and bool(((actions >= space.low) & (actions <= space.high)).all())
  )
