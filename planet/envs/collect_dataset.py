"""Record episodes to disk."""

import datetime
import functools
import os
import uuid
from typing import Any

import numpy as np

from agents.envs import guard, spaces
from agents.envs.wrappers import Wrapper
from agents.run import errors, files
from agents.tools.wrappers import STEPS_OF_ACTION, to_32_bit

# Scalar entries of episode files: simulator steps per action, and those of the
# whole episode, unless they are their product with the number of actions.
ACTION_REPEAT = 'action_repeat'
SIMULATOR_STEPS = 'simulator_steps'
SCALARS = (ACTION_REPEAT, SIMULATOR_STEPS)
# How far an applied action may be beyond the bounds of actions.
_ROUNDING = 1e-3


class CollectGymDataset(Wrapper):
  """Collect transitions and write each finished episode to an .npz file.

  An episode of N steps has arrays of length N + 1. Index t holds observation t
  with the action and the reward that led to it; the first action and reward are
  zero. Without a folder, the info of the last step contains the `episode`.

  An episode that ends within the repetitions of an action, or is filled up with
  its last observation, also has the number of `simulator_steps`.

  Records `applied_action` from the info, if present, instead of the given
  action.

  Observations and actions have the dtypes of their spaces, or their 32 bit
  versions, whichever values an episode happens to have.

  Writes files atomically. Skips episodes whose last step has `step_error` in
  its info. Names sort by time. With a seed and `began`, they sort by `began`,
  the number of the episode and the seed instead: environments that play at the
  same time finish in any order.

  Args:
    env: Environment. Observations that are not dicts are recorded as `observ`.
      `step` and `reset` may support `blocking=False`.
    outdir: Folder to write to, created if needed, or None.
    action_repeat: Simulator steps per action, stored with the episode.
    began: Time at which these recordings began, the same for all environments
      that play at the same time.
    seed: Seed that tells this environment from the others; also set by `seed`.

  Raises:
    RuntimeError: At the end of an episode with values that are not numbers.
  """

  def __init__(
    self,
    env: Any,
    outdir: str | None,
    action_repeat: int | None = None,
    began: datetime.datetime | None = None,
    seed: int | None = None,
  ) -> None:
    super().__init__(env)
    self._action_repeat = action_repeat
    self._began, self._seed, self._written = began, seed, 0
    self._outdir = outdir and files.expand(outdir)
    self._episode: list[dict[str, Any]] = []
    self._simulator_steps = 0

  def seed(self, seed: int | None) -> None:
    self._seed = seed
    if hasattr(self._env, 'seed'):
      self._env.seed(seed)

  def step(self, action: np.ndarray, blocking: bool = True) -> Any:
    if blocking:
      return self._process_step(action, *self._env.step(action))
    promise = self._env.step(action, blocking=False)
    return lambda: self._process_step(action, *promise())

  def reset(self, blocking: bool = True) -> Any:
    if blocking:
      return self._process_reset(self._env.reset())
    promise = self._env.reset(blocking=False)
    return lambda: self._process_reset(promise())

  def _process_step(self, action, observ, reward, done, info):
    self._record(observ, self._find_applied(info, action), reward)
    usual = self._action_repeat or 1
    self._simulator_steps += info.get(STEPS_OF_ACTION, usual)
    if done:
      episode = _stack(self._episode, self._dtypes)
      if not self._outdir:
        info = dict(info, episode=episode)
      elif guard.has_failed(info):
        print('Discarded an episode because one of its steps failed.')
      else:
        name = None
        if self._began and self._seed is not None:
          name = name_episode(self._began, self._written, self._seed)
        self._written += 1
        if self._simulator_steps != usual * (len(episode['reward']) - 1):
          episode[SIMULATOR_STEPS] = np.int64(self._simulator_steps)
        write_episode(episode, self._outdir, self._action_repeat, name)
    return observ, reward, done, info

  def _process_reset(self, observ):
    space = self._env.action_space
    self._episode = []
    self._simulator_steps = 0
    # A float makes all rewards of the episode float64, as in the original.
    self._record(observ, np.zeros(space.shape, space.dtype), 0.0)
    return observ

  @functools.cached_property
  def _dtypes(self):
    space = self._env.observation_space
    parts = getattr(space, 'spaces', {'observ': space})
    parts = {**parts, 'action': self._env.action_space}
    return {key: part.dtype for key, part in parts.items()}

  def _find_applied(self, info, action):
    """Return a copy of the action to record."""
    if 'applied_action' not in info:
      return np.array(action)
    applied = np.array(guard.to_array(info['applied_action']))
    fits = applied.shape == np.shape(action) and applied.dtype.kind in 'biuf'
    space = self._env.action_space
    if fits and spaces.is_box(space):
      low, high = space.low - _ROUNDING, space.high + _ROUNDING
      fits = bool(((low <= applied) & (applied <= high)).all())
    if not fits or guard.not_finite(applied):
      raise errors.EnvError(
        f'Environment {guard.find_name(self._env)} gives '
        f"info['applied_action'] = {info['applied_action']!r:.80}, which "
        'PlaNet records instead of the action; give finite numbers of shape '
        f'{np.shape(action)} within [-1, 1], or call it something else.'
      )
    return applied

  def _record(self, observ, action, reward):
    observ = observ if isinstance(observ, dict) else {'observ': observ}
    self._episode.append({**observ, 'action': action, 'reward': reward})


