"""Environments that do what they must not, for `--env=<this module>:<id>`."""

import gymnasium
import numpy as np

from agents.envs.contract import GOAL_KEYS as KEYS

LIMIT = 5


class Odd(gymnasium.Env):
  """Goal environment with one oddity.

  Args:
    oddity: What is wrong, a name of `ODDITIES` or nothing.
    render_mode: Mode of `render`, which returns None.
  """

  observation_space = gymnasium.spaces.Dict(
    {key: gymnasium.spaces.Box(-1, 1, (2,), np.float64) for key in KEYS}
  )
  action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

  def __init__(self, oddity='', render_mode=None):
    if oddity == 'Broken':
      raise KeyError('no such robot')
    self.oddity = oddity
    self.render_mode = render_mode
    self.time = 0
    self.success = np.zeros(1)

  def reset(self, seed=None, options=None):
    super().reset(seed=seed)
    self.time = 0
    self.success[:] = 0
    return self._observe(), {}

  def step(self, action):
    self.time += 1
    done = self.oddity == 'Early' and self.time == 3
    info = {} if self.oddity == 'Mute' else {'is_success': 0.0}
    if self.oddity == 'Talking':
      info = {'is_success': np.zeros(1), 'phase': 'reach', 'more': {'a': 1}}
    if self.oddity == 'NaNSuccess':
      info = {'is_success': np.nan}
    if self.oddity == 'Silent' and self.time == 2:
      info = {}
    if self.oddity == 'Late':
      info = {'is_success': 1.0} if self.time == LIMIT else {}
    if self.oddity == 'Reusing':
      done, info = self.time == 3, {'is_success': self.success}
      self.success[:] = 1
    if self.oddity == 'Raising' and self.time == 2:
      raise ValueError('the arm is stuck')
    if self.oddity == 'Leaving' and self.time == 2:
      raise SystemExit(0)
    reward = np.nan if self.oddity == 'NaNStep' and self.time == 3 else -1.0
    return self._observe(), reward, done, False, info

  def compute_reward(self, achieved, desired, info):
    reward = -1 - np.linalg.norm(achieved - desired, axis=-1)
    # Only batches of the replay are that large.
    if self.oddity == 'Shrinking' and np.size(reward) > 3:
      return reward[:-1]
    return {'Sign': -reward, 'NaNReward': reward * np.nan}.get(
      self.oddity, reward
    )

  def render(self):
    return None

  def _observe(self):
    obs = {key: np.zeros(2) for key in KEYS}
    if self.oddity == 'NaN' and self.time == 2:
      obs['observation'][1] = np.nan
    if self.oddity == 'NaNGoal':
      obs['desired_goal'][1] = np.nan
    if self.oddity == 'Growing' and self.time == 2:
      obs['observation'] = np.zeros(3)
    if self.oddity == 'Losing' and self.time == 2:
      del obs['achieved_goal']
    return obs


class Blind(Odd):
  """Takes no argument for rendering."""

  def __init__(self):
    super().__init__()


ODDITIES = """
  Fine Broken Early NaN NaNGoal NaNStep NaNSuccess Growing Sign NaNReward Mute
  Reusing Talking Silent Late Raising Leaving Losing Shrinking
""".split()
for _name in ODDITIES:
  gymnasium.register(
    f'{_name}-v0', Odd, max_episode_steps=LIMIT, kwargs={'oddity': _name}
  )
gymnasium.register('Blind-v0', Blind, max_episode_steps=LIMIT)
gymnasium.register('Endless-v0', Odd, kwargs={'oddity': 'Fine'})
