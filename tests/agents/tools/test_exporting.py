"""What graphs compute of spaces, compared with `agents.envs.spaces`."""

import gymnasium
import numpy as np
import pytest

from agents.envs import spaces
from agents.run import errors
from agents.tools import exporting
from agents.tools.tf1 import tf

Box = gymnasium.spaces.Box
SPACES = {
  'two': Box(-2, 2, (2,), np.float32),
  'fifth': Box(-0.2, 0.2, (2,), np.float64),
  'one-sided': Box(np.float32([0, -np.inf]), np.float32([np.inf, 5])),
  'half': Box(-0.5, 3, (2,), np.float16),
  'integers': Box(-3, 4, (2,), np.int64),
  'bytes': Box(0, 255, (2,), np.uint8),
  'wide': Box(-(2**63), 2**63 - 1, (2,), np.int64),
}
ACTIONS = np.random.RandomState(0).uniform(-6, 300, (50, 2)).astype(np.float32)
ACTIONS[::2] /= 100
ACTIONS[0], ACTIONS[1] = 1e30, -1e30
ACTIONS[2] = 2.5, 3.5


@pytest.mark.parametrize('name', SPACES)
def test_fitting(name):
  space = SPACES[name]
  with tf.Graph().as_default(), tf.Session() as sess:
    exact, narrow = sess.run(
      [exporting.fit(tf.constant(ACTIONS), space, x) for x in (False, True)]
    )
  expected = spaces.fitting(space)(ACTIONS)
  assert exact.dtype == narrow.dtype == expected.dtype
  assert np.array_equal(exact, expected)
  np.testing.assert_allclose(narrow, expected, rtol=1e-6)


def test_bytes_by_lite(tmp_path):
  def define(narrow):
    x = tf.placeholder(tf.float32, [None, 2], 'observation')
    action = exporting.fit(x, SPACES['bytes'], narrow)
    return exporting.Signature({'observation': x}, {'action': action})

  assert not exporting._write_lite(str(tmp_path / 'policy.tflite'), define)


@pytest.mark.parametrize('name', ['two', 'fifth', 'integers', 'bytes'])
def test_scaling(name):
  unit = spaces.UnitBox(SPACES[name])
  actions = np.random.RandomState(0).uniform(-1, 1, (50, 2)).astype(np.float32)
  with tf.Graph().as_default(), tf.Session() as sess:
    exact, narrow = sess.run(
      [
        exporting.to_box(tf.constant(actions), unit.low, unit.high, x)
        for x in (False, True)
      ]
    )
  expected = unit.to_box(actions)
  assert exact.dtype == expected.dtype and np.array_equal(exact, expected)
  np.testing.assert_allclose(narrow, expected, rtol=1e-5, atol=1e-5)


def test_folder_with_files(tmp_path):
  (tmp_path / 'notes').touch()
  with pytest.raises(errors.UsageError, match='not empty; export to a new'):
    exporting.write(str(tmp_path), None, False)
  with pytest.raises(errors.UsageError, match='is a file'):
    exporting.write(str(tmp_path / 'notes'), None, False)


def test_export_that_failed_can_be_repeated(tmp_path):
  """The folder may be a mounted one, which cannot be removed."""

  def define(narrow):
    if narrow and full:
      raise OSError('The disk is full.')
    x = tf.placeholder(tf.float32, [None, 2], 'observation')
    return exporting.Signature({'observation': x}, {'action': 2 * x})

  full, inode = True, tmp_path.stat().st_ino
  with pytest.raises(OSError, match='full'):
    exporting.write(str(tmp_path), define, True)
  assert not list(tmp_path.iterdir())
  full = False
  assert exporting.write(str(tmp_path), define, False)
  assert tmp_path.stat().st_ino == inode


def test_small_floats_are_scaled_in_32_bits():
  """As in an exported policy, whose observations have them."""
  ranges = spaces.Ranges(Box(-2, 3, (2,), np.float16), Box(-1, 1, (2,)))
  value = np.array([0.1, 2.7], np.float16)
  expected = 2 * (value.astype(np.float32) + 2) / 5 - 1
  np.testing.assert_allclose(ranges.observ(value), expected, rtol=1e-6)
