"""Convert stored steps to the data of an optimization step.

A sampler is a function of data and a dict of options, `info`. `Compose` chains
several samplers.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from agents.pipeline import toolbox
from agents.run import errors, references

# Drawing again ends soon unless nearly all transitions are lost.
_MOST_DRAWS = 1000


def reads(*options: str) -> Callable[[Any], Any]:
  """Return a decorator of a sampler that reads only these options."""

  def declare(function):
    function.options = options
    return function

  return declare


@references.nameable
class Compose:
  """Apply functions one after another.

  Args:
    functions: Each takes the result of the previous one and a dict of options,
      which it may extend, and returns new data. None ends the chain.
    info: Options for the first function; copied for each call.

  Raises:
    UsageError: If there is no function, or none that reads an option.
  """

  def __init__(
    self, functions: Sequence[Callable[[Any, dict], Any]], **info: Any
  ) -> None:
    if not functions or isinstance(functions, (str, Mapping)):
      raise errors.UsageError(
        f'The functions of the sampler are {functions!r}; give a list with at '
        'least one function.'
      )
    self._functions = tuple(functions)
    for function in self._functions:
      toolbox.check_function(function, 'A function of the sampler')
    known: list[Any] = [getattr(x, 'options', None) for x in self._functions]
    # Functions of users read what they like.
    if None not in known:
      named = dict.fromkeys(itertools.chain(*known))
      for name in info:
        errors.find('Option of the sampler', name, named)
    self._info = info

  def __call__(self, data: Any) -> Any:
    """Return the result of the last function, None for too little data."""
    info = dict(self._info)
    for function in self._functions:
      data = function(data, info)
      if data is None:
        return None
    return data


@references.nameable
@reads('mode')
def pick_memory(memories: Mapping[str, Any], info: dict[str, Any]) -> Any:
  """Return the memory of the mode `info['mode']`, by default that of training.

  Args:
    memories: Dict from mode to memory.
    info: Options.
  """
  return errors.find('Memory', info.get('mode', 'train'), memories)


@references.nameable
@reads()
def get_last_chunk(
  memory: Any, unused_info: Mapping[str, Any]
) -> dict[str, np.ndarray] | None:
  """Return the newest chunk of a memory, None if there is none yet."""
  return memory.get_last_chunk() or None


@references.nameable
@reads('count')
def take_episodes(
  memory: Any, info: dict[str, Any]
) -> dict[str, np.ndarray] | None:
  """Take entire episodes from a memory.

  Args:
    memory: `agents.pipeline.episodes.EpisodeMemory`.
    info: Options; `count` is the number of episodes.

  Returns:
    Dict from key to array [count, max_length, ...], and `/lengths` [count];
    None if there are too few.
  """
  return memory.take(_count(info, 'count'))


@references.nameable
@reads('batch_size')
def sample_replay(
  memory: Any, info: dict[str, Any]
) -> dict[str, np.ndarray] | None:
  """Draw transitions uniformly, with replacement.

  The successor of a step that ended an episode is its final observation, not
  the first one of the next episode. Transitions whose successor is unknown,
  because the explorer was reset, are drawn again.

  Args:
    memory: Ring memory with chunks of `GymExplorer`.
    info: Options; `batch_size` is the number of transitions.

  Returns:
    Dict of arrays [batch, ...] for all keys of the memory, and the successors
    as `/observations/<path>_2`; None unless more than `batch_size` transitions
    are stored.

  Raises:
    UsageError: If the memory does not store the final observation of a
      truncated episode.
  """
  batch_size = _count(info, 'batch_size')
  buffer = memory.get_buffer()
  if not buffer or batch_size >= memory.num_valid * memory.num_workers:
    return None
  for key in ('/masks', '/terminals', '/truncations'):
    errors.find('Key of the memory', key, buffer)
  rows, index, following = _draw(memory, buffer, batch_size)
  batch = {key: value[rows, index] for key, value in buffer.items()}
  truncated = batch['/truncations'][:, 0] > 0
  ended = truncated | (batch['/terminals'][:, 0] > 0)
  for key in [x for x in buffer if x.startswith('/observations/')]:
    batch[f'{key}_2'] = successor = buffer[key][rows, following]
    name = key.replace('/', '/final_', 1)
    if name in batch:
      successor[ended] = batch.pop(name)[ended]
    elif truncated.any():
      raise errors.UsageError(
        f'The memory does not store {name}, which truncated episodes need; '
        'remove it from exclude_keys.'
      )
  return batch


@references.nameable
@reads('agent', 'gamma', 'tau')
def compute_advantages(
  chunk: Mapping[str, np.ndarray], info: dict[str, Any]
) -> dict[str, np.ndarray]:
  """Add returns and normalized advantages to a chunk.

  With value V, reward r, discount gamma and m = 0 where an episode starts:

    delta_t = r_t + gamma m_{t+1} V_{t+1} - V_t
    A_t = delta_t + gamma tau m_{t+1} A_{t+1},  return_t = A_t + V_t

  (Schulman et al., 2016, arXiv:1506.02438, equation 16, where tau is called
  lambda), or with tau = None: R_T = V_T, return_t = r_t +
  gamma m_{t+1} return_{t+1}. Advantages are returns minus values, normalized to
  mean zero and standard deviation one over the chunk.

  Args:
    chunk: Dict with `/rewards`, `/masks` and `/agents/<a>/artifacts/values`
      [workers, T + 1, 1].
    info: Options; `agent`, `gamma` and `tau`.

  Returns:
    The chunk with `/agents/<a>/artifacts/returns` and `advantages`, NaN in the
    half-step.
  """
  for name in ('agent', 'gamma', 'tau'):
    if name not in info:
      raise errors.UsageError(
        f'The args of the sampler have no {name}; add it.'
      )
  agent, gamma, tau = info['agent'], info['gamma'], info['tau']
  prefix = f'/agents/{agent}/artifacts'
  values = errors.find('Key of the chunk', f'{prefix}/values', chunk)
  rewards = chunk['/rewards']
  baseline, advantage = values, np.zeros_like(values[:, -1])
  if tau is None:
    # Over a baseline of zero, the advantage is the return.
    baseline, advantage, tau = np.zeros_like(values), values[:, -1], 1.0
  returns = np.full_like(values, np.nan)
  for time in reversed(range(values.shape[1] - 1)):
    factor = gamma * chunk['/masks'][:, time + 1]
    after = factor * baseline[:, time + 1]
    delta = rewards[:, time] + after - baseline[:, time]
    advantage = delta + tau * factor * advantage
    returns[:, time] = advantage + baseline[:, time]
  advantages = returns - values
  advantages -= advantages[:, :-1].mean()
  advantages /= advantages[:, :-1].std() + 1e-5
  found = {'returns': returns, 'advantages': advantages}
  return {**chunk, **{f'{prefix}/{k}': v for k, v in found.items()}}


def _count(info, name):
  """Return an option that is a number of things."""
  value = info.get(name)
  if not isinstance(value, int) or value < 1:
    raise errors.UsageError(
      f'The args of the sampler have {value!r} as {name}; give a whole number '
      'of 1 or more.'
    )
  return value


def _draw(memory, buffer, count):
  """Workers and indices of transitions, and indices of their successors."""
  rows, order = np.zeros((2, count), int)
  lost = np.ones(count, bool)
  for _ in range(_MOST_DRAWS):
    size = int(lost.sum())
    rows[lost] = np.random.randint(memory.num_workers, size=size)
    order[lost] = np.random.randint(memory.num_valid, size=size)
    index = memory.get_index(order)
    following = memory.get_index_move_n_steps(index, 1)
    begins = buffer['/masks'][rows, following, 0] == 0
    ended = buffer['/terminals'][rows, index, 0] > 0
    ended |= buffer['/truncations'][rows, index, 0] > 0
    lost = begins & ~ended
    if not lost.any():
      return rows, index, following
  raise errors.UsageError(
    'Almost no transition in the memory has a successor, because the explorer '
    'is reset too often; set its do_reset to False, or raise n_steps.'
  )
