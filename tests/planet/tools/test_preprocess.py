"""Quantised images with noise, against `planet/preprocess`."""

import numpy as np
import pytest
from scipy import stats

from agents.tools.tf1 import tf
from planet.tools import preprocess
from tests import golden, graphs

all_bits = pytest.mark.parametrize('bits', [3, 5, 8])


@all_bits
@pytest.mark.parametrize('noise', ['with_noise', 'zero_noise'])
def test_recorded_noise(bits, noise, monkeypatch):
  """The recorded draw, or none, instead of the uniform one; rtol 1e-5."""
  data = golden.load('planet/preprocess')
  unit = data['in/unit_noise'] * (noise == 'with_noise')
  draw = lambda low, high: low + (high - low) * tf.constant(unit)
  with graphs.recorded_uniform(monkeypatch, draw):
    image = preprocess.preprocess(tf.constant(data['in/image']), bits)
  expected = data[f'out/bits{bits}/preprocess_{noise}']
  golden.assert_close(graphs.evaluate(image), expected)


@all_bits
def test_free_noise(bits):
  """It fills one quantisation step evenly and is fresh at every call."""
  data = golden.load('planet/preprocess')
  base = data[f'out/bits{bits}/preprocess_zero_noise']
  image = preprocess.preprocess(tf.constant(data['in/image']), bits)
  with graphs.session() as sess:
    first, second = [
      (sess.run(image) - base).ravel() * 2.0**bits for _ in range(2)
    ]
  for offset in (first, second):
    assert offset.min() > -1e-4 and offset.max() < 1 + 1e-4
    assert stats.kstest(offset, 'uniform').pvalue > 1e-5
  assert abs(np.corrcoef(first, second)[0, 1]) < 5 / np.sqrt(first.size)


@all_bits
def test_recorded_postprocess(bits):
  """Floats, bytes, and the way back from preprocessed images; exact."""
  data = golden.load('planet/preprocess')
  expected = data.below(f'out/bits{bits}')
  image = tf.constant(data['in/float_image'])
  noisy = tf.constant(expected['preprocess_with_noise'])
  outputs = dict(
    postprocess_float32=preprocess.postprocess(image, bits),
    postprocess_uint8=preprocess.postprocess(image, bits, tf.uint8),
    roundtrip_uint8=preprocess.postprocess(noisy, bits, tf.uint8),
  )
  for key, value in graphs.evaluate(outputs).items():
    assert value.dtype == expected[key].dtype
    np.testing.assert_array_equal(value, expected[key], key)


def test_other_types_are_refused():
  with pytest.raises(NotImplementedError, match='float32 or uint8'):
    preprocess.postprocess(tf.zeros([1]), 5, tf.int32)
