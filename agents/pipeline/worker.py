"""One environment as explorers see it: flat, counted and recorded.

Free of TensorFlow, as environments are built in processes of their own.
"""

import contextlib
import os

import numpy as np

from agents.envs import adapters
from agents.envs import episode_log
from agents.envs import probe
from agents.envs import video
from agents.pipeline import env_config
from agents.run import references

_LARGEST_FRAME = 240


class Worker:
  """Environment that resets itself and tells about its episodes.

  Args:
    env: Description, see `env_config.make`.
    seed: Seed of the environment, None for none.
    csv_path: File that gets a row per finished episode; continued if it
      exists. None for no file.
    video_folder: Folder for a video of each episode, None for no videos.
    kwargs: Further arguments of the environment.
    trust: `references.Trust` in what the description names.
  """

  def __init__(
    self,
    env,
    seed=None,
    csv_path=None,
    video_folder=None,
    kwargs=None,
    trust=references.EVERYTHING,
  ):
    self._env = env_config.make(
      env, bool(video_folder), trust, **(kwargs or {})
    )
    self.description = probe.describe(self._env)
    self._has_agents = hasattr(self._env.action_space, 'spaces')
    if seed is not None and hasattr(self._env, 'seed'):
      self._env.seed(seed)
    name = env.get('name') or env.get('constructor')
    self._log = episode_log.EpisodeLog(csv_path, name)
    self._recorder = video_folder and _Recorder(self._env, video_folder)
    self._return, self._length = 0.0, 0

  def reset(self):
    """Begin an episode; returns a dict from path to observation."""
    self._return, self._length = 0.0, 0
    observation = flatten(self._env.reset())
    if self._recorder:
      self._recorder.begin()
    return observation

  def step(self, actions):
    """Step, and begin the next episode where one has ended.

    Args:
      actions: Dict from name of agent to action.

    Returns:
      Tuple of the observation to act on next, a dict from path to array; the
      reward; whether the episode has ended; and a dict of infos, flat and
      numeric. At an end these contain `episode/r`, `episode/l`, `episode/t`
      (return, length, seconds since the start), and the dict has the extra
      keys `truncated`, a bool, and `final`, the last observation.
    """
    action = actions if self._has_agents else next(iter(actions.values()))
    observation, reward, done, info = self._env.step(action)
    reward = float(reward)
    self._return += reward
    self._length += 1
    if self._recorder:
      self._recorder.add()
    infos = {'infos': numbers(info)} if info else {}
    observation = flatten(observation)
    if not done:
      return observation, reward, False, infos
    row = self._log.write(self._return, self._length)
    infos = {
      'infos': {
        **infos.get('infos', {}),
        **{f'episode/{k}': np.asarray(v) for k, v in row.items()},
      },
      'truncated': bool(info.get('truncated')),
      'final': observation,
    }
    if self._recorder:
      self._recorder.save()
    return self.reset(), reward, True, infos

  def state_dict(self):
    """State of the random numbers and, if it is offered, the environment."""
    state = {'return': self._return, 'length': self._length}
    generator = self._find_generator()
    if generator is not None:
      state['random'] = generator.bit_generator.state
    if hasattr(self._env, 'get_env_state'):
      state['env'] = self._env.get_env_state()
    return state

  def load_state_dict(self, state):
    """Restore what `state_dict` has returned.

    Returns:
      None if the episode goes on; the first observation of a new one if the
      state of the environment is not known.
    """
    # Uses up the seed, which would otherwise undo the state of the generator.
    self.reset()
    generator = self._find_generator()
    if generator is not None and 'random' in state:
      generator.bit_generator.state = _as_arrays(state['random'])
    if 'env' not in state:
      return self.reset()
    self._env.set_env_state(state['env'])
    self._return, self._length = state['return'], state['length']
    return None

  def close(self):
    """Close the environment."""
    getattr(self._env, 'close', lambda: None)()

  def _find_generator(self):
    env = getattr(self._env, 'unwrapped', self._env)
    generator = getattr(env, 'np_random', None)
    return generator if hasattr(generator, 'bit_generator') else None


def flatten(observation, path=''):
  """Dict from path to array; the path is `agent` if it is no dictionary."""
  if not isinstance(observation, dict):
    return {path or 'agent': np.asarray(observation)}
  flat = {}
  for key, value in observation.items():
    flat.update(flatten(value, f'{path}/{key}' if path else key))
  return flat


def numbers(info):
  """Flat dict of the numbers and arrays of an info dictionary."""
  flat = flatten(info)
  return {k: v for k, v in flat.items() if v.dtype.kind in 'biuf'}


class _Recorder:
  """Frames of the current episode, not larger than needed."""

  def __init__(self, env, folder):
    self._env = env
    self._folder = folder
    os.makedirs(folder, exist_ok=True)
    self._frames = []

  def begin(self):
    # Libraries that draw introduce themselves with the first frame.
    first = not self._frames
    self._frames = []
    with adapters.quietly() if first else contextlib.nullcontext():
      self.add()

  def add(self):
    frame = np.asarray(self._env.render('rgb_array'))
    stride = -(-max(frame.shape[:2]) // _LARGEST_FRAME)
    self._frames.append(frame[::stride, ::stride].copy())

  def save(self):
    number = len(os.listdir(self._folder)) + 1
    path = os.path.join(self._folder, f'episode-{number:05d}')
    video.write_video(
      f'{path}.{_video_format()}', self._frames, self._find_rate()
    )

  def _find_rate(self):
    metadata = getattr(self._env, 'metadata', None) or {}
    return metadata.get('render_fps', 30)


def _video_format():
  try:
    import imageio_ffmpeg  # noqa: F401

    return 'mp4'
  except ImportError:
    return 'gif'


def _as_arrays(state):
  """State of a generator whose arrays may have become lists."""
  if isinstance(state, dict):
    return {key: _as_arrays(value) for key, value in state.items()}
  return np.asarray(state, np.uint32) if isinstance(state, list) else state
