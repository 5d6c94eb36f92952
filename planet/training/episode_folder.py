"""Check, count and summarise recorded episodes on disk."""

import itertools
import logging
import math
import os
import threading
import time
import zipfile
from collections.abc import Mapping, Sequence

import numpy as np

from agents.run import errors
from planet.envs.collect_dataset import ACTION_REPEAT
from planet.tools import loaders, numpy_episodes

_logger = logging.getLogger(__name__)


def check(
  directory: str, shapes: Mapping[str, Sequence[int]], min_length: int = 1
) -> None:
  """Check that the episodes of a folder have the right shapes.

  Renames files of other shapes, unless all are.

  Args:
    directory: Folder of .npz files; may be missing.
    shapes: Dict from name to the shape of one step.
    min_length: Minimum number of observations per episode.

  Raises:
    UsageError: If all readable episodes have other shapes, or one is too short.
  """
  expected = {key: tuple(value) for key, value in shapes.items()}
  names = loaders.list_episodes(directory)
  found = {x: loaders.read_episode(_read_shapes, x) for x in names}
  foreign = {x: y[0] for x, y in found.items() if y and y[0] != expected}
  lengths = [(y[1], x) for x, y in found.items() if y and y[0] == expected]
  if foreign and not lengths:
    raise errors.UsageError(
      f'Episodes in {directory} have {_describe(next(iter(foreign.values())))}'
      f', but this task has {_describe(expected)}. Use another logdir or '
      'the parameters that the episodes were recorded with.'
    )
  length, shortest = min(lengths, default=(min_length, ''))
  if length < min_length:
    raise errors.UsageError(
      f'Episode {shortest} has {length} observations, but batch_shape and '
      f'num_chunks need {min_length}; lower them or remove the file.'
    )
  for filename, found_shapes in foreign.items():
    loaders.quarantine(filename, f'it has {_describe(found_shapes)}')


def count(directory: str, most: int) -> int:
  """Return the number of readable episodes, at most `most`.

  Renames those that are damaged, as far as it reads.

  Args:
    directory: Folder of .npz files; may be missing.
    most: Number from which on nothing is read.
  """
  names = loaders.list_episodes(directory)
  reader = numpy_episodes.episode_reader
  found = (loaders.read_episode(reader, x) for x in names)
  return sum(1 for _ in itertools.islice((x for x in found if x), most))


class EpisodeLog:
  """Count the episodes in a folder, including new ones. Thread-safe.

  Args:
    directory: Folder of .npz files.
    action_repeat: Simulator steps per action of episodes that do not store it.

  Attributes:
    returns: List of returns in the order in which episodes were found.
    steps: Number of environment steps in all episodes.
    bytes: Size of all files.
  """

  def __init__(self, directory: str, action_repeat: int = 1) -> None:
    self._watch = loaders.Watch(directory)
    self._action_repeat = action_repeat
    self._last_look = -math.inf
    self._lock = threading.Lock()
    self.returns: list[float] = []
    self.steps = 0
    self.bytes = 0

  def update(self, min_age: float = 0.0) -> list[str]:
    """Read new episodes, unless the last update is younger than `min_age` s.

    Returns:
      List of paths of new episodes.
    """
    with self._lock:
      if time.monotonic() - self._last_look < min_age:
        return []
      new = self._watch.find_new()
      for filename in new:
        loaders.read_episode(self._count, filename)
      self._last_look = time.monotonic()
      return new

  def count_steps(self) -> int:
    """Update and return the number of environment steps."""
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
    keys: Names of the arrays that form the vector.
  """

  def read(filename):
    with np.load(filename) as archive:
      return np.concatenate([archive[key] for key in keys], -1)

  names = loaders.list_episodes(directory)
  found = [loaders.read_episode(read, x) for x in names]
  vectors = np.concatenate([x for x in found if x is not None])
  # Components that hardly vary now may vary later; HER has the same limit.
  stddev = np.maximum(vectors.std(0), 0.01)
  return vectors.mean(0).astype(np.float32), stddev.astype(np.float32)


def log_recorded(filename: str) -> None:
  """Log that an episode was recorded."""
  folder, name = os.path.split(filename)
  _logger.debug(
    'Recorded episode %s to %s.', name[:-4], os.path.basename(folder)
  )


def _read_shapes(filename):
  """Read shapes per step and the number of steps from the array headers."""
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
