"""Replay of entire episodes, from which transitions are sampled."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from agents.run import errors
from baselines_her.her_sampler import Draws, HindsightSampler
from baselines_her.settings import Settings
from baselines_her.util import Episode

Sampler = Callable[[Episode, int], Episode]


def dims_to_shapes(input_dims: dict[str, int]) -> dict[str, tuple[int, ...]]:
  """Return a dict from key to shape of one entry; size zero means a scalar."""
  return {k: (v,) if v > 0 else () for k, v in input_dims.items()}


def create(
  settings: Settings,
  input_dims: dict[str, int],
  sample_transitions: Sampler | None,
) -> 'ReplayBuffer':
  """Create a buffer for the episodes of an agent.

  Args:
    settings: Complete settings. The capacity is rounded down to a multiple of
      the number of environments.
    input_dims: Dict of the sizes of `o`, `g`, `u` and `info_*`.
    sample_transitions: See `ReplayBuffer`.
  """
  T, num_envs = settings.T, settings.rollout_batch_size
  assert T, 'incomplete settings'
  entries = dims_to_shapes(input_dims)
  shapes = {key: (T - 1, *shape) for key, shape in entries.items()}
  shapes.update(o=(T, *entries['o']), ag=(T, *entries['g']))
  size = settings.buffer_size // num_envs * num_envs
  return ReplayBuffer(shapes, size, T, sample_transitions)


class ReplayBuffer:
  """Stores entire episodes; when full, overwrites random ones.

  Unlike in the original, episodes may end before the time limit. They are
  filled with their last state, and have their number of transitions as
  `length`. Only these are sampled, except by functions other than
  `HindsightSampler`, to which such an episode looks like one that stays where
  it ended.

  Args:
    buffer_shapes: Dict from key to the shape of one episode, [time, size].
    size_in_transitions: Capacity in steps, T per episode.
    T: Time limit of the episodes. As in the original, sizes count T steps per
      episode, but only T - 1 transitions of each are stored.
    sample_transitions: Function of a dict of episodes and a batch size to a
      dict of transitions; see `baselines_her.her_sampler`.

  Attributes:
    buffers: Dict from key to float64 array [capacity, time, size].
    lengths: Transitions of each episode, int64 [capacity].
    size: Capacity in episodes.
    current_size: Number of stored episodes.
    n_transitions_stored: Total number of steps stored so far, T per episode.
  """

  def __init__(
    self,
    buffer_shapes: dict[str, tuple[int, ...]],
    size_in_transitions: int,
    T: int,
    sample_transitions: Sampler | None,
  ):
    self.T, self.size = T, size_in_transitions // T
    self.sample_transitions = sample_transitions
    # Memory is only taken where episodes are written.
    try:
      self.buffers = {
        key: np.empty((self.size, *shape))
        for key, shape in buffer_shapes.items()
      }
    except MemoryError as error:
      key = max(buffer_shapes, key=lambda x: math.prod(buffer_shapes[x]))
      part = f'info[{key[5:]!r}]' if key.startswith('info_') else key
      raise errors.UsageError(
        f'There is not enough memory for {size_in_transitions} transitions: '
        f'{error}. Most of it is for {part}, of size {buffer_shapes[key][-1]}; '
        'leave out what is large, or lower buffer_size.'
      ) from None
    self.lengths = np.full(self.size, T - 1)
    self.current_size = 0
    self.n_transitions_stored = 0

  @property
  def full(self) -> bool:
    """Whether new episodes replace old ones."""
    return self.current_size == self.size

  def sample(self, batch_size: int) -> Episode:
    """Draw transitions from the stored episodes.

    Args:
      batch_size: Number of transitions.

    Returns:
      Dict of arrays [batch_size, ...] with all keys of the buffer, the next
      `o_2` and `ag_2`, and the rewards `r`.
    """
    assert self.current_size > 0, 'the buffer is empty'
    return self.draw(self._held(), batch_size)

  def draw(self, episodes: Mapping[str, np.ndarray], count: int) -> Episode:
    """Draw transitions from other episodes, like `sample`.

    Args:
      episodes: See `store_episode`.
      count: Number of transitions.
    """
    sampler = self.sample_transitions
    assert sampler, 'the buffer has no way to sample'
    after = {'o_2': episodes['o'][:, 1:], 'ag_2': episodes['ag'][:, 1:]}
    rows = {k: v for k, v in episodes.items() if k != 'length'}
    if 'length' in episodes and isinstance(sampler, HindsightSampler):
      draws = _draw(episodes['length'], count, sampler.relabel_probability)
      return sampler.gather({**rows, **after}, draws)
    return sampler({**rows, **after}, count)

  def store_episode(self, episode_batch: Mapping[str, np.ndarray]) -> None:
    """Store a batch of episodes.

    Args:
      episode_batch: Dict of arrays [episodes, time, size] with at least the
        keys of the buffer, and the `length` [episodes] if some have ended
        before the time limit.
    """
    count = len(episode_batch['u'])
    counts = {len(x) for x in episode_batch.values()}
    assert counts == {count}, f'different numbers of episodes: {counts}'
    places = self._get_storage_idx(count)
    for key, values in self.buffers.items():
      values[places] = episode_batch[key]
    lengths = episode_batch.get('length', self.T - 1)
    self.lengths[np.atleast_1d(places)] = lengths
    self.n_transitions_stored += count * self.T

  def get_current_episode_size(self) -> int:
    """Return the number of stored episodes."""
    return self.current_size

  def get_current_size(self) -> int:
    """Return the number of stored episodes times the time limit."""
    return self.current_size * self.T

  def get_transitions_stored(self) -> int:
    """Return the total number of steps stored so far, T per episode."""
    return self.n_transitions_stored

  def clear_buffer(self) -> None:
    """Remove all episodes."""
    self.current_size = 0

  def state_dict(self) -> dict[str, Any]:
    """Return the filled part and the counters for checkpoints."""
    return {**self._held(), 'n_transitions_stored': self.n_transitions_stored}

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Restore the result of `state_dict` of a buffer with the same shapes.

    Raises:
      UsageError: If the shapes differ.
    """
    for key, values in self.buffers.items():
      if key not in state or state[key].shape[1:] != values.shape[1:]:
        raise errors.UsageError(
          f'The environment of the run has changed: its episodes have {key} of '
          'another size. Start a new run.'
        )
    self.current_size = len(state['u'])
    for key, values in self.buffers.items():
      values[: self.current_size] = state[key]
    self.lengths[: self.current_size] = state.get('length', self.T - 1)
    self.n_transitions_stored = int(state['n_transitions_stored'])

  def _held(self) -> Episode:
    """Return the stored episodes, with `length` if some are short."""
    held = {k: v[: self.current_size] for k, v in self.buffers.items()}
    lengths = self.lengths[: self.current_size]
    if (lengths != self.T - 1).any():
      held['length'] = lengths
    return held

  def _get_storage_idx(self, inc: int) -> np.ndarray:
    """Choose slots for new episodes: free ones first, then random ones.

    Unlike in a ring, random episodes are overwritten, some of them perhaps
    twice; recorded numbers depend on it.
    """
    assert inc <= self.size, f'{inc} episodes do not fit into {self.size}'
    free = min(inc, self.size - self.current_size)
    places = np.arange(self.current_size, self.current_size + free)
    if free < inc:
      # When full, any may be overwritten; otherwise those that were there
      # before.
      taken = np.random.randint(0, self.current_size, inc - free)
      places = np.concatenate([places, taken])
    self.current_size += free
    return places[0] if inc == 1 else places


def _draw(lengths, count, relabel_probability):
  """Choose uniformly among the transitions of episodes of several lengths.

  Episodes of one length go through `HindsightSampler.draw`, with the original's
  order of random numbers.

  Args:
    lengths: Number of transitions of each episode, int [episodes].
    count: Number of transitions to choose.
    relabel_probability: Fraction of transitions that get a new goal.
  """
  ends = np.cumsum(lengths)
  index = np.random.randint(0, ends[-1], count)
  episode = np.searchsorted(ends, index, 'right')
  left = ends[episode] - index
  relabel = np.random.uniform(size=count) < relabel_probability
  offset = (np.random.uniform(size=count) * left).astype(int)
  time = lengths[episode] - left
  return Draws(episode, time, relabel, time + 1 + offset)
