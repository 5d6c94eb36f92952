"""Several environments of one kind that step together."""

from collections.abc import Sequence
from typing import Any

import numpy as np


class BatchEnv:
  """Combine environments to step them in a batch.

  Attributes that this class lacks are those of the first environment.

  Args:
    envs: List of environments with equal spaces.
    blocking: Call one environment after another. Otherwise their `step` and
      `reset` take `blocking=False` and return promises; all are started
      before the first result is collected.

  Raises:
    ValueError: If the spaces of the environments differ.
  """

  def __init__(self, envs: Sequence[Any], blocking: bool):
    self._envs = envs
    self._blocking = blocking
    self._action_space = envs[0].action_space
    observ_space = envs[0].observation_space
    if not all(env.observation_space == observ_space for env in envs):
      raise ValueError('All environments must use the same observation space.')
    if not all(env.action_space == self._action_space for env in envs):
      raise ValueError('All environments must use the same action space.')

  def __len__(self) -> int:
    return len(self._envs)

  def __getitem__(self, index: Any) -> Any:
    return self._envs[index]

  def __getattr__(self, name: str) -> Any:
    if name.startswith('_'):
      raise AttributeError(name)
    return getattr(self._envs[0], name)

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
    check_actions(self._action_space, actions)
    if self._blocking:
      transitions = [
        env.step(action) for env, action in zip(self._envs, actions)
      ]
    else:
      promises = [
        env.step(action, blocking=False)
        for env, action in zip(self._envs, actions)
      ]
      transitions = [promise() for promise in promises]
    return stack_transitions(transitions)

  def reset(
    self, indices: Sequence[int] | np.ndarray | None = None
  ) -> np.ndarray:
    """Reset environments and return their first observations.

    Args:
      indices: Which environments to reset; all by default.

    Returns:
      Observations of these environments, [len(indices), ...].
    """
    if indices is None:
      indices = range(len(self._envs))
    envs = [self._envs[int(index)] for index in indices]
    if self._blocking:
      observs = [env.reset() for env in envs]
    else:
      promises = [env.reset(blocking=False) for env in envs]
      observs = [promise() for promise in promises]
    return np.stack(observs)

  def close(self) -> None:
    """Close the environments that can be closed."""
    for env in self._envs:
      if hasattr(env, 'close'):
        env.close()


def stack_transitions(transitions: Sequence[tuple]) -> tuple:
  """Stack the (observation, reward, done, info) tuples of a batch."""
  observs, rewards, dones, infos = zip(*transitions)
  observ = np.stack(observs)
  reward = np.array(rewards, np.float32)
  done = np.array(dones, bool)
  return observ, reward, done, tuple(infos)


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
  if not (isinstance(actions, np.ndarray) and hasattr(space, 'low')):
    return False
  if not np.can_cast(actions.dtype, space.dtype):
    return False
  if actions.shape[1:] != space.shape:
    return False
  # Comparisons with NaN are false.
  return bool(((actions >= space.low) & (actions <= space.high)).all())
