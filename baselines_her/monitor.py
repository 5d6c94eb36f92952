"""Log files of returns and lengths of episodes, under baselines' name."""

import glob
import json
import os
from typing import Any

from agents.envs import episode_log
from agents.envs.episode_log import begin_anew as begin_anew
from agents.run import errors


class Monitor(episode_log.Monitor):
  """Log finished episodes, with the arguments of baselines.

  Trainings use the base class, which keeps no lists.

  Args:
    env: Environment, such as `baselines_her.envs.make` returns.
    filename: Path without the suffix `.monitor.csv`, or a folder; None for no
      file.
    allow_early_resets: Whether an episode may be reset before its end.
    reset_keywords: Arguments of `reset` that are further columns.
    info_keywords: Entries of the last info that are further columns.

  Raises:
    UsageError: If the file has no header, or other columns.
  """

  def __init__(
    self,
    env: Any,
    filename: str | None,
    allow_early_resets: bool = False,
    reset_keywords: tuple[str, ...] = (),
    info_keywords: tuple[str, ...] = (),
  ):
    if filename and os.path.isdir(filename):
      filename = os.path.join(filename, self.EXT)
    columns = (*reset_keywords, *info_keywords)
    super().__init__(env, filename, columns=columns)
    self._reset_keywords, self._info_keywords = reset_keywords, info_keywords
    self._given: dict[str, Any] = {}
    self._may_reset_early = allow_early_resets
    self._rows: list[dict[str, Any]] = []
    self._total_steps, self._is_over = 0, True

  def reset(self, **kwargs: Any) -> Any:
    """Reset the environment.

    Args:
      **kwargs: Arguments of the environment.

    Raises:
      RuntimeError: If the episode has not ended, unless that is allowed.
      UsageError: If a reset keyword is missing.
    """
    if not (self._is_over or self._may_reset_early):
      raise RuntimeError(
        'The episode has not ended; pass allow_early_resets=True to reset it.'
      )
    missing = [x for x in self._reset_keywords if kwargs.get(x) is None]
    if missing:
      raise errors.UsageError(
        f'reset() lacks {", ".join(missing)}; pass all reset_keywords.'
      )
    self._given = {x: kwargs[x] for x in self._reset_keywords}
    self._is_over = False
    return super().reset(**kwargs)

  def step(self, action: Any) -> tuple:
    """Step the environment.

    Raises:
      RuntimeError: If the episode has not begun or is over.
      UsageError: If an entry of `info_keywords` is missing.
    """
    if self._is_over:
      raise RuntimeError('The episode is over; call reset() first.')
    obs, reward, done, info = super().step(action)
    self._total_steps += 1
    if done:
      self._is_over = True
      self._rows.append(info['episode'])
    return obs, reward, done, info

  def find_further(self, info: dict[str, Any]) -> dict[str, Any]:
    missing = [x for x in self._info_keywords if x not in info]
    if missing:
      raise errors.UsageError(
        f'The last info of an episode has no {", ".join(missing)}, only '
        f'{sorted(info)}; leave it out of info_keywords.'
      )
    return {**self._given, **{x: info[x] for x in self._info_keywords}}

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


class LoadMonitorResultsError(Exception):
  """A folder has no files of episodes."""


def get_monitor_files(dir: str) -> list[str]:
  """Return the files of episodes in a folder."""
  return sorted(glob.glob(os.path.join(glob.escape(dir), '*monitor.csv')))


def load_results(dir: str) -> Any:
  """Return the episodes of all files in a folder, in the order of their end.

  Needs pandas.

  Args:
    dir: Folder.

  Returns:
    Data frame with a row per episode, `t` in seconds since the first start, and
    the attribute `headers`, a list with a dict per file.

  Raises:
    LoadMonitorResultsError: If there are no files.
  """
  import pandas

  paths, frames, headers = get_monitor_files(dir), [], []
  if not paths:
    raise LoadMonitorResultsError(
      f'Folder {dir} has no files *monitor.csv; choose that of a training.'
    )
  for path in paths:
    with open(path) as file_:
      headers.append(json.loads(file_.readline().removeprefix('#')))
      frames.append(pandas.read_csv(file_))
    frames[-1]['t'] += headers[-1]['t_start']
  frame = pandas.concat(frames).sort_values('t').reset_index()
  frame['t'] -= min(x['t_start'] for x in headers)
  frame.attrs['headers'] = headers
  return frame
