"""What the memory, the agent and the explorers of a session share."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from agents.envs import registry
from agents.pipeline import session as session_lib
from agents.run import messages
from baselines_her import config, envs, vec_env
from baselines_her.settings import Settings


class Task(config.Task):
  """Environment, settings and newest results of a session with HER.

  Args:
    session: Session of the task.
    env: Dict of the `name` and the `seed` of the environment.
    settings: Values of `Settings` by name; without `clip_pos_returns` or
      `max_u`, the environment decides them.

  Attributes:
    seed: Seed of the environments, or None.
    settings: Complete `Settings`.
    episodes: Newest training episodes, arrays [episodes, time, size].
    success_rate: Success rate in the test of this epoch, NaN without one.

  Raises:
    UsageError: If a setting is unknown, or the environment does not fit.
  """

  def __init__(
    self,
    session: session_lib.Session,
    env: Mapping[str, Any],
    settings: Mapping[str, Any],
  ):
    values = Settings.make(env['name'], settings)
    super().__init__(env['name'], values.T)
    own = {k: v for k, v in self.usual.items() if k not in settings}
    values = values.model_copy(update=own)
    self.settings = values.complete(self.time_limit, values.rollout_batch_size)
    self.seed: int | None = env['seed']
    self.episodes: Mapping[str, np.ndarray] = {}
    self.success_rate = np.nan
    self._session = session
    self._venv: vec_env.VecEnv | None = None
    for note in self.notes(self.settings):
      session.logger.warn(note)

  @property
  def venv(self) -> vec_env.VecEnv:
    """Environments that training and test share, created at the first use.

    The stand-alone training shares them, too, and its numbers depend on it.
    """
    if self._venv is None:
      self._venv = self.make_venv(self.settings.rollout_batch_size, self.seed)
    return self._venv

  def make_venv(self, num_envs: int, seed: int | None) -> vec_env.VecEnv:
    """Create environments."""
    self.tell_version()
    with messages.muted(registry.__name__):
      return vec_env.make_vec_env(
        self.name,
        'robotics',
        num_envs,
        seed,
        folder=self._session.folder('monitor'),
        time_limit=self.settings.T,
      )

  def tell_version(self) -> None:
    """Warn if the environment is of another version than its name."""
    used = envs.resolve(self.name)
    if used != self.name:
      self._session.logger.warn(
        f'{self.name} is no longer supported; using {used}.'
      )
