"""Memory for algorithms that learn from entire episodes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from agents.pipeline import base, chunks
from agents.run import errors, references, schema


@references.nameable
class EpisodeMemory(base.MemoryBase):
  """Splits chunks into episodes, and stores them until they are taken.

  An episode ends where the mask of the next index is zero. An unfinished
  episode is kept until the chunk in which it ends; if its worker is reset
  before that, it is discarded.

  As padding, an episode holds earlier steps of its worker. `agents.ppo.memory`
  does the same, and PPO takes means over padding, too: zeros would give other
  numbers than `agents.train_ppo`.

  Args:
    session: Session that the memory belongs to.
    mode: Mode of the explorer that fills it.
    keys: Keys of the chunks to keep.
    max_length: Maximum number of steps per episode.

  Raises:
    UsageError: If an argument has the wrong type.
  """

  def __init__(
    self,
    session: Any,
    mode: str = 'train',
    *,
    keys: Sequence[str],
    max_length: int,
  ) -> None:
    super().__init__(session, mode)
    self._keys, self._max_length = (
      schema.convert(kind, value, f'{name} of memory {mode!r}')
      for name, kind, value in (
        ('keys', list[schema.Name], keys),
        ('max_length', schema.Positive, max_length),
      )
    )
    self.clear()

  def clear(self) -> None:
    """Remove all episodes, finished or not."""
    self._rows: dict[str, np.ndarray] = {}
    self._lengths: Any = None
    self._finished: list[tuple[dict[str, np.ndarray], int]] = []

  @property
  def length(self) -> int:
    """Number of finished episodes."""
    return len(self._finished)

  def store(self, chunk: Mapping[str, np.ndarray]) -> None:
    """Add the steps of a chunk to episodes.

    Orders episodes by the time at which they ended, and then by worker.

    Args:
      chunk: Dict from key to array [workers, T + 1, ...], with `/masks`
        [workers, T + 1, 1].

    Raises:
      UsageError: If an episode is too long, or the chunk lacks a key.
    """
    for key in ('/masks', *self._keys):
      errors.find('Key of the chunks', key, chunk)
    masks = chunk['/masks'][..., 0]
    workers, steps = masks.shape[0], masks.shape[1] - 1
    if self._lengths is None:
      self._lengths = np.zeros(workers, int)
      for key in self._keys:
        shape = (workers, self._max_length) + chunk[key].shape[2:]
        self._rows[key] = np.zeros(shape, chunk[key].dtype)
    lengths = self._lengths
    lengths[masks[:, 0] == 0] = 0
    begins = np.zeros(workers, int)
    for last, worker in np.argwhere(masks[:, 1:].T == 0):
      self._append(chunk, worker, begins[worker], last + 1)
      episode = {key: rows[worker].copy() for key, rows in self._rows.items()}
      self._finished.append((episode, int(lengths[worker])))
      lengths[worker] = 0
      begins[worker] = last + 1
    for worker, begin in enumerate(begins):
      self._append(chunk, worker, begin, steps)

  def take(self, count: int) -> dict[str, np.ndarray] | None:
    """Remove all finished episodes and return the oldest ones.

    Args:
      count: Number of episodes to return.

    Returns:
      Dict from key to array [count, max_length, ...], and `/lengths` [count];
      None if there are too few, which are then kept.
    """
    if len(self._finished) < count:
      return None
    taken, self._finished = self._finished[:count], []
    return self._stack(taken)

  def state_dict(self) -> dict[str, Any]:
    """Return all episodes, finished or not."""
    if self._lengths is None:
      return {}
    return {
      'rows': self._rows,
      'lengths': self._lengths,
      'finished': self._stack(self._finished),
    }

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    self.clear()
    if not state:
      return
    self._rows = {k: np.array(v) for k, v in state['rows'].items()}
    self._lengths = np.array(state['lengths'])
    finished = {k: np.array(v) for k, v in state['finished'].items()}
    for row, length in enumerate(finished.pop('/lengths')):
      episode = {key: value[row] for key, value in finished.items()}
      self._finished.append((episode, int(length)))

  def _stack(self, episodes):
    """Arrays [episodes, max_length, ...] and lengths of some episodes."""
    arrays = {
      key: np.array([x[key] for x, _ in episodes], rows.dtype).reshape(
        (len(episodes), *rows.shape[1:])
      )
      for key, rows in self._rows.items()
    }
    return {**arrays, '/lengths': np.array([x for _, x in episodes], int)}

  def _append(self, chunk, worker, begin, end):
    """Add steps to the unfinished episode of a worker."""
    first = self._lengths[worker]
    last = first + end - begin
    if last > self._max_length:
      raise errors.UsageError(
        f'An episode of worker {worker} has at least {last} steps, but at most '
        f'{self._max_length} are allowed; raise max_length, or limit the '
        'environment to it.'
      )
    for key, rows in self._rows.items():
      self._rows[key] = chunks.widened(rows, chunk[key].dtype)
      self._rows[key][worker, first:last] = chunk[key][worker, begin:end]
    self._lengths[worker] = last
