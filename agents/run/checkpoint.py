"""Checkpoints that are whole or ignored: plain data, folders, and variables.

A checkpoint is a folder, or the files `model.ckpt-<step>.*` of TensorFlow.
What belongs into it is up to each system.
"""

import contextlib
import glob
import json
import logging
import math
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from agents.run import errors, files

# Folder of the best checkpoint of TensorFlow, and its name for users.
BEST = 'best'
_SCORE = 'score.json'
# File of a folder that is written last, with the sizes of all others in it.
COMPLETE = 'COMPLETE'
# How values that JSON does not know are marked in it.
_ARRAY, _BYTES, _TUPLE = '__array__', '__bytes__', '__tuple__'


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
  """Undo `write_tree`; nothing that is stored there can run a program.

  Raises:
    OSError: If a file is missing.
    ValueError: If one is damaged.
  """
  try:
    with open(prefix + '.json') as file_:
      plain = json.load(file_)
    with np.load(prefix + '.npz', allow_pickle=False) as arrays:
      return _unpack(plain, arrays)
  except OSError:
    raise
  except Exception as error:  # Whatever damaged bytes may lead to.
    raise ValueError(f'{type(error).__name__}: {error}') from None


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
      raise TypeError(f'{path} has the key {wrong[0]!r}, which is not text')
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


@contextlib.contextmanager
def write_folder(path: str, comm: Any) -> Iterator[str]:
  """Write a folder that appears under its name when all ranks are done.

  One that is there already is replaced. Until the new one is in its place,
  the old one can be found under a name that `list_folders` knows.

  Args:
    path: Path of the folder, the same for all ranks.
    comm: Communicator of the ranks, all of which have to make this call.

  Yields:
    Path of the folder to write to.
  """
  parent, name = os.path.split(path)
  new = os.path.join(parent, f'.{name}.new')
  old = os.path.join(parent, f'.{name}.old')
  if comm.Get_rank() == 0:
    shutil.rmtree(new, ignore_errors=True)
    os.makedirs(new)
  comm.Barrier()
  yield new
  comm.Barrier()
  if comm.Get_rank() == 0:
    sizes = {x.name: x.stat().st_size for x in os.scandir(new) if x.is_file()}
    with files.atomic_write(os.path.join(new, COMPLETE)) as file_:
      json.dump(sizes, file_)
    shutil.rmtree(old, ignore_errors=True)
    if os.path.exists(path):
      os.rename(path, old)
    os.rename(new, path)
    shutil.rmtree(old, ignore_errors=True)
  comm.Barrier()


def recover_folders(parent: str) -> None:
  """Finish what a process that was killed within `write_folder` has begun.

  No other process may write there.
  """
  for old in glob.glob(os.path.join(glob.escape(parent), '.*.old')):
    path = os.path.join(parent, os.path.basename(old)[1:-4])
    if os.path.exists(path):
      shutil.rmtree(old, ignore_errors=True)
    else:
      os.rename(old, path)
  for new in glob.glob(os.path.join(glob.escape(parent), '.*.new')):
    shutil.rmtree(new, ignore_errors=True)


def list_folders(parent: str, prefix: str = '') -> dict[str, str]:
  """List the checkpoints of a folder, oldest first; nothing is changed.

  If a process was killed while it replaced one, that is listed where it lies.

  Args:
    parent: Folder of the checkpoints.
    prefix: What their names begin with, before a number and any `+`.

  Returns:
    Dict from name to path, of those that may turn out to be damaged, too.
  """
  name = rf'({re.escape(prefix)}\d+\+*)'
  pattern = re.compile(rf'\.{name}\.old|{name}')
  found = {}
  # Those in their place come last.
  for filename in sorted(os.listdir(parent)) if os.path.isdir(parent) else ():
    match = pattern.fullmatch(filename)
    if match:
      found[match.group(1) or match.group(2)] = os.path.join(parent, filename)
  return {x: found[x] for x in sorted(found, key=_sort_key)}


def _sort_key(name):
  """Number in a name and how many `+` follow it."""
  return int(re.findall(r'\d+', name)[-1]), len(name)


def find_damage(path: str) -> str | None:
  """Say what is wrong with a checkpoint that is a folder; None if it is whole.

  Earlier versions promised no sizes, so that less can be wrong with theirs.
  """
  try:
    with open(os.path.join(path, COMPLETE)) as file_:
      sizes = json.loads(file_.read() or '{}')
  except FileNotFoundError:
    return f'it has no file {COMPLETE}'
  except (OSError, ValueError) as error:
    return f'{COMPLETE} cannot be read: {error}'
  for name, size in sizes.items():
    filename = os.path.join(path, name)
    if not os.path.exists(filename):
      return f'it has no file {name}'
    if os.path.getsize(filename) != size:
      found = os.path.getsize(filename)
      return f'{name} has {found} bytes instead of {size}'
  return None


