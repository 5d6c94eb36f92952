"""Loaders: endless streams of recorded episodes.

Without a seed, loaders use the global random generators of Python and NumPy, in
the same order as the original, whose recorded sequences depend on it.
"""

import collections
import errno
import logging
import os
import random
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from agents.run import errors, files, limits
from agents.tools import nested

Episode = dict[str, np.ndarray]

# Errors from reading damaged files; an OSError only if the content is invalid.
_DAMAGE = (
  EOFError,
  KeyError,
  OSError,
  RuntimeError,
  ValueError,
  zipfile.BadZipFile,
  zlib.error,
)
# Seconds to wait for the first episode.
_TIMEOUT = 30.0


def cache_loader(
  reader: Callable[[str], Episode],
  directory: str,
  batch_size: int,
  every: int,
  seed: int | None = None,
  max_bytes: int | None = None,
) -> Iterator[Episode]:
  """Sample from all episodes and scan for new ones regularly.

  Draws a random sample after each scan and permutes it repeatedly.

  Args:
    reader: Function from filename to episode.
    directory: Folder of .npz files.
    batch_size: Unused.
    every: Number of episodes between two scans, and size of the sample.
    seed: Seed of separate random generators.
    max_bytes: Memory for episodes, by default a quarter of the memory available
      to the process. The least recently used ones are dropped and read again
      when needed; this does not affect the order.

  Yields:
    Episodes as returned by the reader.

  Raises:
    RuntimeError: If no episode appears within 30 seconds.
  """
  del batch_size
  draws = _generators(seed)
  memory = _Memory(reader, directory, max_bytes)
  known: list[str] = []
  while True:
    selected = _sample(known, every, draws[0])
    yield from memory.read(_permuted(selected, every, draws[1]))
    known += memory.scan()
    if not known:
      _wait(directory)


