"""The one place that imports TensorFlow: graph mode, quiet, fast on CPUs.

TensorFlow leaves its oneDNN kernels off on processors without AVX-512, where
they are several times faster. The variable counts only before the import; a
value that the user has set is respected.
"""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator

os.environ.setdefault('TF_ENABLE_ONEDNN_OPTS', '1')
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')


@contextlib.contextmanager
def quiet_stderr() -> Iterator[None]:
  """Hold back what libraries print while loading, unless loading fails.

  Yields:
    Nothing.
  """
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


with quiet_stderr():
  import tensorflow.compat.v1 as tf
  from tensorflow.core.protobuf.config_pb2 import CallableOptions

  tf.logging.set_verbosity(tf.logging.ERROR)
  tf.disable_v2_behavior()
  tf.enable_resource_variables()

__all__ = ['CallableOptions', 'quiet_stderr', 'tf']
