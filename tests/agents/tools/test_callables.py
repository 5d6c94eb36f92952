"""Functions that run parts of a graph."""

import numpy as np
import pytest

from agents.tools import callables
from agents.tools.tf1 import tf
from tests import graphs


@pytest.mark.parametrize('small', [False, True])
def test_function_of_placeholders(small):
  x = tf.placeholder(tf.float32, [3])
  with graphs.session() as sess:
    function = callables.make_function([2 * x, x + 1], [x], sess, small=small)
    double, more = function([1, 2, 3])
  assert double.tolist() == [2, 4, 6] and more.tolist() == [2, 3, 4]
  assert double.dtype == np.float32


def test_subnormal_numbers_become_zero():
  """Moments of dead units shrink to them, and Adam takes ten times as long."""
  x = tf.placeholder(tf.float32, [8])
  tiny = np.full(8, np.finfo(np.float32).tiny)
  with graphs.session() as sess:
    (half,) = callables.make_function([x * 0.5], [x], sess)(tiny)
  assert not half.any()
