"""The graph of PlaNet on random data, for measuring updates and decisions."""

import types
from collections.abc import Mapping, Sequence

import numpy as np

from agents.tools.tf1 import tf
from planet.control.mpc_agent import MPCAgent
from planet.tools.attr_dict import AttrDict
from planet.training import collection
from planet.training import objectives as objectives_lib
from planet.training.define_networks import define_networks


def draw_data(
  batch_shape: Sequence[int], shapes: Mapping[str, Sequence[int]]
) -> dict[str, tf.Tensor]:
  """Return random data that does not change from one execution to the next.

  Args:
    batch_shape: Number of sequences and their length.
    shapes: Dict from the names of what is recorded to the shape of one step.

  Returns:
    Dict of tensors float32 [batch, time, ...], and `length` int32 [batch].
  """
  random = np.random.RandomState(0)
  data = {}
  for name, shape in shapes.items():
    value = random.uniform(-0.5, 0.5, (*batch_shape, *shape))
    # Constants would be folded while the graph is optimised.
    variable = tf.get_local_variable(
      f'data_{name}', initializer=value.astype(np.float32)
    )
    data[name] = tf.identity(variable)
  return {**data, 'length': tf.fill(batch_shape[:1], batch_shape[1])}


def define_graph(config: AttrDict, data: dict[str, tf.Tensor]) -> AttrDict:
  """Define the networks, in the first step of a training phase.

  Args:
    config: Configuration of the run.
    data: What `draw_data` returns.
  """
  graph = define_networks(data, config)
  trainer = AttrDict(
    step=tf.constant(1),
    global_step=tf.constant(1),
    log=tf.constant(False),
    phase=tf.constant('train'),
  )
  with graph.unlocked:
    graph.update(trainer=trainer, step=trainer.step)
  return graph


def define_update(graph: AttrDict, config: AttrDict) -> tf.Operation:
  """Define an update of the whole model.

  Args:
    graph: What `define_graph` returns.
    config: Configuration of the run.
  """
  objectives = objectives_lib.compute_objectives(
    graph.posterior, graph.prior, graph.data, graph, config
  )
  summaries, norms = objectives_lib.apply_optimizers(
    objectives, graph.trainer, config
  )
  return tf.group(*summaries, *norms.values())


def define_decision(
  graph: AttrDict, config: AttrDict
) -> tf.Tensor | tf.Operation:
  """Define a decision in one environment, as when episodes are collected.

  Args:
    graph: What `define_graph` returns.
    config: Configuration of the run.

  Returns:
    Action float32 [1, size]; nothing if no episodes are collected.
  """
  if not config.train_collects:
    return tf.no_op()
  name, simulation = next(iter(config.train_collects.items()))
  agent = collection.agent_config(config, simulation, graph, name)
  with agent.unlocked:
    agent.preprocess_fn = lambda x: x
  env = types.SimpleNamespace(action=graph.data['action'][:1, 0])
  mpc = MPCAgent(env, graph.step, False, False, agent)
  observ = graph.data[config.observation][:1, 0]
  return mpc.perform(tf.range(1), observ)[0]
