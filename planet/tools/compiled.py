"""Loops of a latent model as programs of XLA, for graphics cards.

TensorFlow launches each of the small operations of a step by itself, which
takes a graphics card longer than to compute it.
"""

import os
from collections.abc import Callable
from typing import Any

from agents.tools import nested
from agents.tools.tf1 import tf
from planet.tools.shape import shape

# Steps per program. One of 50 steps takes more than a minute to compile.
_STEPS = 10
# Do not search for the fastest variant of each product, to start sooner.
_FLAGS = '--xla_gpu_autotune_level=0 --xla_gpu_enable_triton_gemm=false'


def closed_loop(cell: Any, embedded: Any, prev_action: Any) -> tuple[Any, Any]:
  """Compute `unroll.closed_loop`, with the random numbers of XLA.

  Args:
    cell: Model, see `planet.models.Base`.
    embedded: Encoded observations float32 [batch, time, embedding].
    prev_action: Preceding actions float32 [batch, time, actions]; the number
      of steps must be known.

  Returns:
    Tuple of prior and posterior, dicts of tensors [batch, time, ...].
  """
  inputs = embedded, prev_action
  actions = nested.flatten(prev_action)[0]
  state = cell.zero_state(shape(actions)[0], tf.float32)
  # Programs cannot create weights. Their names are those of `dynamic_rnn`.
  with tf.variable_scope('rnn'):
    cell.step(*_at(0, inputs), True, state)
  program = _compile(lambda inputs, state: _filter(cell, inputs, state))
  parts = []
  for begin in range(0, actions.shape[1], _STEPS):
    steps = slice(begin, begin + _STEPS)
    part, state = program(_at(steps, inputs), state)
    parts.append(part)
  return nested.map(lambda *x: tf.concat(x, 1), *parts)


def planner(plan: Callable) -> Callable:
  """Return a planner, see `planet.control.planning`, as a program."""

  def compiled(cell, objective_fn, state, *args, **kwargs):
    return _compile(lambda x: plan(cell, objective_fn, x, *args, **kwargs))(
      state
    )

  return compiled


def _filter(cell, inputs, state):
  """Filter a few steps; return outputs [batch, time, ...] and the state."""
  outputs = []
  for step in range(nested.flatten(inputs)[0].shape[1]):
    obs, action = _at(step, inputs)
    output, state = cell.step(obs, action, True, state)
    outputs.append(output)
  return nested.map(lambda *steps: tf.stack(steps, 1), *outputs), state


def _at(steps, inputs):
  return nested.map(lambda x: x[:, steps], inputs)


def _compile(function):
  """Return a function of the same arguments, compiled by XLA."""
  os.environ.setdefault('XLA_FLAGS', _FLAGS)
  program = tf.function(function, jit_compile=True, autograph=False)
  # Calling the program itself ignores loops of TensorFlow around it.
  return lambda *args: program.get_concrete_function(*args)(*args)
