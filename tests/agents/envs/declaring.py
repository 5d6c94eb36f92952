"""Environment of gymnasium that declares settings, by its id in this module."""

from typing import ClassVar

import gymnasium
import numpy as np

from agents.envs import declared
from agents.run import errors, schema

DRIFT = 'tests.agents.envs.declaring:Drift-v0'


class Settings(declared.EnvSettings):
  told: ClassVar = ('action_repeat', 'initial', 'logdir')
  chosen: ClassVar = ('side',)

  wind: schema.Amount = schema.setting(1.0, 'speed', fixed='it is the weather')
  side: str = schema.setting('any', 'left or right')
  places: list[int] = schema.setting([0], 'where episodes start')
  image_size: schema.Positive = schema.setting(32, 'pixels')
  max_length: schema.Positive = schema.setting(20, 'steps')

  @classmethod
  def split(cls, settings):
    if settings['wind'] > 9:
      raise errors.UsageError('There is too much wind.')
    places = settings['places']
    ends = [f'_{x}' for x in places] if len(places) > 1 else ['']
    return {x: {**settings, 'places': [y]} for x, y in zip(ends, places)}

  @classmethod
  def begin(cls, settings, before, num_envs):
    side = settings['side']
    side = before.get('side', f'{num_envs} times') if side == 'any' else side
    return {**settings, 'side': side}


class Drift(gymnasium.Env):
  """Twenty steps by default; observations are what it was told.

  Actions are not those that it is given, before the training.
  """

  Settings = Settings
  metadata = {'render_modes': ['rgb_array']}
  action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
  observation_space = gymnasium.spaces.Box(-99, 99, (4,), np.float32)
  normalized_actions = True
  image_channels = 1
  seconds_to_close = 2.5
  overview = np.zeros([9, 9, 3], np.uint8)

  def __init__(
    self,
    render_mode=None,
    action_repeat=1,
    initial=False,
    logdir=None,
    wind=1.0,
    side='any',
    places=(0,),
    image_size=32,
    max_length=20,
  ):
    self.render_mode = render_mode
    self._size, self._length = image_size, max_length
    self._initial, self._repeat, self.logdir = initial, action_repeat, logdir
    self._observ = np.array([wind, places[0], initial, action_repeat], 'f4')

  def reset(self, seed=None, options=None):
    super().reset(seed=seed)
    self._step = 0
    return self._observ, {}

  def step(self, action):
    self._step += self._repeat
    applied = {'applied_action': np.float32([0.5])} if self._initial else {}
    info = {'caption': f'{float(action[0]):.1f}', **applied}
    return self._observ, 1.0, False, self._step >= self._length, info

  def render(self):
    return np.full([self._size, self._size, 1], 7, np.uint8)


gymnasium.register('Drift-v0', f'{__name__}:Drift')
