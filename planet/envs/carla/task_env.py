"""Driving as an environment of gymnasium."""

from typing import Any

import numpy as np

from agents.envs import adapters, wrappers
from agents.run import errors
from agents.tools.wrappers import ActionRepeat, LimitDuration
from planet.envs.carla import env as env_lib
from planet.envs.carla import policies
from planet.envs.carla import settings as settings_lib


class Driving(adapters.AsGymnasium):
  """Environment `planet.envs.carla:Driving-v0`; see docs/carla.md.

  Observations are the `state` of `CarlaEnv`, float32 vectors; actions are those
  of `CarlaEnv`. `render` returns the camera image. Episodes may be continued
  when they are terminated, until they are truncated.

  Args:
    render_mode: `rgb_array`, or None for no images.
    action_repeat: Number of simulator steps with the same action.
    initial: Whether to apply `random_throttle` and `expert`. The info then
      contains the `applied_action`, float32 [2].
    logdir: Folder of the run, where logs go by default.
    **given: Settings, see `Settings`.

  Attributes:
    image_channels: Number of channels of the images.
    seconds_to_close: Additional time that `close` may take.

  Raises:
    UsageError: If the settings are wrong or the world is not available.
  """

  Settings = settings_lib.Settings
  metadata = {'render_modes': ['rgb_array']}
  # Actions are those of agents, which need not be scaled.
  normalized_actions = True
  # What PlaNet records beyond the end, if an episode must be long enough.
  steps_after_end = True

  def __init__(
    self,
    render_mode: str | None = None,
    action_repeat: int = 1,
    initial: bool = False,
    logdir: str | None = None,
    **given: Any,
  ):
    values = dict(self.Settings.read(given))
    settings, *more = self.Settings.split(values).values()
    if more:
      raise errors.UsageError(
        f'Setting map is {given["map"]}, but an environment has one map; only '
        'PlaNet trains on several.'
      )
    settings = self.Settings.begin(settings, {}, 1)
    config = settings_lib.define_config(settings, logdir)
    expert = settings['expert'] if initial else None
    env: Any = env_lib.CarlaEnv({**config, 'expert': expert})
    repeat = ExpertDriver if expert else ActionRepeat
    env = repeat(env, action_repeat)
    if initial and not expert:
      env = RandomThrottle(env, *settings['random_throttle'])
    length = settings['max_length'] // action_repeat
    env = State(LimitDuration(env, length))
    super().__init__(env, render_mode)
    rate = max(1, round(1 / env.dt / action_repeat))
    self.metadata = {**type(self).metadata, 'render_fps': rate}
    self.image_channels: int = env.image_channels
    self.seconds_to_close: float = env.seconds_to_close

  @property
  def metrics(self) -> dict[str, float | None]:
    """Metrics of the episode so far, see `CarlaEnv.metrics`."""
    return self._inner.metrics

  @property
  def overview(self) -> np.ndarray:
    """Bird's-eye map, see `CarlaEnv.birdseye`."""
    return self._inner.birdseye


class State(wrappers.Wrapper):
  """Observe the vector alone; the info contains a `caption` for videos."""

  def __init__(self, env: Any):
    super().__init__(env)
    self.observation_space = env.observation_space['state']

  def reset(self) -> np.ndarray:
    return self._env.reset()['state']

  def step(self, action: Any) -> tuple:
    observ, reward, done, info = self._env.step(action)
    drive, steer = action
    caption = (
      f'throttle {max(drive, 0):.2f}  brake {max(-drive, 0):.2f}  '
      f'steer {steer:+.2f}'
    )
    return observ['state'], reward, done, {**info, 'caption': caption}


class RandomThrottle(wrappers.Wrapper):
  """Map the throttle from [-1, 1] to a range.

  The info contains the `applied_action`, float32 [2].

  Args:
    env: Environment.
    low: Smallest throttle.
    high: Largest throttle.
  """

  def __init__(self, env: Any, low: float, high: float):
    super().__init__(env)
    self._low, self._high = low, high

  def step(self, action: Any) -> tuple:
    action = np.array(action, np.float32)
    action[0] = self._low + (self._high - self._low) * (action[0] + 1) / 2
    observ, reward, done, info = self._env.step(action)
    return observ, reward, done, {**info, 'applied_action': action}


class ExpertDriver(wrappers.Wrapper):
  """Replace the given actions with those of an expert.

  On a server, the traffic manager acts at every step; offline, a scripted
  driver acts once per action. The info contains the `applied_action`, float32
  [2], averaged over the steps.

  Args:
    env: Environment with the setting `expert`.
    amount: Number of steps per action, as in `ActionRepeat`.
  """

  def __init__(self, env: env_lib.CarlaEnv, amount: int):
    super().__init__(env)
    self._amount = amount
    self._is_scripted = env.backend.name == 'offline'
    self._policy = policies.PurePursuit()

  def step(self, unused_action: Any) -> tuple:
    action = np.zeros(2, np.float32)
    if self._is_scripted:
      action = self._policy(self._env)
    total, applied = 0.0, []
    for _ in range(self._amount):
      observ, reward, done, info = self._env.step(action)
      total += reward
      if 'control' in info:
        throttle, steer, brake = info['control']
        applied.append((throttle - brake, steer))
      if done:
        break
    if applied:
      info['applied_action'] = np.mean(applied, 0, dtype=np.float32)
    return observ, total, done, info
