"""Check, count and summarize recorded episodes on disk."""

import itertools
import logging
import math
import os
import threading
import time
from collections.abc import Mapping, Sequence

import numpy as np

from agents.run import errors
from planet.envs.collect_dataset import ACTION_REPEAT, SIMULATOR_STEPS
from planet.tools import episode_files, loaders, numpy_episodes

_logger = logging.getLogger(__name__)
# What Dreamer stores to tell where an episode begins.
_BEGIN = 'is_first'
# Files that a message names.
_MOST_NAMED = 5


def check(
  directory: str,
  shapes: Mapping[str, Sequence[int]],
  min_length: int = 1,
  rename: bool = True,
) -> None:
  """Check that the episodes of a folder can be used.

  Renames those that cannot be, unless no readable one has the right shapes and
  length. Reads all arrays except images. Other data than the expected, such as
  that of an earlier run, is not compared. Files recorded elsewhere have to be
  single episodes with actions within [-1, 1]; warns if a first action, which
  led to the first observation, is not zero.

  Args:
    directory: Folder of .npz files; may be missing.
    shapes: Dict from name to the shape of one step. Images are of uint8.
    min_length: Minimum number of observations per episode.
    rename: Whether files that cannot be used are renamed. If not, they are an
      error, because they were recorded elsewhere.

  Raises:
    UsageError: If all readable episodes have other shapes, or those of the
      right shapes are too short; without `rename`, if any cannot be used.
  """
  expected = {x: _describe(x, y, np.dtype('u1')) for x, y in shapes.items()}
  unfit: dict[str, str] = {}
  short: dict[str, int] = {}
  shifted: list[str] = []
  fit = 0
  keys = {'reward', *expected, *(() if rename else (_BEGIN,))}
  for filename in loaders.list_episodes(directory):
    contents = _inspect(filename, unfit, rename, keys)
    if contents is None:
      continue
    kinds, arrays = contents
    found = {
      x: _describe(x, y.shape, y.dtype)
      for x, y in kinds.items()
      if x in expected
    }
    difference = episode_files.compare(expected, found)
    if not (difference or rename):
      difference = _find_second_episode(arrays.get(_BEGIN))
      difference = difference or _find_wide_action(arrays['action'])
      if arrays['action'][0].any():
        shifted.append(filename)
    if difference:
      unfit[filename] = difference
    elif (length := kinds['reward'].length) < min_length:
      short[filename] = length
    else:
      fit += 1
  unusable = dict(unfit)
  for filename, length in short.items():
    unusable[filename] = episode_files.too_short(length, min_length)
  if not rename:
    _refuse(directory, unusable)
    if shifted:
      _logger.warning(
        'The first action is not zero in %s of the episodes in %s, such as %s: '
        'index t must hold the action and the reward that led to observation '
        't. If it holds those that followed, shift both, as docs/offline.md '
        'says.',
        len(shifted),
        directory,
        os.path.basename(shifted[0]),
      )
    return
  if short and not fit:
    filename, length = min(short.items(), key=lambda x: x[1])
    raise errors.UsageError(
      f'Episode {filename} has {length} observations, but batch_shape and '
      f'num_chunks need {min_length}; lower them or remove the file. No other '
      'episode in its folder has as many.'
    )
  if unfit and not fit:
    filename, difference = next(iter(unfit.items()))
    raise errors.UsageError(
      f'Episodes in {directory} do not fit this task: '
      f'{os.path.basename(filename)}: {difference}. Use another logdir or the '
      'parameters that the episodes were recorded with.'
    )
  for filename, reason in unusable.items():
    loaders.quarantine(filename, reason)


def _find_second_episode(begins):
  """Return in words where another episode begins, '' if none does."""
  if begins is None or not (later := np.asarray(begins)[1:] > 0).any():
    return ''
  return (
    f'{_BEGIN} is true at step {1 + int(np.argwhere(later)[0][0])}, where '
    'another episode begins; give each episode a file of its own'
  )


def _find_wide_action(action):
  """Return in words which action is not within [-1, 1], '' if all are."""
  # Room for rounding by the program that scaled them.
  wide = np.abs(action) > 1 + 1e-3
  if not wide.any():
    return ''
  value, step = episode_files.find_first(action, wide)
  return (
    f'action is {value:.6g} at step {step}; scale actions to [-1, 1], as '
    'docs/offline.md says'
  )


def _inspect(filename, unfit, rename, keys):
  """Return kinds and arrays of a file; None if it is damaged."""
  if rename:
    return loaders.read_episode(episode_files.inspect, filename)
  try:
    # Whatever else the file holds is ignored.
    return episode_files.inspect(filename, keys)
  except (OSError, ValueError) as error:
    unfit[filename] = str(error)
    return None


def _refuse(directory, reasons):
  """Raise an error that names files that cannot be used, if there are any."""
  if not reasons:
    return
  lines = [f'{os.path.basename(x)}: {y}' for x, y in sorted(reasons.items())]
  more = [f'and {len(lines) - _MOST_NAMED} more'] if lines[_MOST_NAMED:] else []
  raise errors.UsageError(
    f'{len(lines)} of the episodes in {directory} cannot be used; fix or move '
    f'them: {"; ".join([*lines[:_MOST_NAMED], *more])}.'
  )


def find_shapes(
  directory: str, keys: Sequence[str], image_size: int
) -> dict[str, tuple[int, ...]]:
  """Return the shapes of one step in episodes that were recorded elsewhere.

  These are the shapes in the first file that has all arrays, by their names.

  Args:
    directory: Folder of .npz files.
    keys: Names of the arrays that are needed.
    image_size: Height and width of images.

  Raises:
    UsageError: If there is no such file, or its arrays do not suit.
  """
  unfit: dict[str, str] = {}
  for filename in loaders.list_episodes(directory):
    contents = _inspect(filename, unfit, False, {'reward', *keys})
    if contents is None:
      continue
    kinds, _ = contents
    missing = [x for x in keys if x not in kinds]
    if missing:
      unfit[filename] = f'it has no {", no ".join(missing)}'
      continue
    shapes = {x: kinds[x].shape for x in keys}
    image = shapes.get('image', (image_size, image_size, 3))
    if len(image) != 3 or image[:2] != (image_size, image_size):
      raise errors.UsageError(
        f'Images in {filename} have shape {list(image)}, but image_size is '
        f'{image_size}: give [{image_size}, {image_size}, channels], or change '
        'image_size.'
      )
    for key in ('action', 'state'):
      if len(shapes.get(key, (1,))) != 1:
        raise errors.UsageError(
          f'In {filename}, {key} has shape {list(shapes[key])} in each step, '
          'but must be a vector.'
        )
    return shapes
  _refuse(directory, unfit)
  raise errors.UsageError(
    f'There are no episodes (*.npz) in {directory}; see docs/offline.md.'
  )


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
    episode = episode_files.read(filename, ('reward', 'action'), ('reward',))
    reward = episode['reward']
    repeat = episode.get(ACTION_REPEAT, self._action_repeat)
    self.bytes += os.path.getsize(filename)
    steps = (len(reward) - 1) * int(repeat)
    self.steps += int(episode.get(SIMULATOR_STEPS, steps))
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
    episode = episode_files.read(filename, keys)
    return np.concatenate([episode[key] for key in keys], -1)

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


def _describe(key, shape, dtype):
  return f'{list(shape)} {dtype}' if key == 'image' else f'{list(shape)}'
