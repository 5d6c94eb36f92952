"""Read files of episodes and say what is wrong with them."""

import math
import os
import stat
import zipfile
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from agents.tools.wrappers import to_32_bit
from planet.envs.collect_dataset import SCALARS

_READ_HEADER = {
  (1, 0): np.lib.format.read_array_header_1_0,
  (2, 0): np.lib.format.read_array_header_2_0,
}
# A byte of zlib's format stands for at most this many.
_MOST_COMPRESSED = 1032


class Kind(NamedTuple):
  """What the header of an array says, without the time.

  Attributes:
    shape: Shape of one step.
    dtype: Type of the numbers.
    length: Number of steps.
  """

  shape: tuple[int, ...]
  dtype: np.dtype
  length: int


def read(
  filename: str,
  keys: Collection[str] | None = None,
  needed: Collection[str] | None = None,
) -> dict[str, np.ndarray]:
  """Read arrays of an episode, and check them; others are ignored.

  Args:
    filename: Path of an .npz file.
    keys: Names of the arrays to read; by default all, among them `reward`.
    needed: Names of those that the file must have; by default `keys`, or the
      reward.

  Returns:
    Dict from name to array [time, ...], and the numbers `action_repeat` and
    `simulator_steps` if they are stored. All numbers are finite with 32 bits.

  Raises:
    OSError: If the file is missing or cannot be read for the moment.
    ValueError: If its contents are not an episode; the message is a reason that
      follows the name of the file.
  """
  if needed is None:
    needed = ('reward',) if keys is None else keys
  return _open(filename, keys, lambda kind: True, needed)[1]


def inspect(
  filename: str, keys: Collection[str] | None = None
) -> tuple[dict[str, Kind], dict[str, np.ndarray]]:
  """Check an episode without reading images.

  Args:
    filename: Path of an .npz file.
    keys: Names of the arrays to check, which may be missing; all by default.

  Returns:
    What it holds by name, and all arrays but images of uint8, which cannot have
    wrong values.

  Raises:
    OSError: See `read`.
    ValueError: See `read`.
  """

  def choose(kind):
    return kind.dtype != np.uint8 or len(kind.shape) < 3

  return _open(filename, keys, choose, ())


def compare(expected: Mapping[str, str], found: Mapping[str, str]) -> str:
  """Return in words where descriptions of arrays differ, '' if nowhere."""
  parts = [f'no {x}' for x in sorted(expected.keys() - found.keys())]
  for key, text in sorted(found.items()):
    if key not in expected:
      parts.append(f'{key}, which is not expected')
    elif text != expected[key]:
      parts.append(f'{key} {text} instead of {key} {expected[key]}')
  return f'it has {"; ".join(parts)}' if parts else ''


def find_first(array: np.ndarray, wrong: np.ndarray) -> tuple[Any, int]:
  """Return the first of the values that are wrong, and its step.

  Args:
    array: Array [time, ...].
    wrong: Bool array of the same shape; not all are False.
  """
  step = int(np.argwhere(wrong)[0][0])
  return array[step].flat[int(np.argmax(wrong[step]))], step


def too_short(length: int, needed: int) -> str:
  """Return why an episode has too few observations."""
  return (
    f'it has {length} observations, but batch_shape and num_chunks need '
    f'{needed}'
  )


def _open(
  filename: str,
  keys: Collection[str] | None,
  choose: Callable[[Kind], bool],
  needed: Collection[str],
) -> tuple[dict[str, Kind], dict[str, np.ndarray]]:
  # A pipe would block, and reading a folder is an error of the system.
  if not stat.S_ISREG(os.stat(filename).st_mode):
    raise ValueError('it is not a file')
  names = None if keys is None else {*keys, *SCALARS}
  try:
    with zipfile.ZipFile(filename) as archive:
      kinds = _read_kinds(archive, names)
      if missing := {*needed} - {*kinds}:
        raise ValueError(f'it has no {", no ".join(sorted(missing))}')
      arrays = {
        key: _read_array(archive, key)
        for key, kind in kinds.items()
        if choose(kind)
      }
  except (OSError, MemoryError, ValueError):
    raise
  except Exception as error:  # Whatever damaged bytes may lead to.
    raise ValueError(str(error) or type(error).__name__) from None
  return {x: y for x, y in kinds.items() if x not in SCALARS}, arrays


def _read_kinds(archive, names):
  """Read and check the headers of some arrays, or of all."""
  kinds = {}
  for info in archive.infolist():
    key = info.filename.removesuffix('.npy')
    if names is not None and key not in names:
      continue
    if key in kinds:
      raise ValueError(f'it has {key} twice')
    kinds[key] = _read_kind(archive, info, key)
  lengths = {x: y.length for x, y in kinds.items() if x not in SCALARS}
  if len(set(lengths.values())) > 1:
    raise ValueError(f'its arrays differ in length: {lengths}')
  if (lengths or names is None) and not any(lengths.values()):
    raise ValueError('it has no steps')
  if 'reward' in kinds and (shape := kinds['reward'].shape):
    raise ValueError(f'a reward has shape {list(shape)}, but is one number')
  return kinds


def _read_kind(archive, info, key):
  with archive.open(info) as file_:
    version = np.lib.format.read_magic(file_)
    if version not in _READ_HEADER:
      raise ValueError(f'{key} has the unknown format {version}')
    shape, _, dtype = _READ_HEADER[version](file_)
    begin = file_.tell()
  if dtype.kind not in 'biuf':
    raise ValueError(f'{key} is of type {dtype}, which is not a number')
  if (key in SCALARS) != (not shape):
    expected = 'be a number' if key in SCALARS else 'have a time axis'
    raise ValueError(f'{key} has shape {list(shape)}, but should {expected}')
  # The size is known before memory is reserved for it.
  held = info.file_size
  if info.compress_type == zipfile.ZIP_DEFLATED:
    held = min(held, _MOST_COMPRESSED * info.compress_size)
  size = begin + dtype.itemsize * math.prod(shape)
  if min(shape, default=0) < 0 or size != held:
    raise ValueError(
      f'{key} has {held - begin} bytes, which is not {list(shape)} of {dtype}'
    )
  length = shape[0] if shape else 1
  return Kind(tuple(shape[1:]), dtype, length)


def _read_array(archive, key):
  with archive.open(f'{key}.npy') as file_:
    array = np.lib.format.read_array(file_, allow_pickle=False)
  if key in SCALARS:
    if not (array >= 1 and array == np.floor(array)):
      raise ValueError(f'{key} is {array}, but should be a number of steps')
    return array
  with np.errstate(over='ignore'):
    if array.dtype == np.longdouble:
      array = array.astype(np.float64)
    small = to_32_bit(array)
    total = small.sum(dtype=np.float32)
  wrong = small != array if small.dtype.kind == 'i' else ~np.isfinite(small)
  if wrong.any():
    value, step = find_first(array, wrong)
    raise ValueError(f'{key} is {value} at step {step}')
  if key == 'reward' and not np.isfinite(total):
    raise ValueError('the sum of its rewards is infinite')
  return array
