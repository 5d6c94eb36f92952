"""Replay of entire episodes as a memory of the pipeline."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from agents.pipeline import session as session_lib
from agents.pipeline.base import MemoryBase
from agents.run import errors, references
from baselines_her import replay_buffer
from baselines_her.pipeline.task import Task


@references.nameable
class HERMemory(MemoryBase):
  """Stores episodes, not steps, in a `ReplayBuffer`.

  The first part of a session with HER, which creates the `Task` of all parts.

  Args:
    session: Session that the memory belongs to.
    mode: Mode of the explorer that fills it.
    env: See `Task`.
    settings: See `Task`.
    sampler: Function from the reward function to a function that samples
      transitions, see `baselines_her.her_sampler`; by default according to the
      settings.

  Attributes:
    task: The `Task`.
    buffer: The `ReplayBuffer`.

  Raises:
    UsageError: See `Task`.
  """

  def __init__(
    self,
    session: session_lib.Session,
    mode: str = 'train',
    *,
    env: dict[str, Any],
    settings: dict[str, Any],
    sampler: Callable[..., replay_buffer.Sampler] | None = None,
  ):
    super().__init__(session, mode)
    self.task = Task(session, env, settings)
    values = self.task.settings
    draw = (
      sampler(self.task.reward_fun)
      if sampler
      else self.task.make_sampler(values)
    )
    self.buffer = replay_buffer.create(values, self.task.dims, draw)

  def store(self, chunk: Mapping[str, np.ndarray]) -> None:
    """Store the episodes of `HERExplorer.update`."""
    self.task.episodes = chunk
    self.buffer.store_episode(chunk)

  @property
  def length(self) -> int:
    """Number of stored episodes."""
    return self.buffer.current_size

  def state_dict(self) -> dict[str, Any]:
    return self.buffer.state_dict()

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    if len(state['u']) > self.buffer.size:
      raise errors.UsageError(
        f'The stored memory has {len(state["u"])} episodes, but this one has '
        f'room for {self.buffer.size}; use the original buffer_size.'
      )
    self.buffer.load_state_dict(state)
