"""Recorded episodes on disk: what they hold, how many, how well they went."""

import logging
import os
import threading
import time
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from agents.run import errors
from planet.tools import loaders

_logger = logging.getLogger(__name__)


def check(
  directory: str, shapes: Mapping[str, Sequence[int]], min_length: int = 1
) -> None:
  """Make sure that a folder holds episodes of the right kind.

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
  foreign, lengths = {}, {}
  for filename in loaders.list_episodes(directory):
    try:
      found, length = _read_shapes(filename)
    except (OSError, EOFError, ValueError, zipfile.BadZipFile) as error:
      loaders.quarantine(filename, error)
      continue
    if found == expected:
      lengths[filename] = length
    else:
      foreign[filename] = found
  if foreign and not lengths:
    found = _describe(next(iter(foreign.values())))
    raise errors.UsageError(
      f'Episodes in {directory} have {found}'
      f', but this task has {_describe(expected)}. Use another logdir, or '
      'the parameters that the episodes were recorded with.'
    )
  shortest = min(lengths, key=lambda x: lengths[x], default=None)
  if shortest and lengths[shortest] < min_length:
    raise errors.UsageError(
      f'Episode {shortest} has {lengths[shortest]} observations, but '
      f'batch_shape and num_chunks need {min_length}; lower them, or move '
      'the file away.'
    )
  for filename, found in foreign.items():
    loaders.quarantine(filename, f'it has {_describe(found)}')


class EpisodeLog:
  """Keeps count of the episodes in a folder, also of those to come.

  Several threads may ask for updates.

  Args:
    directory: Folder of .npz files.
    tasks: List of `planet.scripts.tasks.Task` that the episodes are of.

  Attributes:
    returns: List of the sums of rewards, in the order of appearance.
    steps: Number of environment steps in all episodes.
    bytes: Size of all files.
  """

  def __init__(self, directory: str, tasks: Sequence[Any]) -> None:
    self._directory = directory
    self._tasks = tasks
    self._known: set[str] = set()
    self._last_look = 0.0
    self._lock = threading.Lock()
    self.returns: list[float] = []
    self.steps = 0
    self.bytes = 0

  def update(self, min_age: float = 0.0) -> None:
    """Look for new episodes, unless that was done some seconds ago."""
    with self._lock:
      if time.time() - self._last_look >= min_age:
        first = not self._last_look
        self._last_look = time.time()
        self._look(first)

  def _look(self, first):
    for filename in loaders.list_episodes(self._directory):
      if filename in self._known:
        continue
      self._known.add(filename)
      if not first:
        log_recorded(filename)
      try:
        with np.load(filename) as episode:
          reward = episode['reward']
        self.bytes += os.path.getsize(filename)
      except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile):
        continue
      decisions = len(reward) - 1
      self.steps += decisions * _find_repeat(decisions, self._tasks)
      self.returns.append(float(reward.sum()))


def log_recorded(filename: str) -> None:
  """Write to the log that there is a new episode."""
  folder, name = os.path.split(filename)
  _logger.debug(
    'Recorded episode %s to %s.', name[:-4], os.path.basename(folder)
  )


def _find_repeat(decisions, tasks):
  """Return the action repeat of the task that an episode is of.

  Files do not name the task, but their length tells where repeats differ: it
  is that of the task, or less if the episode ended early.
  """
  fitting = [x for x in tasks if x.max_length >= decisions] or tasks
  return min(fitting, key=lambda x: x.max_length).action_repeat


def _read_shapes(filename):
  """Read the shapes of one step and the number of steps, without the arrays."""
  shapes: dict[str, tuple[int, ...]] = {}
  lengths: list[int] = []
  with zipfile.ZipFile(filename) as archive:
    for name in archive.namelist():
      with archive.open(name) as file_:
        version = np.lib.format.read_magic(file_)
        read = (
          np.lib.format.read_array_header_1_0
          if version == (1, 0)
          else np.lib.format.read_array_header_2_0
        )
        shape, _, _ = read(file_)
      shapes[name.removesuffix('.npy')] = tuple(shape[1:])
      lengths.extend(shape[:1])
  return shapes, min(lengths, default=0)


def _describe(shapes):
  return ', '.join(
    f'{key} {list(shape)}' for key, shape in sorted(shapes.items())
  )
