"""Mixed precision through the graph rewriters of TensorFlow.

Weights, losses and optimizer slots stay float32. The rewriters, oneDNN's on
processors and CUDA's on GPUs, choose the operations with lower precision.
"""

import os
from collections.abc import Callable
from typing import Any

from agents.run import errors
from agents.tools import devices
from agents.tools.tf1 import tf

# Operations that need float32: differences of nearly equal values, and sums of
# thousands of terms, which oneDNN's rewriter would round to the three digits of
# bfloat16. TensorFlow reads these names from the environment only.
_VARIABLE = 'TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_'
_FLOAT32 = 'Mean,SquaredDifference,Sub,Sum'
_ON = 1  # RewriterConfig.ON
# With AVX512-BF16 alone, updates and plans take longer than in float32.
_BFLOAT16 = 'amx_bf16'
# The rewriter skips older GPUs, which have no tensor cores.
_CAPABILITY = (7, 0)


def check(precision: str) -> None:
  """Check that this machine supports a precision.

  Args:
    precision: `float32`, `bfloat16` or `float16`.

  Raises:
    UsageError: If it does not.
  """
  missing = None
  if precision == 'float16':
    capability = devices.compute_capability()
    if capability is None:
      missing = f'a GPU: {devices.describe()}'
    elif capability < _CAPABILITY:
      found = '.'.join(map(str, capability))
      missing = f'a GPU of compute capability 7.0; this one has {found}.'
  if precision == 'bfloat16':
    if devices.compute_capability() is not None:
      missing = (
        'a CPU, but TensorFlow uses the GPU. Use float16, or set '
        'CUDA_VISIBLE_DEVICES= to use the CPU.'
      )
    elif _BFLOAT16 not in processor_flags():
      missing = 'a CPU with AMX; without AMX, float32 is faster.'
    elif os.environ.get('TF_ENABLE_ONEDNN_OPTS') == '0':
      missing = 'oneDNN; unset TF_ENABLE_ONEDNN_OPTS, which disables it.'
  if missing:
    raise errors.UsageError(
      f'Parameter precision is {precision}, which needs {missing} Or use '
      'float32.'
    )


def enable(precision: str | None, session: tf.ConfigProto) -> None:
  """Enable the graph rewriter for a precision.

  Also sets environment variables.

  Args:
    precision: See `check`; None is the same as `float32`.
    session: Configuration of the session, changed in place.
  """
  rewriters = session.graph_options.rewrite_options
  if precision in ('bfloat16', 'float16'):
    for name in ('INFERLIST_REMOVE', 'DENYLIST_ADD'):
      os.environ.setdefault(_VARIABLE + name, _FLOAT32)
  if precision == 'bfloat16':
    rewriters.auto_mixed_precision_onednn_bfloat16 = _ON
  if precision == 'float16':
    rewriters.auto_mixed_precision = _ON


def scaled(
  optimizer_cls: Callable[..., tf.train.Optimizer], *args: Any, **kwargs: Any
) -> tf.train.Optimizer:
  """Return an optimizer with dynamic loss scaling for float16.

  Multiplies the loss by the largest factor that the gradients allow, divides
  the gradients by it, and skips updates that overflow.
  Source: Micikevicius et al. (2018), arXiv:1710.03740, section 3.2.

  Args:
    optimizer_cls: Constructor of the optimizer.
    *args: Arguments of the constructor.
    **kwargs: Keyword arguments of the constructor.
  """
  return tf.mixed_precision.MixedPrecisionLossScaleOptimizer(
    optimizer_cls(*args, **kwargs), 'dynamic'
  )


def processor_flags(path: str = '/proc/cpuinfo') -> set[str]:
  """Return the CPU flags that Linux reports; empty on other systems."""
  try:
    with open(path) as file_:
      lines = [line.partition(':') for line in file_]
  except OSError:
    return set()
  flags = [value for key, _, value in lines if key.strip() == 'flags']
  return set(' '.join(flags).split())
