"""Where there is a GPU, it computes updates and plans of `default`.

TensorFlow lists the kernels of its wheel on every machine.
"""

import functools
import types

from tensorflow.python.framework import kernels

from agents.tools.tf1 import tf
from planet.control.mpc_agent import MPCAgent
from planet.training import collection
from scripts.benchmarks import planet


def test_update():
  with tf.Graph().as_default() as graph:
    config, networks = planet._define_graph((2, 3), batch_shape=[2, 3])
    planet.define_update(config, networks, None)
  assert not list_missing(graph)


def test_decision():
  with tf.Graph().as_default() as graph:
    config, networks = planet._define_graph((1, 1))
    ((name, simulation),) = config.train_collects.items()
    options = collection.agent_config(config, simulation, networks, name)
    env = types.SimpleNamespace(action=networks.data['action'][:1, 0])
    agent = MPCAgent(env, networks.step, False, False, options)
    agent.perform(tf.range(1), networks.data['image'][:1, 0])
  assert not list_missing(graph)


def test_only_cpu():
  """The check notices what only a CPU computes, and what has no such type."""
  with tf.Graph().as_default() as graph:
    tf.py_func(lambda: 1.0, [], tf.float64)
    tf.matmul(tf.ones([1, 1], tf.int32), tf.ones([1, 1], tf.int32))
  assert list_missing(graph) == ['MatMul', 'PyFunc']


def list_missing(graph):
  """Return types of operations without a kernel for a GPU.

  Text is for a CPU: names of phases, and summaries.
  """
  return sorted(
    {
      op.type
      for op in graph.get_operations()
      if not has_text(op) and not runs_on_gpu(op)
    }
  )


def has_text(op):
  return any(x.dtype.base_dtype == tf.string for x in [*op.inputs, *op.outputs])


def runs_on_gpu(op):
  return any(
    kernel.device_type in ('GPU', 'DEFAULT')
    and all(is_met(op, x) for x in kernel.constraint)
    for kernel in find_kernels(op.type).kernel
  )


find_kernels = functools.cache(kernels.get_registered_kernels_for_op)


def is_met(op, constraint):
  """Whether a kernel has the types of an operation."""
  value = op.get_attr(constraint.name)
  values = value if isinstance(value, list) else [value]
  allowed = constraint.allowed_values.list.type
  return all(tf.as_dtype(x).as_datatype_enum in allowed for x in values)
