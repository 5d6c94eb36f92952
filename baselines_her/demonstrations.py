"""Files of demonstrations for the imitation loss.

An .npz file holds `acs`, a float array [episodes, steps, action size], `obs`,
an object array [episodes, steps + 1] of dicts with the keys of goal
environments, and `info`, an object array [episodes, steps] of dicts. This is
the original's format, in which the dicts are pickled: reading such a file can
run any program, so it must be trusted.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from agents.run import errors, files
from baselines_her.util import Episode

KEYS = {'o': 'observation', 'ag': 'achieved_goal', 'g': 'desired_goal'}


def read(path: str) -> dict[str, np.ndarray]:
  """Return the arrays of a file.

  The dictionaries need pickle, so only open files that you trust.

  Returns:
    Dict of `acs`, `obs` and `info`.

  Raises:
    UsageError: If there is no such file, or it holds something else.
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
    missing = set(KEYS.values()) - set(data['obs'][0, 0])
    if missing:
      raise ValueError(f'obs has no {sorted(missing)}')
  except Exception as error:  # Whatever damaged bytes may lead to.
    raise errors.UsageError(
      f'Cannot read demonstrations from {path!r}: {error}. Give an .npz file '
      'with acs, obs and info, such as the one that python -m '
      'baselines_her.data_generation writes.'
    ) from None
  return data


def check(path: str, num_demo: int, T: int) -> dict[str, np.ndarray]:
  """Make sure that a file has enough demonstrations of enough steps.

  Args:
    path: Path of the file.
    num_demo: Number of demonstrations to use.
    T: Time limit of the task.

  Returns:
    Dict of arrays as `read` returns it.

  Raises:
    UsageError: If it has not.
  """
  data = read(path)
  episodes, steps = data['acs'].shape[:2]
  if episodes < num_demo:
    raise errors.UsageError(
      f'File {path!r} has {episodes} demonstrations, but num_demo is '
      f'{num_demo}; record more, or pass --num_demo={episodes}.'
    )
  if steps < T - 1:
    raise errors.UsageError(
      f'The demonstrations in {path!r} have {steps} steps, but the task needs '
      f'at least {T - 1}; record them in the same environment.'
    )
  return data


def load(
  path: str, num_demo: int, T: int, input_dims: dict[str, int]
) -> Iterator[Episode]:
  """Yield demonstrations as episode batches of one.

  Args:
    path: Path of the file.
    num_demo: Number of demonstrations to use.
    T: Time limit of the task; longer demonstrations are cut.
    input_dims: Dict of the sizes of `o`, `g`, `u` and `info_*`.

  Yields:
    Dict of arrays [1, time, size]; `o` and `ag` have T time steps, the
    others T - 1.

  Raises:
    UsageError: If the file does not fit.
  """
  data = check(path, num_demo, T)
  infos = [x for x in input_dims if x.startswith('info_')]
  for obs, acs, info in zip(data['obs'], data['acs'], data['info']):
    if num_demo <= 0:
      return
    num_demo -= 1
    episode = {
      key: np.array([x[name] for x in obs[: T - (key == 'g')]])[None]
      for key, name in KEYS.items()
    }
    episode['u'] = np.asarray(acs[: T - 1])[None]
    for key in infos:
      values = [np.ravel(x[key.removeprefix('info_')]) for x in info[: T - 1]]
      episode[key] = np.array(values, float)[None]
    _check_sizes(path, episode, input_dims)
    yield episode


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


def _check_sizes(
  path: str, episode: Episode, input_dims: dict[str, int]
) -> None:
  dims = dict(input_dims, ag=input_dims['g'])
  for key, values in episode.items():
    if values.shape[-1] != dims[key]:
      raise errors.UsageError(
        f'The demonstrations in {path!r} have {key} of size '
        f'{values.shape[-1]}, but the task has size {dims[key]}; record them '
        'in the same environment.'
      )