def choose_newest(
  paths: Iterable[str],
  find_damage: Callable[[str], str | None] = find_damage,
  warn: Callable[[str], None] | None = None,
) -> str | None:
  """Return the path of the newest whole checkpoint, None if there are none.

  Args:
    paths: Paths of checkpoints, oldest first.
    find_damage: Function from a path to what is wrong there, or None.
    warn: Function that is called with a sentence for each damaged one that is
      passed over; None to stay silent.

  Raises:
    UsageError: If all are damaged, as beginning anew would overwrite them and
      what lies beside them.
  """
  damaged: list[tuple[str, str]] = []
  for path in reversed(list(paths)):
    damage = find_damage(path)
    if damage is None:
      for other, words in damaged:
        if warn:
          warn(f'Checkpoint {other} is damaged ({words}); go on from {path}.')
      return path
    damaged.append((path, damage))
  if not damaged:
    return None
  named = ', '.join(f'{x} ({words})' for x, words in damaged)
  raise errors.UsageError(
    f'No whole checkpoint is left; damaged: {named}. Begin anew in another '
    'folder, or move all of this one away.'
  )


def find_variables(
  folder: str,
  name: str | None = None,
  warn: Callable[[str], None] | None = logging.getLogger(__name__).warning,
) -> str | None:
  """Return the path of the checkpoint of TensorFlow to continue from.

  Args:
    folder: Folder of the checkpoints.
    name: Name of one of them, or `best` for what `keep_best` has written; the
      newest whole `model.ckpt-<step>` by default.
    warn: See `choose_newest`.

  Returns:
    Path without ending; None if there is none that is whole.

  Raises:
    UsageError: If the one with this name or all of them are damaged, or there
      is no best one.
  """
  folder = os.path.expanduser(folder)
  if name == BEST:
    best = _read_best(folder)
    if not best:
      raise errors.UsageError(
        f'There is no best checkpoint in {folder} yet. It is written after '
        'the first test whose episodes have ended; leave --checkpoint away '
        'for the newest one.'
      )
    name = os.path.join(BEST, best['checkpoint'])
  if name:
    path = os.path.join(folder, name)
    damage = os.path.exists(path + '.index') and _find_damaged_variables(path)
    if damage:
      raise errors.UsageError(
        f'Checkpoint {path} is damaged ({damage}); give an older one.'
      )
    return path
  names = glob.glob('model.ckpt-*.index', root_dir=folder)
  found = [re.fullmatch(r'(model\.ckpt-(\d+))\.index', x) for x in names]
  rows = sorted((int(x.group(2)), x.group(1)) for x in found if x)
  paths = [os.path.join(folder, name) for _, name in rows]
  try:
    return choose_newest(paths, _find_damaged_variables, warn)
  except errors.UsageError as error:
    spare = _read_best(folder).get('checkpoint')
    spare = spare and os.path.join(folder, BEST, spare)
    if not spare or _find_damaged_variables(spare):
      raise
    raise errors.UsageError(
      f'{error} The best one is whole: to go on from it, copy {spare}.* to '
      f'{folder}.'
    ) from None


def keep_best(
  sess: Any, saver: Any, folder: str, step: int, score: float
) -> None:
  """Write a checkpoint of TensorFlow that replaces the best one.

  The file that names it is written last, so that there is always a whole one.

  Args:
    sess: Session.
    saver: Saver of its variables, which does not count this checkpoint among
      its newest ones.
    folder: Folder of the run; the files go to `best` in it.
    step: Global step.
    score: Score of the model, for `read_best_score`.
  """
  best = os.path.join(os.path.expanduser(folder), BEST)
  os.makedirs(best, exist_ok=True)
  name = f'model.ckpt-{step}'
  names = saver.saver_def
  path = os.path.join(best, name)
  sess.run(names.save_tensor_name, {names.filename_tensor_name: path})
  with files.atomic_write(os.path.join(best, _SCORE)) as file_:
    json.dump({'checkpoint': name, 'step': step, 'score': float(score)}, file_)
  for other in os.listdir(best):
    if other.startswith('model.ckpt-') and not other.startswith(name + '.'):
      os.remove(os.path.join(best, other))


def read_best_score(folder: str) -> float:
  """Return the score of the best checkpoint, -infinity without one."""
  return _read_best(os.path.expanduser(folder)).get('score', -math.inf)


def _read_best(folder):
  """Return what `keep_best` says of its checkpoint; nothing if it is gone."""
  try:
    with open(os.path.join(folder, BEST, _SCORE)) as file_:
      found = json.load(file_)
  except (OSError, ValueError):
    return {}
  path = os.path.join(folder, BEST, found['checkpoint'] + '.index')
  return found if os.path.exists(path) else {}


def newest_step(folder: str) -> int:
  """Return the step of the newest whole checkpoint, 0 without any.

  Raises:
    UsageError: If all are damaged.
  """
  path = find_variables(folder, warn=None)
  return int(path.rpartition('-')[2]) if path else 0


def _find_damaged_variables(path):
  """Say what is wrong with files of TensorFlow; None if they are whole."""
  from agents.tools.tf1 import tf

  try:
    reader = tf.train.NewCheckpointReader(path)
  except (tf.errors.OpError, ValueError, RuntimeError) as error:
    return f'its index cannot be read: {str(error).strip().splitlines()[0]}'
  dtypes = reader.get_variable_to_dtype_map()
  # Text, which has no size of its own here, makes it more.
  least = sum(
    dtypes[name].size * int(np.prod(shape, dtype=np.int64))
    for name, shape in reader.get_variable_to_shape_map().items()
  )
  data = glob.glob(glob.escape(path) + '.data-*-of-*')
  size = sum(os.path.getsize(x) for x in data)
  if not data or size < least:
    return f'its data has {size} bytes instead of {least}'
  return None
