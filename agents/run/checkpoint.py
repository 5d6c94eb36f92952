"""Checkpoints that are either complete or ignored.

PPO and PlaNet write TensorFlow files named `model.ckpt-<step>.*`. HER and the
pipeline write a folder with the state of every rank, see `Checkpoints`.
"""

import contextlib
import functools
import glob
import json
import logging
import math
import os
import re
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from agents.run import errors, files, locks

# Folder of the best checkpoint of TensorFlow, and its name for users.
BEST = 'best'
_SCORE = 'score.json'
# File of a folder that is written last, with the sizes of all others in it.
COMPLETE = 'COMPLETE'
# Variables in a checkpoint that is a folder.
_VARIABLES = 'model.ckpt'
# Checksum of the JSON file, among the arrays.
_CHECKSUM = 'checksum'
# How values that JSON does not know are marked in it.
_ARRAY, _BYTES, _TUPLE = '__array__', '__bytes__', '__tuple__'


def write_tree(prefix: str, tree: Any) -> None:
  """Store nested data as `<prefix>.json` and `<prefix>.npz`.

  Args:
    prefix: Path without file extension.
    tree: Nested dicts, lists and tuples of plain data, bytes and arrays.

  Raises:
    TypeError: If the tree contains any other type.
  """
  arrays: dict[str, Any] = {}
  text = json.dumps(_pack(tree, arrays, ''))
  arrays[_CHECKSUM] = np.uint32(zlib.crc32(text.encode()))
  with files.atomic_write(prefix + '.npz', 'wb') as file_:
    np.savez(file_, **arrays)
  with files.atomic_write(prefix + '.json') as file_:
    file_.write(text)


def read_tree(prefix: str) -> Any:
  """Read what `write_tree` stored, without executing any stored code.

  Raises:
    OSError: If a file is missing.
    ValueError: If a file is damaged.
  """
  try:
    with open(prefix + '.json', 'rb') as file_:
      text = file_.read()
    with np.load(prefix + '.npz', allow_pickle=False) as arrays:
      if zlib.crc32(text) != arrays[_CHECKSUM]:
        raise ValueError(f'{prefix}.json has changed')
      unpack = functools.partial(_unpack, arrays)
      return json.loads(text, object_hook=unpack)
  except OSError:
    raise
  except Exception as error:  # Whatever damaged bytes may lead to.
    raise ValueError(f'{type(error).__name__}: {error}') from None


def _pack(value, arrays, path):
  """Convert a value to JSON types; move arrays and bytes to a dict."""
  if value is None or isinstance(value, (bool, int, float, str)):
    return value
  name = str(len(arrays))
  if isinstance(value, bytes):
    arrays[name] = np.frombuffer(value, np.uint8)
    return {_BYTES: name}
  if isinstance(value, (np.ndarray, np.generic)):
    if value.dtype.hasobject:
      raise TypeError(f'{path} is an array of objects')
    arrays[name] = value
    return {_ARRAY: name, 'scalar': isinstance(value, np.generic)}
  if isinstance(value, (list, tuple)):
    items = [_pack(x, arrays, f'{path}/{i}') for i, x in enumerate(value)]
    return {_TUPLE: items} if isinstance(value, tuple) else items
  if isinstance(value, dict):
    wrong = [key for key in value if not isinstance(key, str)]
    if wrong:
      raise TypeError(f'{path} has the key {wrong[0]!r}, which is not a string')
    return {k: _pack(x, arrays, f'{path}/{k}') for k, x in value.items()}
  raise TypeError(f'{path} is {type(value).__name__}, which cannot be stored')


def _unpack(arrays, value):
  """Convert a dict, whose values are already unpacked, back to its object."""
  if _ARRAY in value:
    array = arrays[value[_ARRAY]]
    return array[()] if value['scalar'] else array
  if _BYTES in value:
    return arrays[value[_BYTES]].tobytes()
  return tuple(value[_TUPLE]) if _TUPLE in value else value


