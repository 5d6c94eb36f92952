"""Fewer bits for matrix products, by TensorFlow's own rewriters of graphs.

Weights, losses and slots of optimisers stay float32. The rewriters decide
which operations between them take fewer bits: oneDNN's on processors, that of
CUDA on graphics cards.
"""

import os
from collections.abc import Callable
from typing import Any

from agents.run import errors
from agents.tools import devices
from agents.tools.tf1 import tf

# Operations that would lose what is learned from: differences of what is nearly
# equal, and sums of thousands of terms, which oneDNN's rewriter would return in
# bfloat16, with three digits. TensorFlow takes such names from the environment
# only.
_VARIABLE = 'TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_'
_FLOAT32 = 'Mean,SquaredDifference,Sub,Sum'
_ON = 1  # RewriterConfig.ON
# With AVX512-BF16 alone, updates and plans take longer than in float32.
_BFLOAT16 = 'amx_bf16'
# Older cards have no units for products of float16; the rewriter skips them.
_CAPABILITY = (7, 0)


def check(precision: str) -> None:
  """Refuse a precision that this machine cannot compute in.

  Args:
    precision: `float32`, `bfloat16` or `float16`.

  Raises:
    UsageError: Saying what is missing.
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
        'a processor, but a GPU computes here. Use float16, or set '
        'CUDA_VISIBLE_DEVICES= to compute on the processor.'
      )
    elif _BFLOAT16 not in processor_flags():
      missing = 'a processor with AMX; without, float32 is faster.'
    elif os.environ.get('TF_ENABLE_ONEDNN_OPTS') == '0':
      missing = 'oneDNN; unset TF_ENABLE_ONEDNN_OPTS, which turns that off.'
  if missing:
    raise errors.UsageError(
      f'Parameter precision is {precision}, which needs {missing} Or leave '
      'precision at float32.'
    )


def enable(precision: str | None, session: tf.ConfigProto) -> None:
  """Let the graphs of a session be rewritten for a precision.

  Args:
    precision: See `check`; None is the same as `float32`.
    session: Configuration of the session, changed in place. Variables of
      the environment are set besides.
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
  """Return an optimiser whose gradients do not vanish in float16.

  The loss is multiplied by a factor as large as the gradients allow, and the
  gradients are divided by it. Updates that overflow are left out.
  Source: Micikevicius et al. (2018), arXiv:1710.03740, section 3.2.

  Args:
    optimizer_cls: Constructor of an optimiser.
    *args: Its arguments.
    **kwargs: Its arguments.
  """
  return tf.mixed_precision.MixedPrecisionLossScaleOptimizer(
    optimizer_cls(*args, **kwargs), 'dynamic'
  )


def processor_flags(path: str = '/proc/cpuinfo') -> set[str]:
  """Return what the processor can do, in Linux's words; empty elsewhere."""
  try:
    with open(path) as file_:
      lines = [line.partition(':') for line in file_]
  except OSError:
    return set()
  flags = [value for key, _, value in lines if key.strip() == 'flags']
  return set(' '.join(flags).split())
