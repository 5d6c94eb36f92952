"""The one place that imports TensorFlow: graph mode, quiet, fast on CPUs.

TensorFlow leaves its oneDNN kernels off on processors without AVX-512, where
they are several times faster. The variable counts only before the import; a
value that the user has set is respected.
"""

import contextlib
import os
import sys
import tempfile

os.environ.setdefault('TF_ENABLE_ONEDNN_OPTS', '1')
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')


@contextlib.contextmanager
def _quiet_stderr():
  """Hold back what libraries print while loading, unless loading fails."""
  sys.stderr.flush()
  original = os.dup(2)
  with tempfile.TemporaryFile() as held:
    os.dup2(held.fileno(), 2)
    try:
      yield
    except BaseException:
      held.seek(0)
      os.write(original, held.read())
      raise
    finally:
      os.dup2(original, 2)
      os.close(original)


with _quiet_stderr():
  import tensorflow.compat.v1 as tf
  from tensorflow.core.protobuf.config_pb2 import CallableOptions

  tf.logging.set_verbosity(tf.logging.ERROR)
  tf.disable_v2_behavior()
  tf.enable_resource_variables()

__all__ = ['CallableOptions', 'tf']
