"""Endless streams of recorded episodes.

Without a seed, loaders draw from the global generators of Python and NumPy,
like the original; its recorded sequences depend on the order of the draws.
"""

import collections
import contextlib
import errno
import glob
import logging
import os
import random
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from agents.run import limits
from agents.tools import nested

Episode = dict[str, np.ndarray]

# What reading damaged bytes leads to; an OSError only if it blames the content.
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
  """Draw from all episodes, and look for new ones now and then.

  Yields episodes in fresh permutations of a random sample of all.

  Args:
    reader: Function from filename to episode.
    directory: Folder of .npz files.
    batch_size: Unused.
    every: Number of episodes between two scans, and size of the sample.
    seed: Seed of generators of its own.
    max_bytes: Memory for episodes, by default a quarter of what the process
      may use. Those that were drawn longest ago make room and are read again
      when they are drawn, so the order stays the same.

  Yields:
    Episodes as returned by the reader.

  Raises:
    RuntimeError: If no episode appears for half a minute.
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
  """Draw half of the episodes from those that are new since the last scan.

  Called `_read_episodes_scan` in the fork for driving, which read no new
  episodes once it had as many as it wanted; here, older ones are forgotten.

  Args:
    reader: Function from filename to episode.
    directory: Folder of .npz files, whose names begin with their times.
    batch_size: Unused.
    every: Number of episodes between two scans. Half of it is the size of
      the samples from new and from old episodes.
    seed: Seed of generators of its own.
    max_bytes: Memory for episodes, see `cache_loader`.
    max_episodes: Number of newest episodes to draw from, None for all.

  Yields:
    Episodes as returned by the reader.

  Raises:
    RuntimeError: If no episode appears for half a minute.
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


# From all episodes, under the name of the original.
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
    seed: Seed of a generator of its own.

  Yields:
    Episodes as returned by the reader.

  Raises:
    RuntimeError: If no episode appears for half a minute.
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
    Dict of arrays, uniform between 0 and 255 for bytes and between 0 and 1
    for floats.

  Raises:
    RuntimeError: If no episode appears for half a minute.
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
  """Draw elements without repetition, as many as there are at most."""
  return generator.sample(sequence, min(amount, len(sequence)))


def _permuted(sequence, amount, generator=np.random):
  """Cycle through fresh permutations until the amount is reached."""
  # Like the original, draw once more after one that is used up.
  while sequence and amount >= 0:
    for index in generator.permutation(len(sequence))[:amount]:
      yield sequence[index]
    amount -= len(sequence)


def _wait(directory):
  """Wait for the first episode, but not forever."""
  deadline = time.time() + _TIMEOUT
  while not list_episodes(directory):
    if time.time() > deadline:
      raise RuntimeError(
        f'There are no episodes in {directory}; collect some first.'
      )
    time.sleep(0.1)


def list_episodes(directory: str) -> list[str]:
  """List the paths of the episodes in a folder, sorted."""
  pattern = os.path.join(glob.escape(os.path.expanduser(directory)), '*.npz')
  return sorted(glob.glob(pattern))


class Watch:
  """Look out for episodes that appear in a folder.

  Args:
    directory: Folder of .npz files, which may be missing.
  """

  def __init__(self, directory: str) -> None:
    self._directory = directory
    self._known: set[str] = set()

  def find_new(self) -> list[str]:
    """Return the sorted paths of those that were not there before."""
    new = [x for x in list_episodes(self._directory) if x not in self._known]
    self._known.update(new)
    return new


class _Memory:
  """Episodes of a folder, of which those used last stay in memory.

  Args:
    reader: Function from filename to episode.
    directory: Folder of .npz files.
    max_bytes: Memory for episodes; None for a quarter of what the process may
      use, as there are two loaders and much else.
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
    """Return the names of files that are new and can be read."""
    return [x for x in self._watch.find_new() if self._read(x) is not None]

  def read(self, filenames):
    """Return an iterator over episodes, without those that are gone."""
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
          'Episodes in %s take more than %.1f MiB. From now on, some are read '
          'from disk again when they are drawn; raise loader_max_bytes to '
          'keep more in memory.',
          self._directory,
          self._max_bytes / 2**20,
        )
    return episode


def _count_bytes(episode):
  return sum(getattr(x, 'nbytes', 0) for x in nested.flatten(episode))


def read_episode(reader: Callable[[str], Any], filename: str) -> Any:
  """Return what a reader makes of a file; None if it is gone or damaged.

  A damaged file is set aside. Errors of the system, such as a disk that does
  not answer, are raised: the file may be fine.

  Args:
    reader: Function from the path to an episode, or to a part of it.
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
  """Rename a file that cannot be used as an episode, and say so."""
  aside = filename + '.damaged'
  logging.getLogger(__name__).warning(
    'Episode %s cannot be used (%s); it is now named %s.',
    filename,
    ' '.join(str(reason).split()),
    os.path.basename(aside),
  )
  # Another process that reads the same folder may have been faster.
  with contextlib.suppress(FileNotFoundError):
    os.replace(filename, aside)