def name_episode(
  time: datetime.datetime, number: int | None = None, seed: int = 0
) -> str:
  """Return a new name, the time and 32 hexadecimal digits as in the original.

  Args:
    time: Local time, by which names sort first.
    number: Number below 2 ** 32, by which names of equal times sort, and then
      by the seed; None to sort names by time only.
    seed: Number below 2 ** 32.
  """
  digits = f'{time.microsecond:05x}'
  if number is not None:
    digits += f'{number:08x}{seed:08x}'
  digits += uuid.uuid4().hex
  return f'{time:%Y%m%dT%H%M%S}-{digits[:32]}'


def write_episode(
  episode: dict[str, Any],
  outdir: str,
  action_repeat: int | None = None,
  name: str | None = None,
) -> str:
  """Write an episode to a new file in a folder.

  Args:
    episode: Dict of arrays [time, ...].
    outdir: Folder, created if needed.
    action_repeat: See `CollectGymDataset`.
    name: Result of `name_episode`; by default, for the current time.

  Returns:
    Path of the file.
  """
  name = name or name_episode(datetime.datetime.now())
  filename = os.path.join(outdir, f'{name}.npz')
  if action_repeat:
    episode = {**episode, ACTION_REPEAT: np.int64(action_repeat)}
  with files.atomic_write(filename, 'wb') as file_:
    np.savez_compressed(file_, **episode)
  return filename


def _stack(transitions, dtypes):
  episode = {
    key: np.array([x[key] for x in transitions]) for key in transitions[0]
  }
  for key, sequence in episode.items():
    if sequence.dtype == object:
      raise RuntimeError(
        f'Entry {key!r} of the episode has values that are not numbers, such '
        f'as {sequence.flat[0]!r}.'
      )
    episode[key] = _convert(sequence, dtypes.get(key) or sequence.dtype)
  return episode


def _convert(array, dtype):
  """Return an array in the dtype of its space, or its 32 bit version.

  Keeps values that are not numbers of the space, such as fractions.
  """
  small = to_32_bit(np.empty(0, dtype)).dtype
  target = dtype if array.dtype.itemsize > small.itemsize else small
  if array.dtype == target or not (
    np.can_cast(array.dtype, target, 'same_kind')
    or (array.dtype.kind in 'iu' and np.dtype(target).kind in 'iu')
  ):
    return array
  return array.astype(target)
