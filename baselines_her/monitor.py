"""Log files of returns and lengths of episodes, under baselines' name."""

from typing import Any

from agents.envs import episode_log
from agents.envs.episode_log import begin_anew as begin_anew
from agents.run import errors


class Monitor(episode_log.Monitor):
  """Log finished episodes, with the arguments of baselines.

  Trainings use the base class, which keeps no lists.

  Args:
    env: Environment, such as `baselines_her.envs.make` returns.
    filename: Path without the suffix `.monitor.csv`; None for no file.
    allow_early_resets: Whether an episode may be reset before its end.
    reset_keywords: Further columns, which do not exist here.
    info_keywords: Further columns, which do not exist here.

  Raises:
    UsageError: If there are further columns, or the file has no header.
  """

  def __init__(
    self,
    env: Any,
    filename: str | None,
    allow_early_resets: bool = False,
    reset_keywords: tuple[str, ...] = (),
    info_keywords: tuple[str, ...] = (),
  ):
    if reset_keywords or info_keywords:
      raise errors.UsageError(
        'Monitor writes the columns r, l and t only; omit reset_keywords and '
        'info_keywords.'
      )
    super().__init__(env, filename)
    self._may_reset_early = allow_early_resets
    self._rows: list[dict[str, Any]] = []
    self._total_steps, self._is_over = 0, True

  def reset(self) -> Any:
    """Reset the environment.

    Raises:
      RuntimeError: If the episode has not ended, unless that is allowed.
    """
    if not (self._is_over or self._may_reset_early):
      raise RuntimeError(
        'The episode has not ended; pass allow_early_resets=True to reset it.'
      )
    self._is_over = False
    return super().reset()

  def step(self, action: Any) -> tuple:
    obs, reward, done, info = super().step(action)
    self._total_steps += 1
    if done:
      self._is_over = True
      self._rows.append(info['episode'])
    return obs, reward, done, info

  def get_total_steps(self) -> int:
    """Return the number of steps of all episodes."""
    return self._total_steps

  def get_episode_rewards(self) -> list[float]:
    """Return the returns of finished episodes."""
    return [x['r'] for x in self._rows]

  def get_episode_lengths(self) -> list[int]:
    """Return the numbers of steps of finished episodes."""
    return [x['l'] for x in self._rows]

  def get_episode_times(self) -> list[float]:
    """Return the seconds at which episodes have ended."""
    return [x['t'] for x in self._rows]
