"""Environments that follow a script.

Workers import this module, so it has to stay free of TensorFlow.
"""

import os
import sys
import threading
import time
import types

import gymnasium
import numpy as np

from agents.envs import spaces
from agents.run import errors


class ScriptedEnv:
  """Tells the time t; everything else is given.

  Args:
    length: Number of steps per episode.
    rewards: Rewards of the steps; zero after the last one.
    low: Lower bounds of the actions.
    high: Upper bounds of the actions.
    observe: Function from t to an observation, `{'state': [t, t / 2]}` by
      default.
    space: Observation space.
    image_dtype: Type of rendered images [6, 8, 3], which are the bytes
      (7 i + 13 t) mod 256 of the flattened index i, or these over 255.

  Attributes:
    actions: List of all actions so far.
    magic: Some text to ask for.
  """

  magic = 'hello'

  def __init__(
    self,
    length=7,
    rewards=(),
    low=(-1,),
    high=(1,),
    observe=None,
    space=None,
    image_dtype=np.uint8,
  ):
    self.length = length
    self.rewards = list(rewards)
    self.actions = []
    self.t = None
    self.action_space = spaces.box(low, high)
    self.observation_space = space or spaces.dictionary(
      {'state': spaces.box([-np.inf] * 2, [np.inf] * 2)}
    )
    self._observe = observe or (lambda t: {'state': np.array([t, t / 2])})
    self._image_dtype = np.dtype(image_dtype)

  def reset(self):
    self.t = 0
    return self._observe(self.t)

  def step(self, action):
    self.actions.append(np.array(action))
    self.t += 1
    reward = (self.rewards + [0.0] * self.t)[self.t - 1]
    done = self.t >= self.length
    return self._observe(self.t), reward, done, {'t': self.t}

  def render(self, *unused_args, **unused_kwargs):
    image = (np.arange(6 * 8 * 3) * 7 + 13 * self.t) % 256
    if self._image_dtype.kind == 'f':
      image = image / 255.0
    return image.reshape(6, 8, 3).astype(self._image_dtype)


class VectorEnv(ScriptedEnv):
  """Observes [t, 2]; for processes, which it tells about.

  Args:
    length: Number of steps per episode.
    crash_at: Step that fails with a RuntimeError.
    **kwargs: Passed on.
  """

  def __init__(self, length=3, crash_at=None, **kwargs):
    super().__init__(
      length,
      observe=lambda t: np.array([t, 2], np.float32),
      space=spaces.box([-1, -1], [1, 1]),
      **kwargs,
    )
    self._crash_at = crash_at

  @property
  def pid(self):
    return os.getpid()

  @property
  def thread(self):
    return threading.get_ident()

  @property
  def has_tensorflow(self):
    return 'tensorflow' in sys.modules

  def step(self, action):
    if self.t + 1 == self._crash_at:
      raise RuntimeError('boom in step')
    return super().step(action)


class ChoiceEnv(VectorEnv):
  """Choice among -1, 0 and 1; the observation tells which."""

  def __init__(self):
    super().__init__()
    self.action_space = gymnasium.spaces.Discrete(3, start=-1)

  def step(self, action):
    _, *rest = super().step(action)
    return np.float32([self.t, action]), *rest


class SlowToClose(ScriptedEnv):
  """Environment that needs four seconds to close, and writes a file then."""

  seconds_to_close = 6.0
  pid = property(lambda self: os.getpid())

  def __init__(self, filename):
    super().__init__()
    self._filename = filename

  def close(self):
    time.sleep(4)
    with open(self._filename, 'w') as file_:
      file_.write('closed')


class SlowEnv(VectorEnv):
  """Needs a minute for a step."""

  def step(self, action):
    time.sleep(60)


class EchoEnv(VectorEnv):
  """Observes the time and what the last action was; actions have size two."""

  def __init__(self, length=3):
    super().__init__(length, low=[-1, -1], high=[1, 1])
    self.observation_space = spaces.box([-9] * 3, [9] * 3)
    self._observe = lambda t: np.array(
      [t, *(self.actions[-1] if t else (0, 0))], np.float32
    )

  def step(self, action):
    observ, _, done, info = super().step(action)
    return observ, float(np.sum(action)), done, info


