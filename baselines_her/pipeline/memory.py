"""Replay of entire episodes as a memory of the pipeline."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from agents.pipeline import session as session_lib
from agents.pipeline.base import MemoryBase
from agents.run import errors, references
from baselines_her import config, replay_buffer
from baselines_her.settings import Settings


@references.nameable
class HERMemory(MemoryBase):
  """Stores episodes, not steps, in a `ReplayBuffer`; holds the task.

  Args:
    session: Session that the memory belongs to.
    mode: Mode of the explorer that fills it.
    env: Dict of the `name` and the `seed` of the environment.
    settings: Values of `Settings` by name; without `clip_pos_returns`, the
      environment decides it.
    sampler: Function from the reward function to a function that samples
      transitions, see `baselines_her.her_sampler`; by default according to the
      settings.

  Attributes:
    env: The given dict.
    settings: Complete `Settings` of the task, also for agent and explorers.
    task: `config.Task`.
    buffer: The `ReplayBuffer`.
    last_episodes: Newest stored episodes, arrays [episodes, time, size].

  Raises:
    UsageError: If a setting is unknown, or the environment does not fit.
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
    values = Settings.make(env['name'], settings)
    self.env = env
    self.task = config.Task(env['name'])
    if 'clip_pos_returns' not in settings:
      values = Settings.make(env['name'], {**settings, **self.task.usual})
    self.settings = values.complete(
      self.task.time_limit, values.rollout_batch_size
    )
    for note in self.task.notes(self.settings):
      session.logger.warn(note)
    draw = (
      sampler(self.task.reward_fun)
      if sampler
      else self.task.make_sampler(self.settings)
    )
    self.buffer = replay_buffer.create(self.settings, self.task.dims, draw)
    self.last_episodes: Mapping[str, np.ndarray] = {}

  def store(self, chunk: Mapping[str, np.ndarray]) -> None:
    """Store the episodes of `HERExplorer.update`."""
    self.last_episodes = chunk
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
