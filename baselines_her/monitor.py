"""Returns and lengths of episodes in a file, as baselines writes them."""

from agents.tools import episode_log


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
