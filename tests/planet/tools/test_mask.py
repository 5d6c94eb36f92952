"""Masked tensors."""

import numpy as np
import pytest

from agents.tools.tf1 import tf
from planet.tools.mask import mask
from tests import golden, graphs


def test_recorded_values():
  """`planet/mask`: the same tensor by length with 7, by mask with 0; exact."""
  data = golden.load('planet/mask')
  tensor, length = data['in/x'], data['in/length']
  flags = tf.sequence_mask(length, tensor.shape[1])
  values = graphs.evaluate(
    dict(
      value7=mask(tf.constant(tensor), length=length, value=7),
      value0=mask(tf.constant(tensor), flags),
    )
  )
  golden.assert_all_close(values, data.below('out'), rtol=0, atol=0)


def test_hides_what_is_not_finite():
  """Also from gradients, and for integers."""
  tensor = tf.constant([[1.0, np.nan]])
  masked = mask(tensor, tf.constant([[True, False]]))
  gradient = tf.gradients(masked, tensor)[0]
  integers = mask(tf.constant([[1, 2]]), length=[1], value=-1)
  masked, gradient, integers = graphs.evaluate([masked, gradient, integers])
  assert masked.tolist() == [[1, 0]]
  assert gradient.tolist() == [[1, 0]]
  assert integers.tolist() == [[1, -1]]


def test_debug_finds_what_is_not_finite():
  tensor = tf.constant([[1.0, np.nan]])
  with pytest.raises(tf.errors.InvalidArgumentError, match='masked'):
    graphs.evaluate(mask(tensor, length=[2], debug=True))


def test_needs_exactly_one_of_mask_and_length():
  tensor = tf.zeros([1, 2])
  with pytest.raises(KeyError):
    mask(tensor)
  with pytest.raises(KeyError):
    mask(tensor, tf.ones([1, 2], tf.bool), length=[1])
