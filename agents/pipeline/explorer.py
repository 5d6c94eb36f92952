"""What every explorer of the pipeline offers, and how it counts."""

from collections.abc import Mapping
from typing import Any

import numpy as np


class ExplorerBase:
  """Lets agents act in environments and returns what happened.

  Args:
    session: Session that the explorer runs in.
    agents: Dict from name to agent.
    mode: One of `train`, `test` and `eval`.
    win_size: Number of episodes that the monitor combines into one line; -1
      for all episodes of an epoch.

  Attributes:
    steps: Number of steps of all workers together.
    timesteps: Number of frames, which are steps times workers.
    n_episode: Number of finished episodes.
  """

  def __init__(
    self,
    session: Any,
    agents: Mapping[str, Any],
    mode: str = 'train',
    win_size: int = 10,
  ) -> None:
    self.session = session
    self.agents = agents
    self.mode = mode
    self.win_size = win_size
    self.steps = 0
    self.timesteps = 0
    self.n_episode = 0

  def update(self) -> dict[str, np.ndarray]:
    """Explore, and return what has happened.

    Returns:
      Flat dict from keys such as `/observations/agent`, `/masks`, `/rewards`
      and `/agents/<a>/actions` to arrays [workers, T + 1, ...]. The last
      index is a half-step that only observes.
    """
    raise NotImplementedError

  def reset(self) -> None:
    """Begin new episodes."""

  def close(self) -> None:
    """End the environments."""

  def export_normalizers(self) -> dict[str, Any]:
    """Return statistics that let another explorer see what this one sees."""
    return {}

  def import_normalizers(self, state: Mapping[str, Any]) -> None:
    """Take over what another explorer has exported."""

  def state_dict(self) -> dict[str, Any]:
    """Return a nested dict of plain data, bytes and arrays for a checkpoint."""
    return {
      'steps': self.steps,
      'timesteps': self.timesteps,
      'n_episode': self.n_episode,
    }

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Restore what `state_dict` has returned."""
    self.steps = int(state['steps'])
    self.timesteps = int(state['timesteps'])
    self.n_episode = int(state['n_episode'])
    self._set_meta()

  def _count_steps(self, steps, num_workers):
    """Note that each worker has made some steps."""
    self.steps += steps
    self.timesteps += steps * num_workers
    self._set_meta()

  def _report_episode(self, value):
    """Note that an episode has ended with some sum of rewards."""
    self.n_episode += 1
    self._set_meta()
    name = f'/reward/{self.mode}/episodic'
    self.session.monitor(name, value, self.win_size)
    self.session.writer.add_scalar(f'reward/{self.mode}', value, self.n_episode)

  def _set_meta(self):
    if self.mode == 'train':
      self.session.monitor.set_meta('frame', self.timesteps)
      self.session.monitor.set_meta('episode', self.n_episode)
