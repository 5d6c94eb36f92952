"""Checkpoints of a session, the folders `checkpoints/checkpoint-<epoch>`.

In addition to the files of `agents.run.checkpoint.Checkpoints`, variables and a
tree per rank, they contain `runner.yaml`, the parameters, and optionally
`memory<rank>.json` and `.npz`, the contents of memories.
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


def name_of(epoch: int) -> str:
  """Return the name of the checkpoint of an epoch."""
  return f'{_PREFIX}{epoch}'


def open_folder(session: str, comm: Any) -> checkpoint.Checkpoints:
  """Return an object that reads and writes the checkpoints of a session."""
  parent = os.path.join(session, 'checkpoints')
  return checkpoint.Checkpoints(parent, comm, _PREFIX, utility.define_saver)


def list_checkpoints(session: str) -> dict[int, str]:
  """Return the paths of complete checkpoints by epoch, oldest first."""
  paths = _list(session)
  return {_epoch(x): x for x in paths if not checkpoint.find_damage(x)}


def find_session(path: str) -> str:
  """Return the session folder of a path to a session or a checkpoint.

  Raises:
    UsageError: If the path is neither.
  """
  named = re.fullmatch(rf'{_PREFIX}\d+', os.path.basename(path))
  session = os.path.dirname(os.path.dirname(path)) if named else path
  parts = ('checkpoints', 'params.yaml', 'cpanel.json')
  missing = [x for x in parts if not os.path.exists(os.path.join(session, x))]
  if missing:
    raise errors.UsageError(
      f'Folder {session} is not a session: {", ".join(missing)} is missing. '
      'Give a session or one of its checkpoints with --load-checkpoint.'
    )
  return session


def find_checkpoint(
  path: str, session: str, warn: Callable[[str], None] | None = None
) -> str:
  """Return the folder of the requested checkpoint.

  Args:
    path: Checkpoint, or session to select its newest one.
    session: Folder of the session.
    warn: Function called with a sentence about each damaged checkpoint that is
      skipped.

  Raises:
    UsageError: If there is none.
  """
  if path == session:
    newest = checkpoint.choose_newest(_list(session), warn=warn)
    if newest is None:
      raise errors.UsageError(
        f'Session {session} has no complete checkpoint; start a new session.'
      )
    return newest
  # A killed process may have left it under another name.
  parent, name = os.path.split(path)
  found = checkpoint.list_folders(parent, _PREFIX).get(name, path)
  damage = checkpoint.find_damage(found)
  if damage:
    whole = map(name_of, list_checkpoints(session))
    raise errors.UsageError(
      f'Checkpoint {path} is incomplete: {damage}. Load another one; complete '
      f'checkpoints: {", ".join(whole) or "none"}.'
    )
  return found


def remove_memories(session: str, but: str) -> None:
  """Remove the contents of memories, which are large, from old checkpoints.

  Args:
    session: Folder of the session.
    but: Checkpoint that keeps its contents.
  """
  for path in list_checkpoints(session).values():
    names = [x for x in os.listdir(path) if x.startswith('memory')]
    if names and path != but:
      complete = os.path.join(path, checkpoint.COMPLETE)
      with open(complete) as file_:
        sizes = json.load(file_)
      kept = {k: v for k, v in sizes.items() if k not in names}
      files.write_json(complete, kept)
      for name in names:
        os.remove(os.path.join(path, name))


def set_newer_aside(session: str, epoch: int) -> str | None:
  """Make the checkpoint of an epoch the newest one; requires the lock.

  Returns:
    Folder that newer checkpoints were moved to, None if there were none.
  """
  newer = [x for x in _list(session) if _epoch(x) > epoch]
  if not newer:
    return None
  folder = os.path.join(session, time.strftime('superseded_%Y%m%d%H%M%S'))
  os.makedirs(folder, exist_ok=True)
  for path in newer:
    os.rename(path, os.path.join(folder, os.path.basename(path)))
  return folder


def _list(session):
  """Paths of checkpoints, oldest first, damaged ones included."""
  parent = os.path.join(session, 'checkpoints')
  return list(checkpoint.list_folders(parent, _PREFIX).values())


def _epoch(path):
  """Epoch in the name of a checkpoint, including one that was moved aside."""
  return int(os.path.basename(path).rpartition('-')[2].partition('.')[0])