class TalkingEnv(VectorEnv):
  """Prints, as libraries do."""

  def reset(self):
    print('words of an environment', flush=True)
    return super().reset()


def fail_to_construct():
  raise ValueError('broken constructor')


def refuse_to_construct(kind=errors.UsageError):
  raise kind('Install something first.')


class BytesEnv(ScriptedEnv):
  """Observes the bytes 0, 200 and 255."""

  def __init__(self):
    space = spaces.box([0] * 3, [255] * 3, np.uint8)
    super().__init__(observe=self._bytes, space=space)

  def _bytes(self, unused_t):
    return np.array([0, 200, 255], np.uint8)


class CountingImageEnv:
  """Tiny images that tell time and episode.

  Channel c is (7 t (c + 1) + 31 episode) mod 256; the reward of a step is
  a0 (t + 1) + a1 / 2 with t counted after it.
  """

  def __init__(self, length):
    self.observation_space = spaces.box(
      np.zeros((4, 4, 3)), np.full((4, 4, 3), 255), np.uint8
    )
    self.action_space = spaces.box([-1, -1], [1, 1])
    self._length = length
    self._t = None
    self._episode = -1

  def reset(self):
    self._t = 0
    self._episode += 1
    return self._observe()

  def step(self, action):
    self._t += 1
    reward = np.float32(action[0] * (self._t + 1) + 0.5 * action[1])
    return self._observe(), reward, self._t >= self._length, {}

  def _observe(self):
    pixel = 7 * self._t * np.arange(1, 4) + 31 * self._episode
    return np.tile(pixel % 256, (4, 4, 1)).astype(np.uint8)


class ReplayEnv:
  """Replays recorded steps in a circle; resets take one as well.

  Args:
    data: Recorded `obs`, `reward`, and bounds of both spaces.
    done: Recorded flags.

  Attributes:
    actions: List of all actions so far.
    resets: Number of resets.
    accesses: How often the spaces were asked for.
  """

  def __init__(self, data, done):
    self.actions, self.resets, self.accesses = [], 0, 0
    self._data, self._done, self._time = data, done, -1
    self._spaces = {
      name: spaces.box(data[name + '_low'], data[name + '_high'])
      for name in ('observ', 'action')
    }

  @property
  def observation_space(self):
    self.accesses += 1
    return self._spaces['observ']

  @property
  def action_space(self):
    self.accesses += 1
    return self._spaces['action']

  def reset(self):
    self.resets += 1
    self._time += 1
    return self._data['obs'][self._time % len(self._done)]

  def step(self, action):
    self.actions.append(np.array(action))
    self._time += 1
    index = self._time % len(self._done)
    reward = float(self._data['reward'][index])
    return self._data['obs'][index], reward, bool(self._done[index]), {}


class FakeSuiteEnv:
  """What `DeepMindWrapper` touches of an environment of the suite."""

  def __init__(self):
    self.physics = types.SimpleNamespace(
      render=lambda height, width, camera_id: np.zeros(
        (height, width, 3), np.uint8
      )
    )

  def action_spec(self):
    return types.SimpleNamespace(
      minimum=np.array([-1.0]), maximum=np.array([1.0]), shape=(1,)
    )

  def observation_spec(self):
    sizes = {'position': 3, 'velocity': 2}
    return {k: types.SimpleNamespace(shape=(v,)) for k, v in sizes.items()}

  def reset(self):
    return self._time_step(None, None)

  def step(self, unused_action):
    return self._time_step(0.5, 1.0)

  def _time_step(self, reward, discount):
    return types.SimpleNamespace(
      observation={'position': np.ones(3), 'velocity': np.zeros(2)},
      reward=reward,
      discount=discount,
      last=lambda: False,
    )


class LoadedModules:
  """Tells which modules are loaded in the process of an environment.

  Args:
    env_ctor: Function without arguments that returns an environment.
  """

  def __init__(self, env_ctor):
    env_ctor().reset()
    self.names = sorted(x for x in sys.modules if '.' not in x)
