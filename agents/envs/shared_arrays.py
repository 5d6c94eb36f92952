"""Arrays for the data of a batch of environments, shared by processes."""

import dataclasses
from multiprocessing import shared_memory
from typing import Any

import numpy as np

from agents.envs import spaces


@dataclasses.dataclass
class Arrays:
  """Actions that go to the environments, and what comes back.

  Shared ones can be sent to other processes, which see the same memory.

  Attributes:
    action: Array [N, size], float32 or the floats of the action space; int32
      [N] if actions are discrete.
    observ: Array [N, ...] of the type of the environments.
    reward: Float64 array [N].
    done: Bool array [N].
    description: What another process needs to attach to them, None if they
      are not shared.
  """

  action: np.ndarray
  observ: np.ndarray
  reward: np.ndarray
  done: np.ndarray
  description: Any = None
  _block: Any = None
  _owner: bool = False

  @classmethod
  def allocate(
    cls,
    count: int,
    observ: np.ndarray,
    action_space: Any,
    shared: bool = False,
  ) -> 'Arrays':
    """Create arrays for a number of environments.

    Args:
      count: Number of environments.
      observ: An observation, for its shape and type.
      action_space: Space of the actions.
      shared: Whether other processes should be able to attach to them.
    """
    dtype = np.dtype(action_space.dtype)
    if spaces.is_discrete(action_space):
      dtype = np.dtype(np.int32)
    else:
      dtype = np.result_type(dtype if dtype.kind == 'f' else 'f4', 'f4')
    layout = [
      ('action', (count,) + action_space.shape, dtype.str),
      ('observ', (count,) + observ.shape, observ.dtype.str),
      ('reward', (count,), np.dtype(np.float64).str),
      ('done', (count,), np.dtype(bool).str),
    ]
    if not shared:
      arrays: dict[str, Any] = {
        name: np.zeros(shape, dtype) for name, shape, dtype in layout
      }
      return cls(**arrays)
    size = sum(_size(shape, dtype) for _, shape, dtype in layout)
    block = shared_memory.SharedMemory(create=True, size=size)
    description = (block.name, layout)
    return cls(
      **_views(block, layout),
      description=description,
      _block=block,
      _owner=True,
    )

  @classmethod
  def attach(cls, description: Any) -> 'Arrays':
    """Find the arrays of another process by their description."""
    name, layout = description
    block = shared_memory.SharedMemory(name=name)
    return cls(**_views(block, layout), description=description, _block=block)

  def __reduce__(self):
    if not self.description:
      raise TypeError('Arrays that are not shared stay in their process.')
    return type(self).attach, (self.description,)

  def close(self) -> None:
    """Detach; whoever created shared arrays removes them, too."""
    # The memory can be released once nothing points to it.
    self.action = self.observ = self.reward = self.done = np.empty(0)
    if self._block:
      self._block.close()
      if self._owner:
        self._block.unlink()
      self._block = None


def _size(shape, dtype):
  """Bytes of an array, rounded up to whole cache lines."""
  size = int(np.prod(shape)) * np.dtype(dtype).itemsize
  return -(-size // 64) * 64


def _views(block, layout):
  views, offset = {}, 0
  for name, shape, dtype in layout:
    views[name] = np.ndarray(shape, dtype, block.buf, offset)
    offset += _size(shape, dtype)
  return views
