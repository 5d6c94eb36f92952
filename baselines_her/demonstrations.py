"""Demonstration files for the imitation loss.

An .npz file contains `acs`, a float array [episodes, steps, action size],
`obs`, an object array [episodes, steps + 1] of dicts with the keys of goal
environments, and `info`, an object array [episodes, steps] of dicts. This is
the original's format, in which the dicts are pickled: reading such a file can
run arbitrary code, so use only files that you trust.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from agents.envs import check
from agents.run import errors, files
from baselines_her.util import Episode


def read(path: str) -> dict[str, np.ndarray]:
  """Return the arrays of a file.

  The dicts are pickled, so only open files that you trust.

  Returns:
    Dict of `acs`, `obs` and `info`.

  Raises:
    UsageError: If the file does not exist or has other contents.
  """
  path = os.path.expanduser(path)
  try:
    with np.load(path, allow_pickle=True) as archive:
      data = {key: archive[key] for key in ('acs', 'obs', 'info')}
    episodes, steps = data['acs'].shape[:2]
    wanted = {'obs': (episodes, steps + 1), 'info': (episodes, steps)}
    for key, shape in wanted.items():
      if data[key].shape[:2] != shape:
        raise ValueError(f'{key} has shape {data[key].shape}, not {shape}')
    missing = set(check.GOAL_KEYS) - set(data['obs'][0, 0])
    if missing:
      raise ValueError(f'obs has no {sorted(missing)}')
  except Exception as error:  # Whatever damaged bytes may lead to.
    raise errors.UsageError(
      f'Cannot read demonstrations from {path!r}: {error}. Use an .npz file '
      'with acs, obs and info, such as one written by python -m '
      'baselines_her.data_generation.'
    ) from None
  return data


def load(
  path: str, num_demo: int, T: int, input_dims: dict[str, int]
) -> Iterator[Episode]:
  """Yield demonstrations as episode batches of one.

  Args:
    path: Path of the file.
    num_demo: Number of demonstrations to use.
    T: Time limit of the task; longer demonstrations are truncated.
    input_dims: Dict of the sizes of `o`, `g`, `u` and `info_*`.

  Yields:
    Dict of arrays [1, time, size]; `o` and `ag` have T time steps, the
    others T - 1.

  Raises:
    UsageError: If the demonstrations are too few, too short, or from another
      task.
  """
  data = read(path)
  episodes, steps = data['acs'].shape[:2]
  if episodes < num_demo:
    raise errors.UsageError(
      f'File {path!r} has {episodes} demonstrations, but num_demo is '
      f'{num_demo}; record more, or set --num_demo={episodes}.'
    )
  if steps < T - 1:
    raise errors.UsageError(
      f'The demonstrations in {path!r} have {steps} steps, but the task needs '
      f'at least {T - 1}; record them in the same environment.'
    )
  dims = {**input_dims, 'ag': input_dims['g']}
  for number in range(num_demo):
    obs, info = data['obs'][number, :T], data['info'][number, : T - 1]
    try:
      episode = {
        'o': [x['observation'] for x in obs],
        'ag': [x['achieved_goal'] for x in obs],
        'g': [x['desired_goal'] for x in obs[: T - 1]],
        'u': data['acs'][number, : T - 1],
      }
      for key in input_dims:
        if key.startswith('info_'):
          name = key.removeprefix('info_')
          episode[key] = [np.ravel(x[name]) for x in info]
      # Floats keep their precision, in which the normalizers add them up.
      arrays = {k: np.array(v)[None] for k, v in episode.items()}
      batch = {
        k: x if x.dtype.kind == 'f' else x.astype(float)
        for k, x in arrays.items()
      }
      if not all(np.isfinite(x).all() for x in batch.values()):
        raise ValueError('it has infinite numbers or NaN')
    except (KeyError, TypeError, ValueError) as error:
      raise errors.UsageError(
        f'Demonstration {number} in {path!r} does not fit: {error!r}; record '
        'it in the same environment.'
      ) from None
    for key, values in batch.items():
      if values.shape[-1] != dims[key]:
        raise errors.UsageError(
          f'The demonstrations in {path!r} have {key} of size '
          f'{values.shape[-1]}, but the task has size {dims[key]}; record '
          'them in the same environment.'
        )
    yield batch


def save(
  path: str,
  obs: Sequence[Sequence[dict[str, np.ndarray]]],
  acs: Sequence[Sequence[np.ndarray]],
  info: Sequence[Sequence[dict[str, Any]]],
) -> None:
  """Write demonstrations.

  Args:
    path: Path of the .npz file.
    obs: List over episodes of lists over time of dicts.
    acs: List over episodes of lists over time of actions.
    info: List over episodes of lists over time of dicts.
  """
  with files.atomic_path(path) as temporary:
    np.savez_compressed(
      temporary,
      acs=np.array(acs, float),
      obs=np.array(obs, object),
      info=np.array(info, object),
    )
