"""Recorded episodes on disk: whether they fit, how many, their returns."""

import logging
import os
import threading
import time
import zipfile
from collections.abc import Mapping, Sequence

import numpy as np

from agents.run import errors
from planet.envs.collect_dataset import ACTION_REPEAT
from planet.tools import loaders

_logger = logging.getLogger(__name__)


def check(
  directory: str, shapes: Mapping[str, Sequence[int]], min_length: int = 1
) -> None:
  """Make sure that a folder has episodes of the right kind.

  Files that do not fit are set aside, unless none of them fits.

  Args:
    directory: Folder of .npz files; may be missing.
    shapes: Dict from name to the shape of one step.
    min_length: Number of observations that training cuts out at a time.

  Raises:
    UsageError: If there are readable episodes, but all have other shapes, or
      one is too short.
  """
  expected = {key: tuple(value) for key, value in shapes.items()}
  names = loaders.list_episodes(directory)
  found = {x: loaders.read_episode(_read_shapes, x) for x in names}
  foreign = {x: y[0] for x, y in found.items() if y and y[0] != expected}
  lengths = [(y[1], x) for x, y in found.items() if y and y[0] == expected]
  if foreign and not lengths:
    raise errors.UsageError(
      f'Episodes in {directory} have {_describe(next(iter(foreign.values())))}'
      f', but this task has {_describe(expected)}. Use another logdir, or '
      'the parameters that the episodes were recorded with.'
    )
  length, shortest = min(lengths, default=(min_length, ''))
  if length < min_length:
    raise errors.UsageError(
      f'Episode {shortest} has {length} observations, but batch_shape and '
      f'num_chunks need {min_length}; lower them, or move the file away.'
    )
  for filename, found_shapes in foreign.items():
    loaders.quarantine(filename, f'it has {_describe(found_shapes)}')


class EpisodeLog:
  """Counts the episodes in a folder, also those to come.

  Several threads may ask for updates.

  Args:
    directory: Folder of .npz files.
    action_repeat: Simulator steps per action of episodes that do not say it.

  Attributes:
    returns: List of the sums of rewards, in the order of appearance.
    steps: Number of environment steps in all episodes.
    bytes: Size of all files.
  """

  def __init__(self, directory: str, action_repeat: int = 1) -> None:
    self._watch = loaders.Watch(directory)
    self._action_repeat = action_repeat
    self._last_look = 0.0
    self._lock = threading.Lock()
    self.returns: list[float] = []
    self.steps = 0
    self.bytes = 0

  def update(self, min_age: float = 0.0) -> list[str]:
    """Look for new episodes, unless that was done some seconds ago.

    Returns:
      List of their paths.
    """
    with self._lock:
      if time.time() - self._last_look < min_age:
        return []
      new = self._watch.find_new()
      for filename in new:
        loaders.read_episode(self._count, filename)
      self._last_look = time.time()
      return new

  def count_steps(self) -> int:
    """Return the number of environment steps, of new episodes, too."""
    self.update()
    return self.steps

  def _count(self, filename):
    with np.load(filename) as episode:
      reward = episode['reward']
      repeat = episode.get(ACTION_REPEAT, self._action_repeat)
    self.bytes += os.path.getsize(filename)
    self.steps += (len(reward) - 1) * int(repeat)
    self.returns.append(float(reward.sum()))


def read_statistics(
  directory: str, keys: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
  """Return mean and standard deviation of recorded vectors, float32 [size].

  Args:
    directory: Folder of .npz files.
    keys: Names of the parts that make up the vector.
  """

  def read(filename):
    with np.load(filename) as archive:
      return np.concatenate([archive[key] for key in keys], -1)

  names = loaders.list_episodes(directory)
  found = [loaders.read_episode(read, x) for x in names]
  vectors = np.concatenate([x for x in found if x is not None])
  # What hardly moves at random may move later, as in the normalizer of HER.
  stddev = np.maximum(vectors.std(0), 0.01)
  return vectors.mean(0).astype(np.float32), stddev.astype(np.float32)


def log_recorded(filename: str) -> None:
  """Write to the log that there is a new episode."""
  folder, name = os.path.split(filename)
  _logger.debug(
    'Recorded episode %s to %s.', name[:-4], os.path.basename(folder)
  )


def _read_shapes(filename):
  """Read the shapes of one step and the number of steps, without the arrays."""
  shapes: dict[str, tuple[int, ...]] = {}
  lengths: list[int] = []
  with zipfile.ZipFile(filename) as archive:
    for name in archive.namelist():
      with archive.open(name) as file_:
        np.lib.format.read_magic(file_)
        shape, _, _ = np.lib.format.read_array_header_1_0(file_)
      if name != f'{ACTION_REPEAT}.npy':
        shapes[name.removesuffix('.npy')] = tuple(shape[1:])
        lengths.extend(shape[:1])
  return shapes, min(lengths, default=0)


def _describe(shapes):
  return ', '.join(
    f'{key} {list(shape)}' for key, shape in sorted(shapes.items())
  )
