"""Returns and lengths of episodes in a file, as baselines writes them."""

import os

from agents.envs import episode_log


class Monitor:
  """Write a row per finished episode, and put it in the info of its last step.

  A file that exists is continued. Episodes that are reset early leave no row.

  Args:
    env: Environment.
    filename: Path without the ending `.monitor.csv`; None for no file.
  """

  EXT = '.monitor.csv'

  def __init__(self, env, filename=None):
    self._env = env
    self._return, self._length = 0.0, 0
    path = filename and filename.removesuffix(self.EXT) + self.EXT
    self._log = episode_log.EpisodeLog(path, env.spec.id)

  def __getattr__(self, name):
    if name == '_env' or name.startswith('__'):
      raise AttributeError(name)
    return getattr(self._env, name)

  def reset(self):
    self._return, self._length = 0.0, 0
    return self._env.reset()

  def step(self, action):
    obs, reward, done, info = self._env.step(action)
    self._return += float(reward)
    self._length += 1
    if done:
      row = self._log.write(self._return, self._length)
      info = dict(info, episode=row)
    return obs, reward, done, info

  def get_state(self) -> dict:
    """State of the environment, and how many rows belong to it."""
    return {'env': self._env.get_state(), 'episodes': self._log.episodes}

  def set_state(self, state: dict) -> None:
    """Undo `get_state`; rows of episodes since then are removed."""
    if 'episodes' not in state:  # Written before rows were counted.
      self._env.set_state(state)
      return
    self._env.set_state(state['env'])
    self._log.truncate(state['episodes'])


def begin_anew(folder: str, rank: int) -> None:
  """Remove the files of a rank, for a training that begins anew.

  Otherwise it would add to the episodes of one that ended before its first
  checkpoint.
  """
  for name in os.listdir(folder):
    if name.startswith(f'{rank}.') and name.endswith(Monitor.EXT):
      os.remove(os.path.join(folder, name))
