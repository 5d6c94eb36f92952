"""Checkpoints of entire trainings, to continue them exactly.

A checkpoint is a folder named after the number of updates. It contains the
weights and, for each rank, replay, optimizer, random state, environments and
counters; see `agents.run.checkpoint`. The newest two are kept.
"""

import functools
import math
import os
import time
from collections.abc import Mapping
from typing import Any

from agents import utility
from agents.run import checkpoint, errors, files, folder, mpi, random_state
from baselines_her import config, logger

# Largest share of the time to spend on checkpoints, unless they are forced.
_TIME_SHARE = 0.05
# Number of checkpoints to keep.
_KEPT = 2


class Run(folder.Run):
  """Log directory of a training.

  Args:
    folder: Path, which need not exist.
    checkpoints: Folder of the checkpoints, `checkpoints` in it by default.

  Attributes:
    checkpoints: Folder of the checkpoints.
    damaged: Sentences about checkpoints that are skipped.
  """

  filename = config.PARAMS_FILE

  def __init__(self, folder: str, checkpoints: str | None = None):
    self.checkpoints = checkpoints or os.path.join(folder, 'checkpoints')
    self.damaged: list[str] = []
    super().__init__(folder)

  def list_checkpoints(self) -> list[str]:
    return list(checkpoint.list_folders(self.checkpoints).values())

  @functools.cached_property
  def checkpoint(self) -> str | None:
    """Path of the newest complete checkpoint, None if there is none.

    Raises:
      UsageError: If all are damaged.
    """
    self.damaged.clear()
    found = self.list_checkpoints()
    return checkpoint.choose_newest(found, warn=self.damaged.append)

  @functools.cached_property
  def settings(self) -> dict[str, Any] | None:
    """Settings of the run, None if it has no checkpoint to continue.

    Raises:
      UsageError: If they cannot be read.
    """
    assert self.folder
    return config.read_params(self.folder) if self.checkpoint else None


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
      files.absolute(folder),
      mpi.world(),
      define_saver=utility.define_saver,
    )
    self._policy = policy
    self._workers = [rollout_worker, evaluator]
    self._venvs = list({id(x.venv): x.venv for x in self._workers}.values())
    self._next_time = -math.inf

  def save(self, state: Mapping[str, Any], forced: bool = False) -> bool:
    """Write a checkpoint, unless the last one is too recent to be worth it.

    Args:
      state: Dict of training counters, the same for all ranks.
      forced: Whether to write it in any case.

    Returns:
      Whether it was written.

    Raises:
      NotFinite: If the weights are not finite.
    """
    if not self._store:
      return False
    name = mpi.world().bcast(self._name_if_due(forced))
    if not name:
      return False
    policy, began = self._policy, time.monotonic()
    self.check_finite()
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
    now = time.monotonic()
    self._next_time = now + (now - began) / _TIME_SHARE
    return True

  def check_finite(self) -> None:
    """Check that the weights can be saved.

    Raises:
      NotFinite: If they are not finite.
    """
    self._policy.check_finite(
      lambda: f'last checkpoint: {self.newest or "none"}'
    )

  def restore(self, path: str | None) -> dict[str, Any]:
    """Continue from a checkpoint.

    Args:
      path: Path of the checkpoint; that of the first rank counts.

    Returns:
      Dict of counters as passed to `save`; empty without a checkpoint.

    Raises:
      UsageError: If the number of environments or ranks differs, or the
        checkpoint is damaged.
    """
    path = mpi.world().bcast(path)
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
