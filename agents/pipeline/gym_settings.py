"""What can be set of the explorer of environments of gymnasium."""

from typing import Any
from typing import Literal

import pydantic


class GymSettings(pydantic.BaseModel):
  """Settings of a `GymExplorer`, the arguments of its node in the tree.

  Attributes:
    env: Description of the environment, see `env_config.make`.
    num_workers: Number of environments.
    n_steps: Steps per update.
    n_episodes: Episodes per update, rounded up to the same number for each
      worker, as counting the first to finish prefers short ones.
    quota: Whether that is so; otherwise the update ends with the step in which
      the last of that many episodes has ended, no matter whose. The others go
      on in the next chunk.
    final_action: Whether agents act in the half-step, too.
    warm_start: Number of frames with actions at random.
    deterministic: Act without exploration; by default except in training.
    do_reset: Begin new episodes with each update; by default except in
      training.
    win_size: Episodes per line of the monitor; -1 for one line per epoch. By
      default 10 in training, and else the episodes of an update.
    seed: Seed of the first environment; the others count on. None for none.
    processes: Number of processes; 0 for the current one, None for one per
      core. By default the current one suffices a single environment that
      does not render with OpenGL.
    record: Make a video of each episode; by default in `eval`.
    normalize_observations: See `normalizers`.
    normalize_rewards: See `normalizers`.
    clip: Largest magnitude of what is normalised.
    gamma: Discount factor for the normalisation of rewards.
    extra_env_kwargs: Further arguments of the environment.
  """

  model_config = pydantic.ConfigDict(extra='forbid', frozen=True)

  env: dict[str, Any]
  num_workers: int = pydantic.Field(1, ge=1)
  n_steps: int | None = pydantic.Field(None, ge=0)
  n_episodes: int | None = pydantic.Field(None, ge=0)
  quota: bool = True
  final_action: bool = False
  warm_start: int = 0
  deterministic: bool | None = None
  do_reset: bool | None = None
  win_size: int | None = None
  seed: int | None = 0
  processes: int | Literal['auto'] | None = 'auto'
  record: bool | None = None
  normalize_observations: bool = False
  normalize_rewards: bool = False
  clip: float = 10.0
  gamma: float = 0.99
  extra_env_kwargs: dict[str, Any] | None = None

  def episodes_per_worker(self) -> int:
    """Return the share of each worker, 0 if there is none."""
    return -(-(self.n_episodes or 0) // self.num_workers) if self.quota else 0

  def find_window(self, mode: str) -> int:
    """Return the number of episodes per line of the monitor in a mode."""
    if self.win_size is not None:
      return self.win_size
    if mode == 'train':
      return 10
    return self.episodes_per_worker() * self.num_workers or -1

  def in_mode(self, mode: str) -> 'GymSettings':
    """Return settings whose defaults are those of a mode.

    Args:
      mode: One of `train`, `test` and `eval`.
    """
    defaults = {
      'deterministic': mode != 'train',
      'do_reset': mode != 'train',
      'record': mode == 'eval',
    }
    missing = {k: v for k, v in defaults.items() if getattr(self, k) is None}
    return self.model_copy(update=missing)
