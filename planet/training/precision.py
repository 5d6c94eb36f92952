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
_KEEP = 'or leave precision at float32.'
_ON = 1  # RewriterConfig.ON
# Flags of processors that multiply matrices of bfloat16.
_BFLOAT16 = {'avx512_bf16', 'amx_bf16'}
# Older cards have no units for products of float16; the rewriter skips them.
_CAPABILITY = (7, 0)


def check(precision: str) -> None:
  """Refuse a precision that this machine cannot compute in.

  Args:
    precision: `float32`, `bfloat16` or `float16`.

  Raises:
    UsageError: Saying what is missing.
  """
  if precision == 'float32':
    return
  capability = devices.compute_capability()
  if precision == 'bfloat16':
    _check_processor(capability)
  elif capability is None:
    raise errors.UsageError(
      'Parameter precision is float16, which needs a GPU: '
      f'{devices.describe()} Use a machine with one, {_KEEP}'
    )
  elif capability < _CAPABILITY:
    raise errors.UsageError(
      'Parameter precision is float16, which needs a GPU of compute '
      f'capability 7.0; this one has {".".join(map(str, capability))}. Use '
      f'another one, {_KEEP}'
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
  return {
    flag
    for key, _, value in lines
    if key.strip() == 'flags'
    for flag in value.split()
  }


def _check_processor(capability):
  if capability is not None:
    raise errors.UsageError(
      'Parameter precision is bfloat16, which is for processors, but a GPU '
      'computes here. Use float16, set CUDA_VISIBLE_DEVICES= to compute on '
      f'the processor, {_KEEP}'
    )
  if not _BFLOAT16 & processor_flags():
    raise errors.UsageError(
      'Parameter precision is bfloat16, but this processor has neither '
      f'AVX512-BF16 nor AMX. Use one that has, {_KEEP}'
    )
  if os.environ.get('TF_ENABLE_ONEDNN_OPTS') == '0':
    raise errors.UsageError(
      'Parameter precision is bfloat16, which oneDNN computes, but '
      f'TF_ENABLE_ONEDNN_OPTS=0 turns that off. Unset it, {_KEEP}'
    )
