"""Demonstration files for the imitation loss.

An .npz file contains `acs`, a float array [episodes, steps, action size],
`obs`, an object array [episodes, steps + 1] of dicts with the keys of goal
environments, and `info`, an object array [episodes, steps] of dicts. If
episodes differ in length, they are object arrays [episodes] of lists. As in the
original, only the beginning is read, so what is longer than that, or belongs to
demonstrations that are not used, may have any length. This is the original's
format, in which the dicts are pickled: reading such a file can run arbitrary
code, so use only files that you trust.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from agents.envs import contract
from agents.run import errors, files
from baselines_her.util import Episode


def read(path: str) -> dict[str, np.ndarray]:
  """Return the arrays of a file.

  The dicts are pickled, so only open files that you trust.

  Returns:
    Dict of `acs`, `obs` and `info`; each is indexed by episode and step.

  Raises:
    UsageError: If the file does not exist or has other contents.
  """
  path = files.expand(path)
  try:
    # What Python 2 has pickled, too; texts of Python 3 say their encoding.
    with np.load(path, allow_pickle=True, encoding='latin1') as archive:
      data = {key: archive[key] for key in ('acs', 'obs', 'info')}
    if not all(len(x) and len(x[0]) for x in data.values()):
      raise ValueError('it has no steps')
    first = data['obs'][0]
    if isinstance(first, dict):
      raise ValueError('obs has dicts instead of episodes, lists of dicts')
    first = first[0]
    if not isinstance(first, dict):
      raise ValueError(f'obs has {first!r} instead of dicts')
    missing = set(contract.GOAL_KEYS) - set(first)
    if missing:
      raise ValueError(f'obs has no {sorted(missing)}')
  except Exception as error:  # Whatever damaged bytes may lead to.
    raise errors.UsageError(
      f'Cannot read demonstrations from {path!r}: {error}. Use an .npz file '
      'with acs, obs and info, such as one written by her-record.'
    ) from None
  return data


def load(
  path: str, num_demo: int, T: int, input_dims: dict[str, int]
) -> Iterator[Episode]:
  """Yield demonstrations as episode batches of one.

  Args:
    path: Path of the file.
    num_demo: Number of demonstrations to use.
    T: Time limit of the task; of each demonstration, the first T of `obs` and
      the first T - 1 of `acs` and `info` are used.
    input_dims: Dict of the sizes of `o`, `g`, `u` and `info_*`.

  Yields:
    Dict of arrays [1, time, size]; `o` and `ag` have T time steps, the
    others T - 1.

  Raises:
    UsageError: If the demonstrations are too few, too short, or from another
      task.
  """
  data = read(path)
  episodes = min(map(len, data.values()))
  if episodes < num_demo:
    raise errors.UsageError(
      f'File {path!r} has {episodes} demonstrations, but num_demo is '
      f'{num_demo}; record more, or set --num_demo={episodes}.'
    )
  for number in range(num_demo):
    for key, least in (('acs', T - 1), ('obs', T), ('info', T - 1)):
      entries = data[key][number]
      found = len(entries) if hasattr(entries, '__len__') else 0
      if found < least:
        raise errors.UsageError(
          f'Demonstration {number} in {path!r} has {found} entries of {key}, '
          f'but the task needs at least {least}; record it in the same '
          'environment.'
        )
  dims = {**input_dims, 'ag': input_dims['g']}
  for number in range(num_demo):
    try:
      obs, info = data['obs'][number][:T], data['info'][number][: T - 1]
      episode = {
        'o': [x['observation'] for x in obs],
        'ag': [x['achieved_goal'] for x in obs],
        'g': [x['desired_goal'] for x in obs[: T - 1]],
        'u': data['acs'][number][: T - 1],
      }
      for key in input_dims:
        if key.startswith('info_'):
          name = key.removeprefix('info_')
          episode[key] = [np.ravel(x[name]) for x in info]
      batch = {k: _to_floats(k, v)[None] for k, v in episode.items()}
    except (KeyError, TypeError, ValueError) as error:
      raise errors.UsageError(
        f'Demonstration {number} in {path!r} does not fit: {error!r}; record '
        'it in the same environment.'
      ) from None
    for key, values in batch.items():
      if values.shape[2:] != (dims[key],):
        size = 'x'.join(str(x) for x in values.shape[2:]) or 'none'
        raise errors.UsageError(
          f'The demonstrations in {path!r} have {key} of size {size}, but the '
          f'task has size {dims[key]}; record them in the same environment.'
        )
    yield batch


def _to_floats(key, values):
  """Return an array of finite floats [time, ...]."""
  array = np.array(values)
  # Floats keep their precision, in which the normalizers add them up.
  if array.dtype.kind in 'biuO':
    array = array.astype(float)
  if array.dtype.kind != 'f':
    raise ValueError(f'{key} is of type {array.dtype}, which is not a number')
  if not np.isfinite(array).all():
    raise ValueError(f'{key} has infinite numbers or NaN')
  return array


def save(
  path: str,
  obs: Sequence[Sequence[dict[str, np.ndarray]]],
  acs: Sequence[Sequence[np.ndarray]],
  info: Sequence[Sequence[dict[str, Any]]],
) -> None:
  """Write demonstrations, which may differ in length.

  Args:
    path: Path of the .npz file.
    obs: List over episodes of lists over time of dicts.
    acs: List over episodes of lists over time of actions.
    info: List over episodes of lists over time of dicts.
  """
  with files.atomic_path(path) as temporary:
    np.savez_compressed(
      temporary,
      acs=_to_array(acs, float),
      obs=_to_array(obs, object),
      info=_to_array(info, object),
    )


def _to_array(episodes, dtype):
  """Return an array [episodes, steps, ...], or of lists if lengths differ."""
  if len({len(x) for x in episodes}) == 1:
    return np.array(episodes, dtype)
  array = np.empty(len(episodes), object)
  array[:] = [list(x) for x in episodes]
  return array
