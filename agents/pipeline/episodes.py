"""Cutter for algorithms that learn from whole episodes."""

import numpy as np

from agents.run import errors


class EpisodeCutter:
  """Cuts the rows of chunks into episodes, which may reach over chunks.

  An episode ends where the mask of the next index is zero. What a worker has
  begun is kept until the chunk in which it ends; if the worker is reset in
  between, it is forgotten.

  Behind its end, an episode holds what its worker did earlier. This is how
  `agents.ppo.memory` does it, and PPO takes means over padding, too: zeros
  would give other numbers than `agents.train_ppo`.

  Args:
    keys: Keys of the chunks to keep.
    max_length: Number of steps of the longest episode.
  """

  def __init__(self, keys, max_length):
    self._keys = tuple(keys)
    self._max_length = max_length
    self._rows = {}
    self._lengths = None

  def cut(self, chunk):
    """Episodes that end in a chunk.

    Args:
      chunk: Dict from key to array [workers, T + 1, ...], with `/masks`
        [workers, T + 1, 1].

    Returns:
      List of pairs of a dict from key to array [max_length, ...] and the
      length, in the order in which the episodes have ended, and of workers
      where this is the same.

    Raises:
      UsageError: If an episode is too long, or the number of workers changes.
    """
    masks = chunk['/masks'][..., 0]
    workers, steps = masks.shape[0], masks.shape[1] - 1
    self._prepare(chunk, workers)
    self._lengths[masks[:, 0] == 0] = 0
    begins, finished = np.zeros(workers, int), []
    for last, worker in np.argwhere(masks[:, 1:].T == 0):
      self._append(chunk, worker, begins[worker], last + 1)
      episode = {key: rows[worker].copy() for key, rows in self._rows.items()}
      finished.append((episode, int(self._lengths[worker])))
      self._lengths[worker] = 0
      begins[worker] = last + 1
    for worker, begin in enumerate(begins):
      self._append(chunk, worker, begin, steps)
    return finished

  def state_dict(self):
    """The unfinished episodes, an array per key and the lengths."""
    return {
      'rows': {k: v.copy() for k, v in self._rows.items()},
      'lengths': None if self._lengths is None else self._lengths.copy(),
    }

  def load_state_dict(self, state):
    """Undo `state_dict`."""
    self._rows = {k: np.array(v) for k, v in state['rows'].items()}
    lengths = state['lengths']
    self._lengths = None if lengths is None else np.array(lengths)

  def _prepare(self, chunk, workers):
    if self._lengths is None:
      self._lengths = np.zeros(workers, int)
      for key in self._keys:
        shape = (workers, self._max_length) + chunk[key].shape[2:]
        self._rows[key] = np.zeros(shape, chunk[key].dtype)
    if len(self._lengths) != workers:
      raise errors.UsageError(
        f'There are unfinished episodes of {len(self._lengths)} workers, but a '
        f'chunk of {workers}; continue with as many workers as before.'
      )

  def _append(self, chunk, worker, begin, end):
    """Add steps to the unfinished episode of a worker."""
    first = self._lengths[worker]
    last = first + end - begin
    if last > self._max_length:
      raise errors.UsageError(
        f'An episode of worker {worker} has {last} steps or more, but at most '
        f'{self._max_length} are allowed; raise max_length, or limit the '
        'environment to it.'
      )
    for key, rows in self._rows.items():
      rows[worker, first:last] = chunk[key][worker, begin:end]
    self._lengths[worker] = last
