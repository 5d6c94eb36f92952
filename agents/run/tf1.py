"""The only module that imports TensorFlow: graph mode, quiet, fast on CPUs.

TensorFlow imports Keras only to register its optimizers, which takes a quarter
of the time, so Keras cannot be imported meanwhile. Another quarter would
go to the garbage collector, which is off meanwhile.

TensorFlow disables its oneDNN kernels on processors without AVX-512, where they
are several times faster. The variable that enables them must be set before the
import; a value that the user has set is kept.

`tf.layers`, `tf.nn.rnn_cell` and `tf.keras` are those of tf-keras, because
Keras 3 has no support for graphs. They are imported when they are used.
"""

import contextlib
import gc
import os
import sys
import warnings
from collections.abc import Iterator

from agents.run import streams

os.environ.setdefault('TF_ENABLE_ONEDNN_OPTS', '1')
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
_KERAS = ('keras.src.optimizers', 'tf_keras.src.optimizers')
for _name in _KERAS:
  sys.modules.setdefault(_name, None)  # type: ignore[arg-type]


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
  """Collect no garbage meanwhile, and later only among objects made later.

  TensorFlow's hundreds of thousands of objects stay for good.
  """
  was_enabled = gc.isenabled()
  gc.disable()
  try:
    yield
    gc.freeze()
  finally:
    if was_enabled:
      gc.enable()


with streams.hold_back(2), _without_collector():
  import tensorflow.compat.v1 as tf
  from tensorflow.core.protobuf.config_pb2 import CallableOptions

  tf.logging.set_verbosity(tf.logging.ERROR)
  tf.disable_v2_behavior()
  tf.enable_resource_variables()

for _name in _KERAS:
  if sys.modules[_name] is None:
    del sys.modules[_name]
os.environ.setdefault('TF_USE_LEGACY_KERAS', '1')
# TensorFlow Probability could not be imported where warnings are errors.
warnings.filterwarnings('ignore', 'distutils Version classes are deprecated')
warnings.filterwarnings('ignore', r'`tf\.(layers|nn)\.\S+` is deprecated')

__all__ = ['CallableOptions', 'convert_to_lite', 'tf']


def convert_to_lite(folder: str) -> bytes:
  """Return a TFLite model of a SavedModel, with its signature.

  Args:
    folder: Folder of a SavedModel without variables.
  """
  import tensorflow
  from tensorflow.python.eager import context

  # Only its converter of eager mode keeps signatures.
  with streams.hold_back(2), context.eager_mode():
    converter = tensorflow.lite.TFLiteConverter.from_saved_model(folder)
    return converter.convert()
