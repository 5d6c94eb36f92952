"""Everything a run has to remember, in folders that are complete or ignored.

A checkpoint holds `model.ckpt-<epoch>.*` (variables of TensorFlow), and for
each rank `states.json` and `states.npz`; `runner.yaml`; and last, `COMPLETE`.
"""

import os
import re
import shutil
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any
from urllib import parse

import numpy as np

from agents import utility
from agents.pipeline import folders
from agents.run import checkpoint, errors, files

_PREFIX = 'checkpoint-'
# Name of the identity of a checkpoint among the contents of a memory.
_IDENTITY = '__bytes__'
_TEMPORARY = (r'.*_temporary.*',)

# Contents of memories: a dict from name to dict of arrays.
Snapshots = dict[str, dict[str, np.ndarray]]


class Checkpoints:
  """Writes and reads the checkpoints of a session.

  All ranks have to make the same calls.

  Args:
    session: Path of the session, the same for all ranks.
    comm: Communicator of the ranks.
  """

  def __init__(self, session: str, comm: Any):
    self._folder = _parent(session)
    self._snapshots = os.path.join(session, 'memsnapshot')
    self._comm = comm
    self._rank = comm.Get_rank()
    self._saver: Any = None

  def save(
    self,
    index: int,
    sess: Any,
    states: dict[str, Any],
    runner: Any,
    snapshots: Snapshots | None = None,
  ) -> str:
    """Write a checkpoint.

    Args:
      index: Number of the epoch.
      sess: Session of TensorFlow with the variables.
      states: Nested dict of plain data, bytes and arrays of this rank.
      runner: Plain data that tell how to build the run again.
      snapshots: Dict from name to dict of arrays, contents of the memories of
        this rank; None if they are not to be kept.

    Returns:
      Path of the checkpoint.
    """
    name = f'{_PREFIX}{index}'
    path = os.path.join(self._folder, name)
    # Memories belong to a checkpoint only if both have the same identity.
    identity = self._comm.bcast(uuid.uuid4().hex)
    with checkpoint.write_folder(path, self._comm) as new:
      if self._rank == 0:
        self._save_variables(sess, os.path.join(new, 'model.ckpt'), index)
        files.write_yaml(os.path.join(new, 'runner.yaml'), runner)
      if snapshots is not None:
        self._write_snapshots(name, identity, snapshots)
      checkpoint.write_tree(
        os.path.join(new, self._states_name()),
        {'states': states, 'identity': identity},
      )
    if self._rank == 0 and snapshots is not None:
      self._forget_snapshots(name)
    return path

  def load(
    self, path: str, sess: Any
  ) -> tuple[dict[str, Any], Snapshots | None]:
    """Restore the variables of a checkpoint.

    Args:
      path: Folder of the checkpoint.
      sess: Session of TensorFlow in whose graph the run is built again.

    Returns:
      Tuple of the states of this rank, and its snapshots, a dict from name to
      dict of arrays, which is None if there are none for this checkpoint.

    Raises:
      UsageError: If the checkpoint does not fit what is built, or is damaged.
    """
    index = _find_index(path)
    saver = self._define_saver(sess)
    if saver:
      saver.restore(sess, os.path.join(path, f'model.ckpt-{index}'))
    try:
      content = checkpoint.read_tree(os.path.join(path, self._states_name()))
    except FileNotFoundError:
      raise errors.UsageError(
        f'Checkpoint {path} has no states for rank {self._rank}; continue '
        'with as many processes as before.'
      ) from None
    except (OSError, ValueError) as error:
      raise errors.UsageError(
        f'Cannot read the states in {path} ({error}); continue from an older '
        'checkpoint with --load-checkpoint.'
      ) from None
    snapshots = self._read_snapshots(f'{_PREFIX}{index}', content['identity'])
    return content['states'], snapshots

  def _save_variables(self, sess, prefix, index):
    saver = self._define_saver(sess)
    if saver:
      saver.save(sess, prefix, global_step=index, write_meta_graph=False)

  def _define_saver(self, sess):
    if self._saver is None:
      from agents.tools.tf1 import tf

      with sess.graph.as_default():
        if tf.global_variables():
          self._saver = utility.define_saver(_TEMPORARY, max_to_keep=None)
    return self._saver

  def _states_name(self):
    return f'states-{self._rank}' if self._rank else 'states'

  def _snapshot_path(self, name, memory):
    return os.path.join(
      self._snapshots, name, f'{_quote(memory)}{self._suffix()}.npz'
    )

  def _suffix(self):
    return f'-{self._rank}' if self._rank else ''

  def _write_snapshots(self, name, identity, snapshots):
    for memory, arrays in snapshots.items():
      content: dict[str, Any] = {_IDENTITY: np.array(identity), **arrays}
      path = self._snapshot_path(name, memory)
      with files.atomic_write(path, 'wb') as file_:
        np.savez(file_, **content)

  def _read_snapshots(self, name, identity):
    folder = os.path.join(self._snapshots, name)
    result = {}
    for filename in sorted(os.listdir(folder) if os.path.isdir(folder) else ()):
      memory, extension = os.path.splitext(filename)
      if extension != '.npz' or filename[0] == '.':
        continue
      memory, dash, rank = memory.partition('-')
      if dash + rank != self._suffix():
        continue
      path = os.path.join(folder, filename)
      try:
        with np.load(path) as arrays:
          content = dict(arrays)
        found = str(content.pop(_IDENTITY))
      except Exception as error:  # Whatever damaged bytes may lead to.
        raise errors.UsageError(
          f'Cannot read the contents of a memory in {path} ({error}); remove '
          'that file to continue with an empty memory.'
        ) from None
      if found == identity:
        result[parse.unquote(memory)] = content
    return result or None

  def _forget_snapshots(self, name):
    """Remove the contents of memories of older checkpoints, which are large."""
    for other in os.listdir(self._snapshots):
      if other != name:
        shutil.rmtree(os.path.join(self._snapshots, other), ignore_errors=True)


