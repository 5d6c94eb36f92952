"""Recorded numbers of the original programs, see `tests/data/README.md`.

Free of TensorFlow; `tests.graphs` has what needs a graph.
"""

import functools
import json
import os

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = os.path.join(ROOT, 'tests', 'data')

# Recurrent models: a fused and a plain cell add up in different orders, and
# several steps amplify the difference.
MODEL = dict(rtol=1e-4, atol=1e-5)
# Convolutions: entries near zero are sums of large terms, so they are judged
# by the largest entry of the tensor.
CONV = dict(rtol=1e-4, atol=1e-6, floor=2e-5)
# Divergences divide by squared standard deviations.
KL = dict(rtol=2e-4, atol=2e-5)
# Backpropagation through everything, with rectifiers near zero.
GRADIENT = dict(rtol=2e-4, atol=1e-6, floor=2e-5)


class Golden:
  """Arrays of one file by their keys, which use `/` as separator.

  Args:
    name: Path below `tests/data`, without ending.
  """

  def __init__(self, name):
    with np.load(os.path.join(FOLDER, name + '.npz')) as archive:
      self._arrays = {key: archive[key] for key in archive.files}

  def __getitem__(self, key):
    return self._arrays[key]

  def __contains__(self, key):
    return key in self._arrays

  def __iter__(self):
    return iter(self._arrays)

  def below(self, prefix):
    """Dict of all arrays whose keys begin with a prefix and a slash."""
    start = prefix + '/'
    return {
      key[len(start) :]: value
      for key, value in self._arrays.items()
      if key.startswith(start)
    }

  @property
  def meta(self):
    """Settings of the recording."""
    return json.loads(str(self['meta']))

  def weight(self, name):
    """Recorded weight, or the one drawn anew from its recorded seed."""
    if 'w/' + name in self:
      return self['w/' + name]
    seed, scale = self['wspec/' + name]
    shape = tuple(self['wshape/' + name])
    value = np.random.RandomState(int(seed)).normal(0, scale, shape)
    value = value.astype(np.float32)
    sums = value.sum(dtype=float), np.abs(value).sum(dtype=float)
    np.testing.assert_allclose(sums, self['wsum/' + name])
    return value


@functools.cache
def load(name):
  """Recorded arrays of `tests/data/<name>.npz`."""
  return Golden(name)


@functools.cache
def load_json(name):
  """Recorded data of `tests/data/<name>.json`; not to be changed."""
  with open(os.path.join(FOLDER, name + '.json')) as file_:
    return json.load(file_)


def assert_close(actual, expected, rtol=1e-5, atol=1e-6, floor=0.0, name=''):
  """Compare numbers, shapes, and whether both are floats.

  Args:
    actual: Array or number.
    expected: Array or number.
    rtol: Relative tolerance.
    atol: Absolute tolerance.
    floor: Absolute tolerance in units of the largest expected magnitude.
    name: What is compared, for the message.
  """
  actual, expected = np.asarray(actual), np.asarray(expected)
  assert actual.shape == expected.shape, (name, actual.shape, expected.shape)
  floats = actual.dtype.kind == 'f', expected.dtype.kind == 'f'
  assert len(set(floats)) == 1, (name, actual.dtype, expected.dtype)
  if floor:
    atol = atol + floor * np.abs(expected).max()
  np.testing.assert_allclose(actual, expected, rtol, atol, err_msg=name)


def assert_all_close(actual, expected, **tolerance):
  """Compare dictionaries of numbers; both need to have the same keys."""
  assert sorted(actual) == sorted(expected)
  for key, value in expected.items():
    assert_close(actual[key], value, name=key, **tolerance)
