"""Make the released PlaNet of 2019 importable on current TensorFlow.

The clone is not changed. What it needs and what has been removed since is
replaced: `tf.contrib`, names of NumPy, positions of modules.
"""

import os
import sys
import types
from typing import Any


def prepare(clone: str) -> Any:
  """Put a clone of google-research/planet first on the path.

  To be called before anything imports TensorFlow.

  Returns:
    The module that `import tensorflow` yields to the original.
  """
  os.environ['TF_USE_LEGACY_KERAS'] = '1'  # tf.layers and recurrent cells
  import numpy as np
  import scipy.ndimage
  import tensorflow.compat.v1 as tf

  tf.disable_v2_behavior()
  for kind in (float, int, bool, object):
    vars(np).setdefault(kind.__name__, kind)
  # TensorFlow Probability needs the real module.
  import tensorflow_probability  # noqa: F401

  rnn = types.SimpleNamespace(GRUBlockCell=_define_gru(tf))
  tf.contrib = types.SimpleNamespace(rnn=rnn)
  sys.modules['tensorflow'] = tf
  sys.modules['scipy.ndimage.interpolation'] = scipy.ndimage
  # Tasks name their simulators, but no environment is built here.
  sys.modules['dm_control'] = types.ModuleType('dm_control')
  sys.modules['dm_control'].suite = None  # type: ignore[attr-defined]
  sys.path.insert(0, clone)
  return tf


def _define_gru(tf):
  """Return the cell of tf.contrib.rnn: names, shapes, equations."""
  layer_rnn_cell: Any = tf.nn.rnn_cell.GRUCell.__mro__[1]

  class GRUBlockCell(layer_rnn_cell):
    def __init__(self, num_units, name='gru_cell'):
      super().__init__(name=name)
      self._num_units = num_units

    state_size = property(lambda self: self._num_units)
    output_size = property(lambda self: self._num_units)

    def build(self, shape):
      sizes = int(shape[1]) + self._num_units, self._num_units
      ones, zeros = tf.constant_initializer(1.0), tf.constant_initializer(0.0)
      self._gates = (
        self.add_variable('w_ru', [sizes[0], 2 * sizes[1]]),
        self.add_variable('b_ru', [2 * sizes[1]], initializer=ones),
      )
      self._candidate = (
        self.add_variable('w_c', sizes),
        self.add_variable('b_c', [sizes[1]], initializer=zeros),
      )
      self.built = True

    def call(self, inputs, state):
      weights, bias = self._gates
      gates = tf.sigmoid(
        tf.matmul(tf.concat([inputs, state], 1), weights) + bias
      )
      reset, update = tf.split(gates, 2, 1)
      weights, bias = self._candidate
      candidate = tf.concat([inputs, reset * state], 1)
      candidate = tf.tanh(tf.matmul(candidate, weights) + bias)
      state = update * state + (1 - update) * candidate
      return state, state

  return GRUBlockCell
