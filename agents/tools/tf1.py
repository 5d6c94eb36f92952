"""The one place that imports TensorFlow: graph mode, quiet, fast on CPUs.

TensorFlow leaves its oneDNN kernels off on processors without AVX-512, where
they are several times faster. The variable counts only before the import; a
value that the user has set is respected.
"""

import os

from agents.envs import quiet

os.environ.setdefault('TF_ENABLE_ONEDNN_OPTS', '1')
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')

with quiet.hold_back(2):
  import tensorflow.compat.v1 as tf
  from tensorflow.core.protobuf.config_pb2 import CallableOptions

  tf.logging.set_verbosity(tf.logging.ERROR)
  tf.disable_v2_behavior()
  tf.enable_resource_variables()

__all__ = ['CallableOptions', 'tf']
