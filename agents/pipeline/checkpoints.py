"""Everything a run has to remember, in folders that are complete or ignored.

A checkpoint holds `model.ckpt-<epoch>.*` (variables of TensorFlow), and for
each rank `states.json` and `states.npz`; `runner.yaml`; and last, `COMPLETE`.
"""

import json
import os
import re
import shutil
import uuid
from collections.abc import Mapping
from typing import Any
from urllib import parse

import numpy as np

from agents.pipeline import folders
from agents.run import errors
from agents.run import files

# How values that JSON does not know are marked in it.
_ARRAY, _BYTES, _TUPLE = '__array__', '__bytes__', '__tuple__'
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
    self._folder = os.path.join(session, 'checkpoints')
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
    name = f'checkpoint-{index}'
    final = os.path.join(self._folder, name)
    new = os.path.join(self._folder, f'.{name}.new')
    # Memories belong to a checkpoint only if both have the same identity.
    identity = self._comm.bcast(uuid.uuid4().hex)
    if self._rank == 0:
      shutil.rmtree(new, ignore_errors=True)
      os.makedirs(new)
      self._save_variables(sess, os.path.join(new, 'model.ckpt'), index)
      files.write_yaml(os.path.join(new, 'runner.yaml'), runner)
    self._comm.Barrier()
    if snapshots is not None:
      self._write_snapshots(name, identity, snapshots)
    write_tree(
      os.path.join(new, self._states_name()),
      {'states': states, 'identity': identity},
    )
    self._comm.Barrier()
    if self._rank == 0:
      open(os.path.join(new, folders.COMPLETE), 'w').close()
      _move(new, final)
      if snapshots is not None:
        self._forget_snapshots(name)
    self._comm.Barrier()
    return final

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
    match = re.search(r'checkpoint-(\d+)', os.path.basename(path))
    assert match, path
    index = int(match.group(1))
    self._restore_variables(sess, os.path.join(path, f'model.ckpt-{index}'))
    try:
      content = read_tree(os.path.join(path, self._states_name()))
    except FileNotFoundError:
      raise errors.UsageError(
        f'Checkpoint {path} has no states for rank {self._rank}; continue '
        'with as many processes as before.'
      ) from None
    except (OSError, ValueError, KeyError) as error:
      raise errors.UsageError(
        f'Cannot read the states in {path} ({error}); continue from an older '
        'checkpoint with --load-checkpoint.'
      ) from None
    snapshots = self._read_snapshots(f'checkpoint-{index}', content['identity'])
    return content['states'], snapshots

  def _save_variables(self, sess, prefix, index):
    saver = self._define_saver(sess)
    if saver:
      saver.save(sess, prefix, global_step=index, write_meta_graph=False)

  def _restore_variables(self, sess, prefix):
    from agents.tools.tf1 import tf

    saver = self._define_saver(sess)
    try:
      if saver:
        saver.restore(sess, prefix)
    except (tf.errors.OpError, ValueError) as error:
      reason = str(error).strip().splitlines()[0]
      raise errors.UsageError(
        f'Cannot restore {prefix}: {reason} Continue from another checkpoint, '
        'or with the parameters that it was written with.'
      ) from None

  def _define_saver(self, sess):
    if self._saver is None:
      from agents import utility
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
      content: dict[str, Any] = {_BYTES: np.array(identity), **arrays}
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
      with np.load(os.path.join(folder, filename)) as arrays:
        if str(arrays[_BYTES]) == identity:
          result[parse.unquote(memory)] = {
            k: arrays[k] for k in arrays if k != _BYTES
          }
    return result or None

  def _forget_snapshots(self, name):
    """Remove the contents of memories of older checkpoints, which are large."""
    for other in os.listdir(self._snapshots):
      if other != name:
        shutil.rmtree(os.path.join(self._snapshots, other), ignore_errors=True)


def write_tree(prefix: str, tree: Any) -> None:
  """Store nested data as `<prefix>.json` and `<prefix>.npz`.

  Args:
    prefix: Path without ending.
    tree: Nested dicts, lists and tuples of plain data, bytes and arrays.

  Raises:
    TypeError: If there is something else in it.
  """
  arrays: dict[str, Any] = {}
  plain = _pack(tree, arrays, '')
  with files.atomic_write(prefix + '.npz', 'wb') as file_:
    np.savez(file_, **arrays)
  with files.atomic_write(prefix + '.json') as file_:
    json.dump(plain, file_)


def read_tree(prefix: str) -> Any:
  """Undo `write_tree`.

  Raises:
    OSError: If a file is missing.
    ValueError: If one is damaged.
  """
  with open(prefix + '.json') as file_:
    plain = json.load(file_)
  with np.load(prefix + '.npz') as arrays:
    return _unpack(plain, arrays)


def _pack(value, arrays, path):
  if value is None or isinstance(value, (bool, int, float, str)):
    return value
  if isinstance(value, (np.ndarray, np.generic)):
    if value.dtype.hasobject:
      raise TypeError(f'{path} is an array of objects')
    arrays[str(len(arrays))] = value
    scalar = isinstance(value, np.generic)
    return {_ARRAY: str(len(arrays) - 1), 'scalar': scalar}
  if isinstance(value, bytes):
    arrays[str(len(arrays))] = np.frombuffer(value, np.uint8)
    return {_BYTES: str(len(arrays) - 1)}
  if isinstance(value, (list, tuple)):
    items = [
      _pack(x, arrays, f'{path}/{index}') for index, x in enumerate(value)
    ]
    return {_TUPLE: items} if isinstance(value, tuple) else items
  if isinstance(value, dict):
    wrong = [key for key in value if not isinstance(key, str)]
    if wrong:
      raise TypeError(f'{path} has the key {wrong[0]!r}, which is no text')
    return {k: _pack(x, arrays, f'{path}/{k}') for k, x in value.items()}
  raise TypeError(f'{path} is {type(value).__name__}, which cannot be stored')


def _unpack(value, arrays):
  if isinstance(value, list):
    return [_unpack(x, arrays) for x in value]
  if not isinstance(value, dict):
    return value
  if _ARRAY in value:
    array = arrays[value[_ARRAY]]
    return array[()] if value['scalar'] else array
  if _BYTES in value:
    return arrays[value[_BYTES]].tobytes()
  if _TUPLE in value:
    return tuple(_unpack(x, arrays) for x in value[_TUPLE])
  return {key: _unpack(x, arrays) for key, x in value.items()}


def _quote(name):
  """Name of a memory as part of a file name, without dashes and dots."""
  quoted = parse.quote(name, safe='')
  return quoted.replace('-', '%2D').replace('.', '%2E')


def _move(new, final):
  """Put a folder in the place of another one.

  Until it is there, the other one can be found under a name that
  `folders.list_checkpoints` knows.
  """
  folder, name = os.path.split(final)
  old = os.path.join(folder, f'.{name}.old')
  shutil.rmtree(old, ignore_errors=True)
  if os.path.exists(final):
    os.rename(final, old)
  os.rename(new, final)
  shutil.rmtree(old, ignore_errors=True)


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
