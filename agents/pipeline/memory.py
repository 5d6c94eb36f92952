"""Memories that store the chunks of explorers as plain arrays."""

import fnmatch
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from agents.pipeline import base, chunks
from agents.run import errors, references, schema


@references.nameable
class RingMemory(base.MemoryBase):
  """Memory that overwrites its oldest entries when it is full.

  Each chunk overwrites the overrun of the previous chunk, because the half-step
  at its end is the first step of the next one.

  Args:
    session: Session that the memory belongs to.
    mode: Mode of the explorer that fills it.
    chunk_sample_len: Number of steps per chunk.
    buffer_chunk_len: Number of chunks to keep.
    overrun: Number of entries of a chunk after its steps.
    exclude_keys: Patterns of keys that are not stored.

  Attributes:
    capacity: Maximum number of entries per worker.
    length: Number of entries per worker, including the overrun.
    end: Index of the newest entry.

  Raises:
    UsageError: If the sizes leave no room for a chunk.
  """

  def __init__(
    self,
    session: Any,
    mode: str = 'train',
    chunk_sample_len: int = 1,
    buffer_chunk_len: int = 1000,
    overrun: int = 1,
    exclude_keys: Sequence[str] = ('/infos/*',),
  ) -> None:
    super().__init__(session, mode)
    self._steps, self._chunks, self._overrun = (
      schema.convert(schema.Count, value, f'{name} of memory {mode!r}')
      for name, value in (
        ('chunk_sample_len', chunk_sample_len),
        ('buffer_chunk_len', buffer_chunk_len),
        ('overrun', overrun),
      )
    )
    called = f'exclude_keys of memory {mode!r}'
    self._exclude = schema.convert(list[str], exclude_keys, called)
    self.capacity = self._find_capacity()
    if self.capacity < self._steps + self._overrun:
      raise errors.UsageError(
        f'A memory of {self._chunks} chunks of {self._steps} steps has no room '
        f'for the overrun of {self._overrun}; raise buffer_chunk_len.'
      )
    self._kept: dict[str, bool] = {}
    self.clear()

  def clear(self) -> None:
    """Remove all entries."""
    self.length = 0
    self.end = self._overrun - 1
    self._arrays: dict[str, np.ndarray] = {}

  @property
  def start(self) -> int:
    """Index of the oldest entry."""
    return (self.end - self.length + 1) % self.capacity

  @property
  def num_workers(self) -> int | None:
    """Number of workers, None before the first chunk."""
    return next((len(x) for x in self._arrays.values()), None)

  @property
  def num_valid(self) -> int:
    """Number of entries per worker that have a successor."""
    return max(0, self.length - self._overrun)

  def get_index(self, order: Any) -> Any:
    """Return the indices of entries by age rank, 0 for the oldest."""
    return (self.start + order) % self.capacity

  def get_index_move_n_steps(self, index: Any, n: int) -> np.ndarray:
    """Return the indices `n` steps after others."""
    return (index + n) % self.capacity

  def get_buffer(self) -> dict[str, np.ndarray]:
    """Return read-only arrays [workers, capacity, ...] by key."""
    views = {key: array.view() for key, array in self._arrays.items()}
    for view in views.values():
      view.flags.writeable = False
    return views

  def get_last_chunk(self) -> dict[str, np.ndarray]:
    """Return arrays [workers, T + overrun, ...] by key, in time order."""
    first = self.length - self._steps - self._overrun
    return self._read(first, self.length) if first >= 0 else {}

  def store(self, chunk: Mapping[str, np.ndarray]) -> None:
    chunk = {k: v for k, v in chunk.items() if self._is_kept(k)}
    self._check(chunk)
    self._make_room()
    first = self.end - self._overrun + 1
    index = np.arange(first, first + self._steps + self._overrun)
    index %= self.capacity
    self.length = max(self.length, self._overrun) + self._steps
    self.length = min(self.length, self.capacity)
    self.end = (self.end + self._steps) % self.capacity
    is_empty = not self._arrays
    for key, value in chunk.items():
      if key not in self._arrays:
        self._allocate(key, value)
      self._arrays[key] = chunks.widened(self._arrays[key], value.dtype)
      self._arrays[key][:, index] = value
    for key in self._arrays.keys() - chunk.keys():
      self._arrays[key][:, index] = fill_value(self._arrays[key].dtype)
    if is_empty:
      self._report()

  def state_dict(self) -> dict[str, np.ndarray]:
    """Return arrays [workers, length, ...] by key, oldest entry first."""
    return self._read(0, self.length)

  def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
    """Replace the contents; the oldest entry gets index 0."""
    self.clear()
    state = {k: v for k, v in state.items() if self._is_kept(k)}
    lengths = {np.shape(x)[1] for x in state.values()}
    length = max(lengths, default=0)
    if len(lengths) > 1 or length > self.capacity:
      raise errors.UsageError(
        f'The stored memory has {length} entries, but this one has room for '
        f'{self.capacity}; use the same size.'
      )
    for key, value in state.items():
      self._allocate(key, value)
      self._arrays[key][:, :length] = value
    if state:
      self.length, self.end = length, length - 1

  def _find_capacity(self):
    return self._steps * self._chunks

  def _make_room(self):
    """Prepare for a chunk; the ring only wraps around."""

  def _is_kept(self, key):
    if key not in self._kept:
      matches = (fnmatch.fnmatchcase(key, x) for x in self._exclude)
      self._kept[key] = not any(matches)
    return self._kept[key]

  def _check(self, chunk):
    if not chunk:
      raise errors.UsageError(
        'A chunk has no key to store; change exclude_keys.'
      )
    workers = self.num_workers or len(next(iter(chunk.values())))
    leading = (workers, self._steps + self._overrun)
    for key, value in chunk.items():
      known = self._arrays.get(key)
      expected = leading + (value if known is None else known).shape[2:]
      if value.shape != expected:
        raise errors.UsageError(
          f'Key {key} of a chunk has shape {value.shape}, but must have '
          f'{expected}: workers, steps plus overrun, shape of an entry.'
        )

  def _allocate(self, key, value):
    """Create the array of a new key; earlier entries count as missing."""
    shape = (len(value), self.capacity) + value.shape[2:]
    # Zeros take no memory until they are written to.
    array = np.zeros(shape, value.dtype)
    if array.dtype.kind == 'f' and self.length:
      passed = self.get_index(np.arange(self.length))
      array[:, passed] = fill_value(array.dtype)
    self._arrays[key] = array

  def _read(self, first, last):
    """Copies of entries by their order."""
    index = self.get_index(np.arange(first, last))
    return {key: value[:, index] for key, value in self._arrays.items()}

  def _report(self):
    sizes = {k: v.nbytes / 2**20 for k, v in self._arrays.items()}
    parts = ', '.join(f'{key}: {size:.1f} MB' for key, size in sizes.items())
    self.session.logger.info(
      f'Memory {self.mode!r} will use {sum(sizes.values()):.1f} MB: {parts}'
    )


@references.nameable
class RollMemory(RingMemory):
  """Memory that keeps its entries in time order, the oldest at index 0.

  With a `buffer_chunk_len` of 1 it holds the newest chunk. The arguments are
  those of `RingMemory`. No parameters of this project use it.
  """

  def _find_capacity(self):
    return self._steps * self._chunks + self._overrun

  def _make_room(self):
    if self.end + self._steps < self.capacity:
      return
    for array in self._arrays.values():
      array[:, : -self._steps] = array[:, self._steps :]
    self.end -= self._steps
    self.length -= self._steps


def fill_value(dtype: np.dtype) -> np.ndarray:
  """Return the value of missing entries: NaN, or zero for other types."""
  return np.array(np.nan if dtype.kind == 'f' else 0, dtype)
