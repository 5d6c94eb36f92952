"""Checkpoints of whole trainings, to continue as if nothing had happened.

A checkpoint is a folder named after the number of updates done. It holds the
weights, `model.ckpt`, and for each rank the rest, `rank<number>.json` and
`rank<number>.npz`: replay, optimiser, random numbers, environments, counters.
All of it is plain data. The folder gets its name when it is complete.
"""

import os
import shutil
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from agents.pipeline import toolbox
from agents.pipeline.checkpoints import read_tree
from agents.pipeline.checkpoints import write_tree
from agents.run import errors
from agents.run import mpi
from baselines_her import logger

# Largest share of the time to spend on checkpoints, unless they are forced.
_TIME_SHARE = 0.05


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
      from agents import utility

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
    temporary = os.path.join(self._folder, '.' + name)
    if self._rank == 0:
      shutil.rmtree(temporary, ignore_errors=True)
      os.makedirs(temporary)
      self._saver.save(
        self._policy.sess,
        os.path.join(temporary, 'model.ckpt'),
        write_meta_graph=False,
      )
    self._comm.Barrier()
    self._write_rank(temporary, state)
    self._comm.Barrier()
    if self._rank == 0:
      os.rename(temporary, os.path.join(self._folder, name))
      self._remove_others(name)
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
    names = list_checkpoints(self._folder) if self._folder else []
    names = self._comm.bcast(names)
    if not names:
      return {}
    check(self._folder, self._comm.Get_size())
    folder = os.path.join(self._folder, names[-1])
    data = self._read_rank(folder)
    policy = self._policy
    if data['num_envs'] != policy.rollout_batch_size:
      raise errors.UsageError(
        f'The training in {self._folder} has {data["num_envs"]} environments '
        f'per rank, but there are {policy.rollout_batch_size} now; continue '
        f'with --num_env={data["num_envs"]}, or choose another --log_path.'
      )
    self._saver.restore(policy.sess, os.path.join(folder, 'model.ckpt'))
    for adam, slots in zip((policy.Q_adam, policy.pi_adam), data['adam']):
      adam.set_slots(slots)
    policy.buffer.load_state_dict(data['buffer'])
    for worker, worker_state in zip(self._workers, data['workers']):
      worker.load_state_dict(worker_state)
    for venv, states in zip(self._venvs(), data['envs']):
      venv.set_states(states)
    toolbox.set_random_state(data['random'])
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
    write_tree(
      os.path.join(folder, f'rank{self._rank}'),
      {
        'state': dict(state),
        'adam': [policy.Q_adam.get_slots(), policy.pi_adam.get_slots()],
        'buffer': policy.buffer.state_dict(),
        'workers': [x.state_dict() for x in self._workers],
        'envs': [venv.get_states() for venv in self._venvs()],
        'random': toolbox.get_random_state(),
        'num_envs': policy.rollout_batch_size,
      },
    )

  def _read_rank(self, folder):
    try:
      return read_tree(os.path.join(folder, f'rank{self._rank}'))
    except Exception as error:  # Whatever damaged bytes may lead to.
      raise errors.UsageError(
        f'Cannot read the checkpoint {folder}: {error!r}. Choose another '
        '--log_path to begin anew.'
      ) from None

  def _remove_others(self, name):
    """Remove older checkpoints, and what is left of incomplete ones."""
    for other in os.listdir(self._folder):
      if other != name and other.strip('.+').isdigit():
        shutil.rmtree(os.path.join(self._folder, other), ignore_errors=True)

  def _venvs(self):
    """Vectors of environments of the workers, each once."""
    venvs = [worker.venv for worker in self._workers]
    return venvs[:1] if venvs[0] is venvs[1] else venvs


def list_checkpoints(folder: str) -> list[str]:
  """Names of the complete checkpoints of a folder, oldest first."""
  if not os.path.isdir(folder):
    return []
  return sorted(x for x in os.listdir(folder) if x.rstrip('+').isdigit())


def check(folder: str, size: int) -> None:
  """Make sure that this number of ranks can continue from a folder.

  Raises:
    UsageError: If another number of ranks has written the checkpoint, or an
      earlier version, which pickled it.
  """
  names = list_checkpoints(folder)
  if not names:
    return
  newest = os.path.join(folder, names[-1])
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
