"""One environment of an explorer: flattened, counted and recorded.

Does not import TensorFlow, because environments run in separate processes.
"""

import os
from typing import Any

import numpy as np

from agents.envs import (
  episode_log,
  guard,
  probe,
  recorder,
  video,
  wrappers,
)
from agents.pipeline import env_config
from agents.run import errors, random_state

# Dtypes of spaces whose description has none, see `probe.describe`.
_DTYPES = {'Box': np.float32, 'Discrete': np.int64}


class Worker:
  """Environment that resets automatically and reports its episodes.

  Args:
    env: Description, see `env_config.make`.
    seed: Seed of the environment, None to leave it unseeded.
    csv_path: File that gets a row per finished episode; an existing file is
      appended to. None for no file.
    video_folder: Folder for a video of each episode, None for no videos.
    window: Whether to show the episodes in a window.
  """

  def __init__(
    self,
    env: dict,
    seed: int | None = None,
    csv_path: str | None = None,
    video_folder: str | None = None,
    window: bool = False,
  ):
    render = bool(video_folder) or window
    created = env_config.make(env, render)
    found = probe.describe(created)
    self.observation_space = found['observation_space']
    self.action_space = found['action_space']
    self._dtypes = {
      path: np.dtype(part.get('dtype', _DTYPES[part['typ']]))
      for path, part in self.observation_space.items()
    }
    self._has_agents = hasattr(created.action_space, 'spaces')
    self._own_randomness = False
    if seed is not None and hasattr(created, 'seed'):
      created.seed(seed)
      self._own_randomness = hasattr(created, 'exchanged')
    self._name = name = str(env.get('name') or env.get('constructor'))
    created = wrappers.Guard(created, name)
    if render:
      paths = _video_paths(video_folder) if video_folder else ()
      title = name if window else None
      created = recorder.RecordEpisodes(created, paths, title, video.SIZE)
    self._env = episode_log.Monitor(created, csv_path, name)
    self._begun = False

  def reset(self) -> dict[str, np.ndarray]:
    """Start an episode; return a dict from path to observation."""
    self._begun = True
    return self._check(self._env.reset())

  def step(self, actions: dict[str, Any]) -> tuple:
    """Take a step, and start the next episode if one has ended.

    Args:
      actions: Dict from name of agent to action.

    Returns:
      Tuple of the next observation to act on, a dict from path to array; the
      reward; whether the episode has ended; and a dict of infos, flat and
      numeric. When an episode ends, infos contain `episode/r`, `episode/l`,
      `episode/t` (return, length, seconds since the start), and the extra keys
      `truncated`, a bool, and `final`, the last observation.
    """
    action = actions if self._has_agents else next(iter(actions.values()))
    observation, reward, done, info = self._env.step(action)
    infos: dict[str, Any] = {'infos': numbers(info)} if info else {}
    observation = self._check(observation)
    guard.check_finite(reward, 'reward', self._name)
    if not done:
      return observation, float(reward), False, infos
    infos['truncated'] = bool(info.get('truncated'))
    infos['final'] = observation
    return self.reset(), float(reward), True, infos

  def state_dict(self) -> dict:
    """Return the random state and, if supported, that of the environment."""
    if not self._begun:
      # Until the first episode, only the seed counts.
      return {'rows': self._env.episodes}
    state: dict[str, Any] = {
      'return': self._env.episode_return,
      'length': self._env.episode_length,
      'rows': self._env.episodes,
    }
    random = random_state.get_generator_state(self._unwrapped)
    if random is not None:
      state['random'] = random
    if self._own_randomness:
      with self._env.exchanged():
        state['process'] = random_state.get_random_state()
    if hasattr(self._env, 'get_env_state'):
      state['env'] = self._env.get_env_state()
    return state

  def load_state_dict(self, state: dict) -> dict[str, np.ndarray] | None:
    """Restore the result of `state_dict`.

    Removes rows of later episodes, because these are played again.

    Returns:
      None if the episode continues or none has begun; the first observation of
      a new episode if the state of the environment is unknown.
    """
    self._env.truncate(state['rows'])
    if set(state) == {'rows'}:
      return None
    # Uses up the seed, which would otherwise undo the state of the generator.
    self.reset()
    random_state.set_generator_state(self._unwrapped, state.get('random'))
    if self._own_randomness and 'process' in state:
      with self._env.exchanged():
        random_state.set_random_state(state['process'])
    if 'env' not in state:
      return self.reset()
    self._env.set_env_state(state['env'])
    self._env.episode_return = state['return']
    self._env.episode_length = state['length']
    return None

  def close(self) -> None:
    """Close the environment and its window."""
    self._env.close()

  def _check(self, observation):
    """Return a dict from path to array; refuse infinity and NaN.

    Leaves out parts that the space lacks, which no agent observes. Arrays have
    the kind of number of their space: the first one, which may happen to be
    whole, decides which numbers a memory can hold.
    """
    flat = flatten(observation)
    flat = {path: flat[path] for path in self._dtypes}
    for path, value in flat.items():
      if value.dtype.kind == 'f':
        guard.check_finite(value, f'observation {path}', self._name)
      dtype = self._dtypes[path]
      if value.dtype.kind == dtype.kind and value.itemsize >= dtype.itemsize:
        continue
      flat[path] = value.astype(dtype)
      if dtype.kind != 'f' and (flat[path] != value).any():
        raise errors.EnvError(
          f'The observation {path} of {self._name} is {value!r:.80}, but its '
          f'space has numbers of {dtype}; make them match.'
        )
    return flat

  @property
  def _unwrapped(self):
    return getattr(self._env, 'unwrapped', self._env)


def _video_paths(folder):
  """Generate the paths of the next videos in a folder."""
  os.makedirs(folder, exist_ok=True)
  while True:
    number = len(os.listdir(folder)) + 1
    name = f'episode-{number:05d}{video.preferred_ending()}'
    yield os.path.join(folder, name)


def flatten(observation: Any, path: str = '') -> dict[str, np.ndarray]:
  """Return a dict from path to array; the path is `agent` for an array."""
  if not isinstance(observation, dict):
    # A copy, as environments may use their arrays again.
    return {path or 'agent': guard.to_array(observation).copy()}
  flat = {}
  for key, value in observation.items():
    flat.update(flatten(value, f'{path}/{key}' if path else f'{key}'))
  return flat


def numbers(info: dict) -> dict[str, np.ndarray]:
  """Return a flat dict of the numbers and arrays in an info, as floats."""
  flat = flatten(info)
  return {k: v.astype(float) for k, v in flat.items() if v.dtype.kind in 'biuf'}