def scan_loader(
  reader: Callable[[str], Episode],
  directory: str,
  batch_size: int,
  every: int,
  seed: int | None = None,
  max_bytes: int | None = None,
  max_episodes: int | None = None,
) -> Iterator[Episode]:
  """Sample half of the episodes from those found by the last scan.

  Source: `_read_episodes_scan` of a fork, which stopped reading new
  episodes at its limit; here, the oldest ones are dropped instead.

  Args:
    reader: Function from filename to episode.
    directory: Folder of .npz files, whose names start with their times.
    batch_size: Unused.
    every: Number of episodes between two scans. The samples of new and of old
      episodes have half this size each.
    seed: Seed of separate random generators.
    max_bytes: Memory for episodes, see `cache_loader`.
    max_episodes: Number of newest episodes to sample from, None for all.

  Yields:
    Episodes as returned by the reader.

  Raises:
    RuntimeError: If no episode appears within 30 seconds.
  """
  del batch_size
  memory = _Memory(reader, directory, max_bytes)
  draws = _generators(seed)
  recent: list[str] = []
  known: list[str] = []
  half = max(1, every // 2)
  while True:
    selected = _sample(recent, half, draws[0])
    selected += _sample(known, half, draws[0])
    yield from memory.read(_permuted(selected, every, draws[1]))
    known += recent
    recent = memory.scan()
    if max_episodes:
      recent = recent[-max_episodes:]
      known = known[max(0, len(known) + len(recent) - max_episodes) :]
    if not known and not recent:
      _wait(directory)


# Without max_episodes, the loader of this name in the original.
recent_loader = scan_loader


def reload_loader(
  reader: Callable[[str], Episode],
  directory: str,
  batch_size: int,
  seed: int | None = None,
) -> Iterator[Episode]:
  """Read every episode from disk each time, in random order.

  Args:
    reader: Function from filename to episode.
    directory: Folder of .npz files.
    batch_size: Unused.
    seed: Seed of a separate random generator.

  Yields:
    Episodes as returned by the reader.

  Raises:
    RuntimeError: If no episode appears within 30 seconds.
  """
  del batch_size
  generator = random if seed is None else random.Random(seed)
  while True:
    filenames = list_episodes(directory)
    generator.shuffle(filenames)
    episodes = (read_episode(reader, filename) for filename in filenames)
    yield from (x for x in episodes if x is not None)
    if not filenames:
      _wait(directory)


def dummy_loader(
  reader: Callable[[str], Episode],
  directory: str,
  batch_size: int,
  seed: int | None = None,
) -> Iterator[Episode]:
  """Yield random data shaped like one real episode.

  Args:
    reader: Function from filename to episode.
    directory: Folder of .npz files.
    batch_size: Unused.
    seed: Seed of the data, 0 by default.

  Yields:
    Dict of arrays, uniform between 0 and 255 for uint8 and between 0 and 1
    for floats.

  Raises:
    RuntimeError: If no episode appears within 30 seconds.
  """
  del batch_size
  example = next(cache_loader(reader, directory, 1, 1))
  generator = np.random.RandomState(seed or 0)

  def draw(value):
    high = 255 if value.dtype == np.uint8 else 1
    return generator.uniform(0, high, value.shape).astype(value.dtype)

  while True:
    yield {key: draw(value) for key, value in example.items()}


def _generators(seed):
  """Return generators for `_sample` and `_permuted`."""
  if seed is None:
    return random, np.random
  return random.Random(seed), np.random.RandomState(seed)


def _sample(sequence, amount, generator=random):
  """Draw up to `amount` elements without replacement."""
  return generator.sample(sequence, min(amount, len(sequence)))


def _permuted(sequence, amount, generator=np.random):
  """Cycle through fresh permutations until the amount is reached."""
  # Like the original, draw one more permutation if the amount is met exactly.
  while sequence and amount >= 0:
    for index in generator.permutation(len(sequence))[:amount]:
      yield sequence[index]
    amount -= len(sequence)


def _wait(directory):
  """Wait for the first episode until the time-out."""
  deadline = time.monotonic() + _TIMEOUT
  while not list_episodes(directory):
    if time.monotonic() > deadline:
      raise RuntimeError(
        f'There are no episodes in {directory}; collect some first.'
      )
    time.sleep(0.1)


def list_episodes(directory: str) -> list[str]:
  """Return the sorted paths of the episodes in a folder."""
  folder = files.expand(directory)
  names = [x for x in files.list_folder(folder) if x.endswith('.npz')]
  return [os.path.join(folder, x) for x in names if not x.startswith('.')]


class Watch:
  """Find new episodes in a folder.

  Args:
    directory: Folder of .npz files; may be missing.
  """

  def __init__(self, directory: str) -> None:
    self._directory = directory
    self._known: set[str] = set()

  def find_new(self) -> list[str]:
    """Return the sorted paths of episodes that appeared since the last call."""
    new = [x for x in list_episodes(self._directory) if x not in self._known]
    self._known.update(new)
    return new


class _Memory:
  """Episodes of a folder with a least-recently-used cache.

  Args:
    reader: Function from filename to episode.
    directory: Folder of .npz files.
    max_bytes: Memory for episodes; None for a quarter of the memory available
      to the process, which has two loaders.
  """

  def __init__(self, reader, directory, max_bytes):
    self._reader = reader
    self._directory = directory
    self._watch = Watch(directory)
    self._max_bytes = max_bytes or limits.allowed_memory() // 4
    self._bytes = 0
    self._full = False
    self._kept = collections.OrderedDict()

  def scan(self):
    """Return the names of new readable files."""
    return [x for x in self._watch.find_new() if self._read(x) is not None]

  def read(self, filenames):
    """Return an iterator over episodes, skipping deleted files."""
    return (x for x in map(self._read, filenames) if x is not None)

  def _read(self, filename):
    episode = self._kept.pop(filename, None)
    if episode is None:
      episode = read_episode(self._reader, filename)
      if episode is None:
        return None
      self._bytes += _count_bytes(episode)
    self._kept[filename] = episode
    while self._kept and self._bytes > self._max_bytes:
      self._bytes -= _count_bytes(self._kept.popitem(last=False)[1])
      if not self._full:
        self._full = True
        logging.getLogger(__name__).warning(
          'Episodes in %s exceed %.1f MiB; some will be read from disk again. '
          'Raise loader_max_bytes to keep more in memory.',
          self._directory,
          self._max_bytes / 2**20,
        )
    return episode


def _count_bytes(episode):
  return sum(getattr(x, 'nbytes', 0) for x in nested.flatten(episode))


def read_episode(reader: Callable[[str], Any], filename: str) -> Any:
  """Apply a reader to a file; return None if it is missing or damaged.

  Renames damaged files. Raises errors of the operating system, such as a disk
  time-out, because the file may be intact.

  Args:
    reader: Function from the path to an episode or a part of it.
    filename: Path of an .npz file.
  """
  try:
    return reader(filename)
  except FileNotFoundError:
    return None
  except _DAMAGE as error:
    if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
      raise
    quarantine(filename, error)
    return None


def quarantine(filename: str, reason: object) -> None:
  """Rename an unusable episode file and log a warning.

  Raises:
    UsageError: If it cannot be renamed.
  """
  aside, number = filename + '.damaged', 1
  while os.path.lexists(aside):
    number += 1
    aside = f'{filename}.damaged{number}'
  words = f'Cannot use episode {filename} ({" ".join(str(reason).split())})'
  try:
    os.rename(filename, aside)
  except FileNotFoundError:
    return  # Another process has renamed it.
  except OSError as error:
    raise errors.UsageError(
      f'{words}, nor rename it: {error.strerror}. Move it away, or make its '
      'folder writable.'
    ) from None
  logging.getLogger(__name__).warning(
    '%s; renamed it to %s.', words, os.path.basename(aside)
  )
