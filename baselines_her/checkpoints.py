"""Checkpoints of whole trainings, to continue as if nothing had happened.

A checkpoint is a folder named after the number of updates done. It holds the
weights, `model.ckpt`, and for each rank the rest, `rank<number>.json` and
`rank<number>.npz`: replay, optimiser, random numbers, environments, counters.
All of it is plain data. The newest two are kept.
"""

import contextlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from agents import utility
from agents.run import checkpoint, errors, files, mpi, random_state
from agents.run import folder as run_folder
from baselines_her import logger

# Largest share of the time to spend on checkpoints, unless they are forced.
_TIME_SHARE = 0.05
# Number of checkpoints to keep.
_KEPT = 2


class Checkpoints:
  """Saves and restores a training; all ranks have to make the same calls.

  Args:
    folder: Folder of the checkpoints; None to do nothing.
    policy: The `DDPG` agent.
    rollout_worker: Worker that explores.
    evaluator: Worker that exploits.
  """

  def __init__(
    self, folder: str | None, policy: Any, rollout_worker: Any, evaluator: Any
  ):
    self._folder: Any = folder and os.path.abspath(os.path.expanduser(folder))
    self._policy = policy
    self._workers = [rollout_worker, evaluator]
    self._comm = mpi.world()
    self._rank = self._comm.Get_rank()
    self._duration = 0.0
    self._last_time = -np.inf
    self._last_state: dict[str, Any] | None = None
    self._saver: Any = None
    if folder:
      with policy.sess.graph.as_default():
        self._saver = utility.define_saver(max_to_keep=None)

  def save(self, state: Mapping[str, Any], forced: bool = False) -> None:
    """Write a checkpoint, unless the last one was so recent that it costs.

    Args:
      state: Dict of counters of the training, the same for all ranks.
      forced: Whether to write in any case.
    """
    if not self._folder or state == self._last_state:
      return
    name = self._comm.bcast(self._choose_name(forced))
    if not name:
      return
    began = time.time()
    path = os.path.join(self._folder, name)
    with checkpoint.write_folder(path, self._comm) as new:
      if self._rank == 0:
        self._saver.save(
          self._policy.sess,
          os.path.join(new, 'model.ckpt'),
          write_meta_graph=False,
        )
      self._write_rank(new, state)
    if self._rank == 0:
      self._remove_others()
    self._last_state = dict(state)
    self._last_time = time.time()
    self._duration = self._last_time - began

  def restore(self) -> dict[str, Any]:
    """Continue from the newest checkpoint, if there is one.

    Returns:
      Dict of counters as given to `save`; empty without a checkpoint.

    Raises:
      UsageError: If the number of environments or ranks differs, or the
        checkpoint is damaged or a pickle of an earlier version.
    """
    if not self._folder:
      return {}
    check(self._folder, self._comm.Get_size())
    warn = None if self._rank else logger.warn
    folder = self._comm.bcast(find_newest(self._folder, warn))
    if not folder:
      return {}
    data = self._read_rank(folder)
    policy = self._policy
    if data['num_envs'] != policy.rollout_batch_size:
      raise errors.UsageError(
        f'The training in {self._folder} has {data["num_envs"]} environments '
        f'per rank, but there are {policy.rollout_batch_size} now; continue '
        f'with --num_env={data["num_envs"]}, or choose another --log_path.'
      )
    with policy.sess.graph.as_default():
      utility.initialize_variables(
        policy.sess, self._saver, folder, 'model.ckpt', resume=True
      )
    for adam, slots in zip((policy.Q_adam, policy.pi_adam), data['adam']):
      adam.set_slots(slots)
    policy.buffer.load_state_dict(data['buffer'])
    for worker, worker_state in zip(self._workers, data['workers']):
      worker.load_state_dict(worker_state)
    for venv, states in zip(self._venvs(), data['envs']):
      venv.set_states(states)
    random_state.set_random_state(data['random'])
    logger.info(f'Continue from {folder}, epoch {data["state"]["epoch"]}.')
    return data['state']

  def _choose_name(self, forced):
    """Name of the next checkpoint, None if it is too early for one."""
    waited = time.time() - self._last_time
    if not forced and waited * _TIME_SHARE < self._duration:
      return None
    name = f'{self._policy.Q_adam.t:09d}'
    # The evaluation of an epoch changes counters, but does no updates.
    while name in list_checkpoints(self._folder):
      name += '+'
    return name

  def _write_rank(self, folder, state):
    policy = self._policy
    checkpoint.write_tree(
      os.path.join(folder, f'rank{self._rank}'),
      {
        'state': dict(state),
        'adam': [policy.Q_adam.get_slots(), policy.pi_adam.get_slots()],
        'buffer': policy.buffer.state_dict(),
        'workers': [x.state_dict() for x in self._workers],
        'envs': [venv.get_states() for venv in self._venvs()],
        'random': random_state.get_random_state(),
        'num_envs': policy.rollout_batch_size,
      },
    )

  def _read_rank(self, folder):
    try:
      return checkpoint.read_tree(os.path.join(folder, f'rank{self._rank}'))
    except (OSError, ValueError) as error:
      raise errors.UsageError(
        f'Cannot read the checkpoint {folder}: {error}. Choose another '
        '--log_path to begin anew, or remove that folder to continue from an '
        'older one beside it.'
      ) from None

  def _remove_others(self):
    """Remove older checkpoints, and what is left of incomplete ones."""
    found = checkpoint.list_folders(self._folder)
    whole = [x for x, path in found.items() if not _find_damage(path)]
    for other in os.listdir(self._folder):
      if other not in whole[-_KEPT:] and re.fullmatch(r'\.?\d+\+*', other):
        shutil.rmtree(os.path.join(self._folder, other), ignore_errors=True)
    checkpoint.recover_folders(self._folder)

  def _venvs(self):
    """Vectors of environments of the workers, each once."""
    venvs = [worker.venv for worker in self._workers]
    return venvs[:1] if venvs[0] is venvs[1] else venvs


