"""The only module that imports TensorFlow: graph mode, quiet, fast on CPUs.

TensorFlow imports Keras only to register its optimizers, which takes a quarter
of the time, so Keras cannot be imported meanwhile.

TensorFlow disables its oneDNN kernels on processors without AVX-512, where they
are several times faster. The variable that enables them must be set before the
import; a value that the user has set is kept.
"""

import os
import sys

from agents.envs import quiet

os.environ.setdefault('TF_ENABLE_ONEDNN_OPTS', '1')
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
_KERAS = 'keras.src.optimizers'
sys.modules.setdefault(_KERAS, None)  # type: ignore[arg-type]

with quiet.hold_back(2):
  import tensorflow.compat.v1 as tf
  from tensorflow.core.protobuf.config_pb2 import CallableOptions

  tf.logging.set_verbosity(tf.logging.ERROR)
  tf.disable_v2_behavior()
  tf.enable_resource_variables()

if sys.modules[_KERAS] is None:
  del sys.modules[_KERAS]

__all__ = ['CallableOptions', 'tf']
