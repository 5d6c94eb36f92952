"""Endless streams of recorded episodes.

Loaders draw from the global generators of Python and NumPy, like the
original; its recorded sequences depend on the order of the draws.
"""

import glob
import logging
import os
import random
import time
import zipfile

import numpy as np

_PATIENCE = 30.0


def cache_loader(reader, directory, batch_size, every):
  """Keep all episodes in memory and look for new ones now and then.

  Yields episodes in fresh permutations of a random sample of the cache.

  Args:
    reader: Function from filename to episode.
    directory: Folder of .npz files.
    batch_size: Unused.
    every: Number of episodes between two scans, and size of the sample.

  Yields:
    Episodes as returned by the reader.

  Raises:
    RuntimeError: If no episode appears for half a minute.
  """
  del batch_size
  cache = {}
  waiting = _Waiting(directory)
  while True:
    selected = _sample(list(cache.values()), every)
    yield from _permuted(selected, every)
    cache.update(_read_new(reader, directory, cache))
    waiting.check(cache)


def recent_loader(reader, directory, batch_size, every):
  """Draw half of the episodes from those that are new since the last scan.

  Args:
    reader: Function from filename to episode.
    directory: Folder of .npz files.
    batch_size: Unused.
    every: Number of episodes between two scans. Half of it is the size of
      the samples from new and from old episodes.

  Yields:
    Episodes as returned by the reader.

  Raises:
    RuntimeError: If no episode appears for half a minute.
  """
  del batch_size
  recent, cache = {}, {}
  half = max(1, every // 2)
  waiting = _Waiting(directory)
  while True:
    selected = _sample(list(recent.values()), half)
    selected += _sample(list(cache.values()), half)
    yield from _permuted(selected, every)
    cache.update(recent)
    recent = _read_new(reader, directory, cache)
    waiting.check(cache or recent)


def reload_loader(reader, directory, batch_size):
  """Read every episode from disk each time, in random order.

  Args:
    reader: Function from filename to episode.
    directory: Folder of .npz files.
    batch_size: Unused.

  Yields:
    Episodes as returned by the reader.

  Raises:
    RuntimeError: If no episode appears for half a minute.
  """
  del batch_size
  waiting = _Waiting(directory)
  while True:
    filenames = _list(directory)
    random.shuffle(filenames)
    found = False
    for filename in filenames:
      episode = _read(reader, filename)
      if episode is not None:
        found = True
        yield episode
    waiting.check(found)


def dummy_loader(reader, directory, batch_size):
  """Yield random data shaped like one real episode.

  Args:
    reader: Function from filename to episode.
    directory: Folder of .npz files.
    batch_size: Unused.

  Yields:
    Dict of arrays, uniform between 0 and 255 for bytes and between 0 and 1
    for floats.

  Raises:
    RuntimeError: If no episode appears for half a minute.
  """
  del batch_size
  example = next(cache_loader(reader, directory, 1, 1))
  generator = np.random.RandomState(seed=0)

  def draw(value):
    high = 255 if value.dtype == np.uint8 else 1
    return generator.uniform(0, high, value.shape).astype(value.dtype)

  while True:
    yield {key: draw(value) for key, value in example.items()}


def _sample(sequence, amount):
  """Random elements without repetition, as many as there are at most."""
  sequence = list(sequence)
  return random.sample(sequence, min(amount, len(sequence)))


def _permuted(sequence, amount):
  """Cycle through fresh permutations until the amount is reached."""
  sequence = list(sequence)
  if not sequence:
    return
  count = 0
  while True:
    for index in np.random.permutation(len(sequence)):
      if count >= amount:
        return
      yield sequence[index]
      count += 1


class _Waiting:
  """Waits for the first episode, but not forever."""

  def __init__(self, directory):
    self._directory = directory
    self._limit = time.time() + _PATIENCE

  def check(self, found):
    if found:
      self._limit = time.time() + _PATIENCE
      return
    if time.time() > self._limit:
      raise RuntimeError(
        f'There are no episodes in {self._directory}; collect some first.'
      )
    time.sleep(0.1)


def _list(directory):
  pattern = os.path.join(glob.escape(os.path.expanduser(directory)), '*.npz')
  return sorted(glob.glob(pattern))


def _read_new(reader, directory, known):
  episodes = {}
  for filename in _list(directory):
    if filename not in known:
      episode = _read(reader, filename)
      if episode is not None:
        episodes[filename] = episode
  return episodes


def _read(reader, filename):
  """Episode, or None after setting a damaged file aside."""
  try:
    return reader(filename)
  except FileNotFoundError:
    return None
  except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile) as e:
    set_aside(filename, e)
    return None


def set_aside(filename, reason):
  """Rename a file that is no usable episode, and say so."""
  aside = filename + '.damaged'
  logging.getLogger(__name__).warning(
    'Episode %s cannot be used (%s); it is now named %s.',
    filename,
    ' '.join(str(reason).split()),
    os.path.basename(aside),
  )
  os.replace(filename, aside)