@contextlib.contextmanager
def write_folder(path: str, comm: Any) -> Iterator[str]:
  """Write a folder that gets its final name once all ranks are done.

  It replaces an existing folder of that name. Until then the old folder stays
  available under a name that `list_folders` knows.

  Args:
    path: Path of the folder, the same on all ranks.
    comm: Communicator of the ranks, which must all make this call.

  Yields:
    Path of the folder to write to.
  """
  parent, name = os.path.split(path)
  new = os.path.join(parent, f'.{name}.new')
  old = os.path.join(parent, f'.{name}.old')
  if comm.Get_rank() == 0:
    locks.check(new)
    shutil.rmtree(new, ignore_errors=True)
    os.makedirs(new)
  comm.Barrier()
  yield new
  comm.Barrier()
  if comm.Get_rank() == 0:
    sizes = {x.name: x.stat().st_size for x in os.scandir(new) if x.is_file()}
    files.write_json(os.path.join(new, COMPLETE), sizes)
    shutil.rmtree(old, ignore_errors=True)
    if os.path.exists(path):
      os.rename(path, old)
    os.rename(new, path)
    shutil.rmtree(old, ignore_errors=True)
  comm.Barrier()


def recover_folders(parent: str) -> None:
  """Clean up after a process that was killed during `write_folder`.

  No other process may write to the parent folder.
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
  """List the checkpoints in a folder, oldest first, without changing anything.

  Includes checkpoints whose replacement was interrupted by a kill.

  Args:
    parent: Folder of the checkpoints.
    prefix: Start of their names, before the number and any `+`.

  Returns:
    Dict from name to path; some of the checkpoints may be damaged.
  """
  name = rf'({re.escape(prefix)}(\d+)(\+*))'
  found = {}
  # Where there are both, the checkpoint in its place counts.
  for pattern in (rf'\.{name}\.old', name):
    for filename in files.list_folder(parent):
      match = re.fullmatch(pattern, filename)
      if match:
        order = int(match[2]), match[3]
        found[order] = match[1], os.path.join(parent, filename)
  return dict(found[order] for order in sorted(found))


def find_damage(path: str) -> str | None:
  """Describe what is wrong with a checkpoint folder; None if it is complete."""
  try:
    with open(os.path.join(path, COMPLETE)) as file_:
      sizes = dict(json.load(file_))
    for name, size in sizes.items():
      found = os.path.getsize(os.path.join(path, name))
      if found != size:
        return f'{name} has {found} bytes instead of {size}'
  except FileNotFoundError as error:
    return f'{os.path.basename(error.filename)} is missing'
  except (TypeError, ValueError) as error:
    return f'{COMPLETE} cannot be read: {error}'
  return None


def choose_newest(
  paths: Iterable[str],
  find_damage: Callable[[str], str | None] = find_damage,
  warn: Callable[[str], None] | None = None,
) -> str | None:
  """Return the path of the newest complete checkpoint, None if there is none.

  Args:
    paths: Paths of checkpoints, oldest first.
    find_damage: Function that maps a path to a description of its damage, or
      to None.
    warn: Function called with a sentence for each damaged checkpoint that is
      skipped; None to stay silent.

  Raises:
    UsageError: If all are damaged; starting over would overwrite them.
  """
  damaged: dict[str, str] = {}
  for path in reversed(list(paths)):
    damage = find_damage(path)
    if damage is None:
      for other, words in damaged.items():
        if warn:
          warn(f'Checkpoint {other} is damaged ({words}); using {path}.')
      return path
    damaged[path] = damage
  if not damaged:
    return None
  named = ', '.join(f'{x} ({words})' for x, words in damaged.items())
  raise errors.UsageError(
    f'All checkpoints are damaged: {named}. Choose another log directory, or '
    'move this one away to start over.'
  )


class Checkpoints:
  """Checkpoints of a run with several ranks, each a folder `<prefix><number>`.

  A folder holds the TensorFlow variables, `model.ckpt.*`, and a tree for every
  rank, `rank<number>.json` and `.npz`. All ranks must make the same calls.

  Args:
    folder: Folder of the checkpoints.
    comm: Communicator of the ranks.
    prefix: First part of the names.
    define_saver: `agents.utility.define_saver`, for those with variables.
  """

  def __init__(
    self,
    folder: str,
    comm: Any,
    prefix: str = '',
    define_saver: Callable[..., Any] | None = None,
  ):
    self._folder = folder
    self._comm = comm
    self._prefix = prefix
    self._define_saver = define_saver
    self._saver: Any = None

  def paths(self) -> dict[str, str]:
    """Return the paths by name, oldest first, including damaged ones."""
    return list_folders(self._folder, self._prefix)

  def save(
    self,
    name: str,
    tree: Any,
    sess: Any = None,
    write: Callable[[str], object] = lambda folder: None,
    keep: int | None = None,
    best: str | None = None,
  ) -> str:
    """Write a checkpoint.

    Args:
      name: Prefix and number, followed by any `+`.
      tree: State of this rank, see `write_tree`.
      sess: Session whose variables to save, or None.
      write: Function called with the folder, to add files.
      keep: Number of complete checkpoints to keep, None for all.
      best: Name of an older one to keep as well.

    Returns:
      Path of the checkpoint.
    """
    path = os.path.join(self._folder, name)
    with write_folder(path, self._comm) as new:
      saver = self._find_saver(sess)
      if saver and self._comm.Get_rank() == 0:
        saver.save(sess, os.path.join(new, _VARIABLES), write_state=False)
      write_tree(self._tree_path(new), tree)
      write(new)
    if keep and self._comm.Get_rank() == 0:
      found = self.paths()
      whole = [x for x, place in found.items() if not find_damage(place)]
      for other in set(found) - {best, *whole[-keep:]}:
        shutil.rmtree(found[other], ignore_errors=True)
      recover_folders(self._folder)
    return path

  def load(self, path: str, sess: Any = None, all_ranks: bool = True) -> Any:
    """Restore the variables and return the tree of this rank.

    Args:
      path: Path of a checkpoint.
      sess: Session whose variables to restore, or None.
      all_ranks: Whether to require the number of ranks that saved it.

    Raises:
      UsageError: If the checkpoint is damaged or does not fit.
    """
    found = len(glob.glob('rank*.json', root_dir=path))
    if all_ranks and found != self._comm.Get_size():
      raise errors.UsageError(
        f'The checkpoint {path} was saved with {found} ranks, not '
        f'{self._comm.Get_size()}; continue with mpirun -n {found}, or start a '
        'new run in another log directory.'
      )
    try:
      tree = read_tree(self._tree_path(path))
    except (FileNotFoundError, ValueError) as error:
      raise errors.UsageError(
        f'The checkpoint {path} is damaged ({error}); remove it to continue '
        'from an older one.'
      ) from None
    saver = self._find_saver(sess)
    if saver:
      saver.restore(sess, os.path.join(path, _VARIABLES))
    return tree

  def _find_saver(self, sess):
    if sess is not None and self._saver is None:
      assert self._define_saver, 'variables need a saver'
      with sess.graph.as_default():
        self._saver = self._define_saver(exclude=('.*_temporary.*',))
    return self._saver

  def _tree_path(self, folder):
    return os.path.join(folder, f'rank{self._comm.Get_rank()}')


def list_variables(folder: str) -> list[str]:
  """Return the paths of all `model.ckpt-<step>` files, oldest first."""
  names = files.list_folder(folder)
  found = [re.fullmatch(r'model\.ckpt-(\d+)\.index', x) for x in names]
  steps = sorted(int(x[1]) for x in found if x)
  return [os.path.join(folder, f'model.ckpt-{x}') for x in steps]


def find_variables(
  folder: str,
  name: str | None = None,
  warn: Callable[[str], None] | None = logging.getLogger(__name__).warning,
) -> str | None:
  """Return the path of the TensorFlow checkpoint to continue from.

  Args:
    folder: Folder of the checkpoints.
    name: Name of a checkpoint, or `best` for the one that `keep_best` wrote;
      the newest complete `model.ckpt-<step>` by default.
    warn: See `choose_newest`.

  Returns:
    Path without file extension; None if there is none and no name is given.

  Raises:
    UsageError: If the named checkpoint is missing or damaged, or all
      checkpoints are damaged.
  """
  folder = files.expand(folder)
  if not name:
    paths = list_variables(folder)
    return choose_newest(paths, _find_damaged_variables, warn)
  name = str(name)
  path = os.path.join(folder, name)
  if name == BEST:
    path, _ = _read_best(folder)
    if not path:
      raise errors.UsageError(
        f'There is no best checkpoint in {folder} yet. It is written after the '
        'first evaluation; omit --checkpoint to use the newest one.'
      )
  if not os.path.exists(path + '.index'):
    known = [os.path.basename(x) for x in list_variables(folder)]
    advice = f' {errors.suggest(name, known)}' if known else ''
    raise errors.UsageError(
      f'There is no checkpoint {name} in {folder}.{advice}'
    )
  damage = _find_damaged_variables(path)
  if damage:
    raise errors.UsageError(
      f'Checkpoint {path} is damaged ({damage}); choose an older one.'
    )
  return path


def keep_best(
  sess: Any, saver: Any, folder: str, step: int, score: float
) -> None:
  """Write a TensorFlow checkpoint that replaces the best one.

  The file that names it is written last, so a complete one always exists.

  Args:
    sess: Session.
    saver: Saver of its variables that does not count this checkpoint among
      the newest ones.
    folder: Log directory; the files go to its subfolder `best`.
    step: Global step.
    score: Score of the model, for `read_best_score`.
  """
  best = os.path.join(files.expand(folder), BEST)
  locks.check(best)
  os.makedirs(best, exist_ok=True)
  name = f'model.ckpt-{step}'
  ops = saver.saver_def
  path = os.path.join(best, name)
  sess.run(ops.save_tensor_name, {ops.filename_tensor_name: path})
  place = {'checkpoint': name, 'step': step, 'score': float(score)}
  files.write_json(os.path.join(best, _SCORE), place)
  for other in os.listdir(best):
    if other.startswith('model.ckpt-') and not other.startswith(name + '.'):
      os.remove(os.path.join(best, other))


def read_best_score(folder: str) -> float:
  """Return the score of the best checkpoint, -infinity without one."""
  return _read_best(files.expand(folder))[1]


def _read_best(folder):
  """Return path and score of the best checkpoint, None if there is none.

  Raises:
    UsageError: If the file that names it is damaged.
  """
  filename = os.path.join(folder, BEST, _SCORE)
  try:
    with open(filename) as file_:
      found = json.load(file_)
    name, score = str(found['checkpoint']), float(found['score'])
    if not re.fullmatch(r'model\.ckpt-\d+', name) or not math.isfinite(score):
      raise ValueError(found)
  except FileNotFoundError:
    return None, -math.inf
  except (KeyError, TypeError, ValueError):
    raise errors.UsageError(
      f'{filename} is damaged; remove its folder to continue.'
    ) from None
  path = os.path.join(folder, BEST, name)
  return (path, score) if os.path.exists(path + '.index') else (None, -math.inf)


def newest_step(folder: str) -> int:
  """Return the step of the newest complete checkpoint, 0 if there is none.

  Raises:
    UsageError: If all are damaged.
  """
  return step_of(find_variables(folder, warn=None))


def step_of(path: str | None) -> int:
  """Return the global step in a path `model.ckpt-<step>`, 0 for None."""
  return int(path.rpartition('-')[2]) if path else 0


def not_finite(folder: str | None, step: int) -> errors.NotFinite:
  """Return the error that ends training at a step, see `errors.NotFinite`."""
  path = folder and find_variables(folder, warn=None)
  kept = f'the last checkpoint is {path}' if path else 'there is no checkpoint'
  return errors.NotFinite(
    f'Training diverged at step {step}: a weight, a loss or a score is '
    f'infinite or not a number; {kept}. Start a new run with a lower learning '
    'rate or smaller rewards.'
  )


def _find_damaged_variables(path):
  """Describe the damage of TensorFlow files; None if they are complete."""
  from agents.run.tf1 import tf

  # Other errors of the system are raised, as the file may be intact.
  with (
    contextlib.suppress(FileNotFoundError, IsADirectoryError),
    open(path + '.index', 'rb') as file_,
  ):
    file_.read()
  try:
    reader = tf.train.NewCheckpointReader(path)
  except (tf.errors.OpError, ValueError, RuntimeError) as error:
    return f'its index cannot be read: {str(error).strip().splitlines()[0]}'
  dtypes = reader.get_variable_to_dtype_map()
  # A lower bound, because strings are counted as 0 bytes.
  least = sum(
    dtypes[name].size * int(np.prod(shape, dtype=np.int64))
    for name, shape in reader.get_variable_to_shape_map().items()
  )
  data = glob.glob(glob.escape(path) + '.data-*-of-*')
  size = sum(os.path.getsize(x) for x in data if os.path.isfile(x))
  if not data or size < least:
    return f'its data has {size} bytes instead of {least}'
  return None