def list_checkpoints(session: str) -> list[tuple[int, str]]:
  """List the complete checkpoints of a session, oldest first.

  Returns:
    List of tuples of the epoch and the path; nothing is changed.
  """
  paths = checkpoint.list_folders(_parent(session), _PREFIX).values()
  whole = [x for x in paths if checkpoint.find_damage(x) is None]
  return [(_find_index(x), x) for x in whole]


def find_checkpoint(
  path: str, warn: Callable[[str], None] | None = None
) -> tuple[str, str]:
  """Find the checkpoint that the user means.

  Args:
    path: Folder of a checkpoint, or of a session for its newest one.
    warn: Function of a sentence about a damaged one that is passed over.

  Returns:
    Tuple of the path of the session and the path of the checkpoint.

  Raises:
    UsageError: If there is none.
  """
  session, epoch = folders.find_session(path)
  if epoch is None:
    found = checkpoint.list_folders(_parent(session), _PREFIX)
    newest = checkpoint.choose_newest(found.values(), warn=warn)
    if newest is None:
      raise errors.UsageError(
        f'Session {session} has no complete checkpoint; start a new one.'
      )
    return session, newest
  path = os.path.abspath(os.path.expanduser(path))
  parent, name = os.path.split(path)
  # It may have been moved aside.
  place = checkpoint.list_folders(parent, _PREFIX).get(name, path)
  damage = checkpoint.find_damage(place)
  if damage:
    whole = [f'{_PREFIX}{x}' for x, _ in list_checkpoints(session)]
    raise errors.UsageError(
      f'Checkpoint {path} is not complete: {damage}. Complete are: '
      f'{", ".join(whole) or "none"}.'
    )
  return session, place


def recover(session: str) -> None:
  """Finish what a process that was killed has begun; needs the lock."""
  checkpoint.recover_folders(_parent(session))


def set_newer_aside(session: str, epoch: int) -> str | None:
  """Make the checkpoint of an epoch the newest one; needs the lock.

  Returns:
    Path of the folder where newer ones are now, None if there were none.
  """
  found = checkpoint.list_folders(_parent(session), _PREFIX).values()
  newer = [x for x in found if _find_index(x) > epoch]
  if not newer:
    return None
  name = 'superseded_' + time.strftime('%Y%m%d%H%M%S')
  folder = os.path.join(session, name)
  os.makedirs(folder, exist_ok=True)
  for path in newer:
    os.rename(path, os.path.join(folder, os.path.basename(path)))
  return folder


def _parent(session):
  return os.path.join(session, 'checkpoints')


def _find_index(path):
  """Epoch in the name of a checkpoint, also of one that was moved aside."""
  match = re.search(rf'{_PREFIX}(\d+)', os.path.basename(path))
  assert match, path
  return int(match.group(1))


def _quote(name):
  """Name of a memory as part of a file name, without dashes and dots."""
  quoted = parse.quote(name, safe='')
  return quoted.replace('-', '%2D').replace('.', '%2E')


def restore_memories(
  memories: Mapping[str, Any],
  states: dict[str, Any],
  snapshots: Snapshots | None,
  logger: Any,
) -> None:
  """Fill memories with what they held when a checkpoint was written.

  Without their contents they begin empty, with a warning.

  Args:
    memories: Dict from name to memory.
    states: Dict from name to `state_dict`.
    snapshots: Dict from name to contents, or None.
    logger: Has `warn`.
  """
  for name, memory in memories.items():
    if snapshots and name in snapshots:
      memory.load_state_dict(states[name])
      memory.set_snapshot(snapshots[name])
    else:
      logger.warn(
        f'The contents of memory {name} were not saved; it begins empty.'
      )