def find_folder(log_path: str) -> str:
  """Return the folder of the checkpoints of a run."""
  return os.path.join(os.path.expanduser(log_path), 'checkpoints')


@contextlib.contextmanager
def hold(log_path: str | None) -> Iterator[None]:
  """Keep other programs away from the run; a refused one leaves no folder.

  Yields:
    Nothing.

  Raises:
    UsageError: If one of them works on it.
  """
  if not log_path or mpi.world().Get_rank() > 0:
    yield
    return
  folder = os.path.expanduser(log_path)
  missing = files.first_missing(folder)
  held = run_folder.lock(folder)
  if not held:
    raise errors.UsageError(
      f'Another process works on the run in {log_path}. Wait until it has '
      'ended, or choose another --log_path.'
    )

  def has_begun() -> bool:
    return bool(list_checkpoints(find_folder(folder)))

  with held, run_folder.removed_if_refused(folder, missing, has_begun):
    yield


def list_checkpoints(folder: str) -> list[str]:
  """Return the names of all checkpoints, also damaged ones, oldest first."""
  return list(checkpoint.list_folders(folder))


def find_newest(
  folder: str, warn: Callable[[str], None] | None = None
) -> str | None:
  """Return the path of the newest whole checkpoint, None if there is none.

  Args:
    folder: Folder of the checkpoints.
    warn: Function of a sentence about a damaged one that is passed over.

  Raises:
    UsageError: If there are checkpoints, but all of them are damaged.
  """
  paths = list(checkpoint.list_folders(folder).values())
  return utility.choose_newest(paths, _find_damage, warn)


def check(folder: str, size: int) -> None:
  """Make sure that this number of ranks can continue from a folder.

  Raises:
    UsageError: If another number of ranks has written the checkpoint, or an
      earlier version, which pickled it, or if it is damaged.
  """
  newest = find_newest(folder)
  if not newest:
    return
  files = [x for x in os.listdir(newest) if x.startswith('rank')]
  if any(x.endswith('.joblib') for x in files):
    raise errors.UsageError(
      f'The checkpoint {newest} was written by an earlier version and is not '
      'opened, as it is a pickle, which can run any program; finish that '
      'training with the earlier version, or choose another --log_path.'
    )
  found = sum(x.endswith('.json') for x in files)
  if found != size:
    raise errors.UsageError(
      f'The training in {folder} has {found} ranks, but there are {size} now; '
      f'start it with mpirun -n {found}, or choose another --log_path.'
    )


def _find_damage(path):
  # Those of earlier versions had no mark; their name was enough.
  if not os.path.exists(os.path.join(path, checkpoint.COMPLETE)):
    return None
  return checkpoint.find_damage(path)
