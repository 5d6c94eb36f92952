"""Checkpoints of sessions, `checkpoints/checkpoint-<epoch>`.

A checkpoint is a folder of `model.ckpt-<epoch>.*` (variables of TensorFlow),
`runner.yaml` (parameters and counters), for each rank `states[-<rank>].json`
and `.npz`, and, as the runner decides, `memory[-<rank>].json` and `.npz`. It is
complete or ignored, see `agents.run.checkpoint`.
"""

import json
import os
import re
import time
from collections.abc import Callable
from typing import Any

from agents import utility
from agents.run import checkpoint, errors, files

_PREFIX = 'checkpoint-'
_TEMPORARY = (r'.*_temporary.*',)


class Checkpoints:
  """Writes and reads the checkpoints of a session.

  All ranks have to make the same calls.

  Args:
    session: Path of the session, the same for all ranks.
    comm: Communicator of the ranks.
  """

  def __init__(self, session: str, comm: Any):
    self._folder = _parent(session)
    self._comm = comm
    self._saver: Any = None
    rank = comm.Get_rank()
    self._suffix = f'-{rank}' if rank else ''

  def save(
    self,
    epoch: int,
    sess: Any,
    states: Any,
    runner: Any,
    memories: Any = None,
  ) -> None:
    """Write a checkpoint.

    Args:
      epoch: Number of the epoch.
      sess: Session of TensorFlow with the variables.
      states: Nested dict of plain data, bytes and arrays of this rank.
      runner: Plain data of how to build the run again.
      memories: Contents of the memories of this rank by name; None not to
        store them. Those of earlier checkpoints are removed.
    """
    path = os.path.join(self._folder, f'{_PREFIX}{epoch}')
    with checkpoint.write_folder(path, self._comm) as new:
      if self._comm.Get_rank() == 0:
        saver = self._define_saver(sess)
        if saver:
          name = os.path.join(new, 'model.ckpt')
          saver.save(sess, name, global_step=epoch, write_meta_graph=False)
        runner = {**runner, 'ranks': self._comm.Get_size()}
        files.write_yaml(os.path.join(new, 'runner.yaml'), runner)
      self._write(new, 'states', states)
      if memories is not None:
        self._write(new, 'memory', memories)
    if memories is not None and self._comm.Get_rank() == 0:
      for other in _list(self._folder):
        if other != path:
          _remove_memories(other)

  def load(self, path: str, sess: Any) -> tuple[Any, Any]:
    """Restore the variables of a checkpoint.

    Args:
      path: Folder of the checkpoint.
      sess: Session of TensorFlow in whose graph the run is built again.

    Returns:
      Tuple of the states of this rank and the contents of its memories, None
      if they are not stored.

    Raises:
      UsageError: If the checkpoint does not fit what is built, or is damaged.
    """
    saver = self._define_saver(sess)
    if saver:
      saver.restore(sess, os.path.join(path, f'model.ckpt-{_find_epoch(path)}'))
    try:
      states = self._read(path, 'states')
      stored = os.path.exists(os.path.join(path, f'memory{self._suffix}.json'))
      return states, self._read(path, 'memory') if stored else None
    except (OSError, ValueError) as error:
      raise errors.UsageError(
        f'Cannot read checkpoint {path} ({error}); load an older one with '
        '--load-checkpoint.'
      ) from None

  def _write(self, folder, name, tree):
    checkpoint.write_tree(os.path.join(folder, name + self._suffix), tree)

  def _read(self, folder, name):
    return checkpoint.read_tree(os.path.join(folder, name + self._suffix))

  def _define_saver(self, sess):
    if self._saver is None:
      from agents.tools.tf1 import tf

      with sess.graph.as_default():
        if tf.global_variables():
          self._saver = utility.define_saver(_TEMPORARY, max_to_keep=None)
    return self._saver


def list_checkpoints(session: str) -> list[tuple[int, str]]:
  """List epochs and paths of complete checkpoints, oldest first."""
  return [
    (_find_epoch(x), x)
    for x in _list(_parent(session))
    if checkpoint.find_damage(x) is None
  ]


def find_checkpoint(
  path: str,
  session: str,
  epoch: int | None,
  warn: Callable[[str], None] | None = None,
) -> str:
  """Return the folder of the checkpoint that the user means.

  Args:
    path: What the user has named: this checkpoint, or the session for its
      newest one.
    session: Folder of the session.
    epoch: Epoch of the checkpoint, None for the newest one.
    warn: Function of a sentence about a damaged one that is passed over.

  Raises:
    UsageError: If there is none.
  """
  if epoch is None:
    newest = checkpoint.choose_newest(_list(_parent(session)), warn=warn)
    if newest is None:
      raise errors.UsageError(
        f'Session {session} has no complete checkpoint; start a new one.'
      )
    return newest
  path = os.path.abspath(os.path.expanduser(path))
  # A killed process may have left it under another name.
  parent, name = os.path.split(path)
  found = checkpoint.list_folders(parent, _PREFIX).get(name, path)
  damage = checkpoint.find_damage(found)
  if damage:
    whole = [f'{_PREFIX}{x}' for x, _ in list_checkpoints(session)]
    raise errors.UsageError(
      f'Checkpoint {path} is not complete: {damage}. Complete are: '
      f'{", ".join(whole) or "none"}.'
    )
  return found


def recover(session: str) -> None:
  """Finish what a process that was killed has begun; needs the lock."""
  checkpoint.recover_folders(_parent(session))


def set_newer_aside(session: str, epoch: int) -> str | None:
  """Make the checkpoint of an epoch the newest one; needs the lock.

  Returns:
    Path of the folder where newer ones are now, None if there were none.
  """
  newer = [x for x in _list(_parent(session)) if _find_epoch(x) > epoch]
  if not newer:
    return None
  name = 'superseded_' + time.strftime('%Y%m%d%H%M%S')
  folder = os.path.join(session, name)
  os.makedirs(folder, exist_ok=True)
  for path in newer:
    os.rename(path, os.path.join(folder, os.path.basename(path)))
  return folder


def _remove_memories(path):
  """Remove the contents of memories, which are large, from a checkpoint."""
  names = [x for x in os.listdir(path) if x.startswith('memory')]
  if names:
    complete = os.path.join(path, checkpoint.COMPLETE)
    with open(complete) as file_:
      sizes = json.load(file_)
    with files.atomic_write(complete) as file_:
      json.dump({k: v for k, v in sizes.items() if k not in names}, file_)
    for name in names:
      os.remove(os.path.join(path, name))


def _list(parent):
  return list(checkpoint.list_folders(parent, _PREFIX).values())


def _parent(session):
  return os.path.join(session, 'checkpoints')


def _find_epoch(path):
  """Epoch in the name of a checkpoint, also of one that was moved aside."""
  match = re.search(rf'{_PREFIX}(\d+)', os.path.basename(path))
  assert match, path
  return int(match.group(1))
