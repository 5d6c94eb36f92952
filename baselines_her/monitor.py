"""Returns and lengths of episodes in a file, as baselines writes them."""

import json
import os
import time

from agents.tools import files


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
    self._began = time.time()
    self._return, self._length = 0.0, 0
    self._path = filename and filename.removesuffix(self.EXT) + self.EXT
    if self._path and not os.path.exists(self._path):
      header = {'t_start': self._began, 'env_id': env.spec.id}
      with files.atomic_write(self._path) as file_:
        file_.write(f'# {json.dumps(header)}\nr,l,t\n')

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
      row = {
        'r': round(self._return, 6),
        'l': self._length,
        't': round(time.time() - self._began, 6),
      }
      info = dict(info, episode=row)
      if self._path:
        with open(self._path, 'a') as file_:
          file_.write('{r},{l},{t}\n'.format(**row))
    return obs, reward, done, info
