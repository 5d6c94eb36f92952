"""Checkpoints of entire trainings, to continue them exactly.

A checkpoint is a folder named after the number of updates. It contains the
weights and, for each rank, replay, optimizer, random state, environments and
counters; see `agents.run.checkpoint`. The newest two are kept.
"""

import os
import time
from collections.abc import Mapping
from typing import Any

from agents.run import checkpoint, errors, mpi, random_state
from baselines_her import logger

# Largest share of the time to spend on checkpoints, unless they are forced.
_TIME_SHARE = 0.05
# Number of checkpoints to keep.
_KEPT = 2


class Checkpoints:
  """Saves and restores a training; all ranks must make the same calls.

  Args:
    folder: Folder of the checkpoints; None to do nothing.
    policy: `DDPG` agent.
    rollout_worker: Worker that explores.
    evaluator: Worker that exploits.

  Attributes:
    newest: Path of the newest complete checkpoint, None if there is none.
  """

  def __init__(
    self, folder: str | None, policy: Any, rollout_worker: Any, evaluator: Any
  ):
    self.newest: str | None = None
    self._store: Any = folder and checkpoint.Checkpoints(
      os.path.abspath(os.path.expanduser(folder)), mpi.world()
    )
    self._policy = policy
    self._workers = [rollout_worker, evaluator]
    self._venvs = list({id(x.venv): x.venv for x in self._workers}.values())
    self._next_time = 0.0
    self._last_state: dict[str, Any] | None = None

  def save(self, state: Mapping[str, Any], forced: bool = False) -> None:
    """Write a checkpoint, unless the last one is too recent to be worth it.

    Args:
      state: Dict of training counters, the same for all ranks.
      forced: Whether to write it in any case.
    """
    if not self._store or state == self._last_state:
      return
    name = mpi.world().bcast(self._name_if_due(forced))
    if not name:
      return
    policy, began = self._policy, time.monotonic()
    tree = {
      'state': dict(state),
      'adam': [policy.Q_adam.get_slots(), policy.pi_adam.get_slots()],
      'buffer': policy.buffer.state_dict(),
      'workers': [x.state_dict() for x in self._workers],
      'envs': [venv.get_states() for venv in self._venvs],
      'random': random_state.get_random_state(),
      'num_envs': policy.rollout_batch_size,
    }
    self.newest = self._store.save(name, tree, policy.sess, keep=_KEPT)
    self._last_state = dict(state)
    now = time.monotonic()
    self._next_time = now + (now - began) / _TIME_SHARE

  def restore(self) -> dict[str, Any]:
    """Continue from the newest checkpoint, if there is one.

    Returns:
      Dict of counters as passed to `save`; empty if there is no checkpoint.

    Raises:
      UsageError: If the number of environments or ranks differs, or the
        checkpoint is damaged.
    """
    rank = mpi.world().Get_rank()
    path = self._store and self._store.newest(None if rank else logger.warn)
    if not path:
      return {}
    policy = self._policy
    data, self.newest = self._store.load(path, policy.sess), path
    if data['num_envs'] != policy.rollout_batch_size:
      raise errors.UsageError(
        f'The training has {data["num_envs"]} environments per rank, not '
        f'{policy.rollout_batch_size}; continue with '
        f'--num_env={data["num_envs"]}, or choose another --log_path.'
      )
    for adam, slots in zip((policy.Q_adam, policy.pi_adam), data['adam']):
      adam.set_slots(slots)
    policy.buffer.load_state_dict(data['buffer'])
    for worker, worker_state in zip(self._workers, data['workers']):
      worker.load_state_dict(worker_state)
    for venv, states in zip(self._venvs, data['envs']):
      venv.set_states(states)
    random_state.set_random_state(data['random'])
    logger.info(f'Continuing from {path}, epoch {data["state"]["epoch"]}.')
    return data['state']

  def _name_if_due(self, forced):
    """Return the name of the next checkpoint, None if it is too early."""
    if not forced and time.monotonic() < self._next_time:
      return None
    name = f'{self._policy.Q_adam.t:09d}'
    # The evaluation of an epoch changes counters, but does no updates.
    while name in self._store.paths():
      name += '+'
    return name
