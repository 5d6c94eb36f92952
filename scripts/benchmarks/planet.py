"""Benchmarks of PlaNet: updates and planner.

The baselines of `planet-step` and `planet-plan` use the operations of the
original and the defaults of TensorFlow.
"""

import contextlib
import os
import types
from collections.abc import Sequence
from typing import Any

from scripts.benchmarks import common


@common.benchmark('updates')
def planet_step(
  variant: str,
  batch: int = 50,
  length: int = 50,
  units: int = 3,
  xla: int = 0,
) -> common.Result:
  """Updates of PlaNet; baseline: operations of the original.

  Flags:
    batch, length: Sequences per batch and steps per sequence.
    units: Number of updates.
    xla: 1 to compile ours with XLA.
  """
  with _formulation(variant):
    from agents.run import mpi
    from planet.training.ranks import Ranks

    ranks = Ranks(mpi.world() if variant == 'rank' else None)
    config, graph = _define_graph(
      (batch // ranks.size, length),
      batch_shape=[batch, length],
      xla=bool(xla and variant != 'baseline'),
    )
    update = define_update(config, graph, ranks.average)
    return _measure(update, units, ranks)


@common.benchmark('updates', ours='rank', baseline='ours')
def planet_ranks(
  variant: str, batch: int = 50, length: int = 50, units: int = 3
) -> common.Result:
  """Updates of PlaNet by MPI processes; baseline: one process.

  Takes the flags of planet-step, for all processes together.
  """
  return planet_step(variant, batch, length, units)


@common.benchmark('plans')
def planet_plan(variant: str, units: int = 15, xla: int = 0) -> common.Result:
  """Plans of PlaNet; baseline: operations of the original.

  Flags:
    units: Number of plans.
    xla: 1 to compile ours with XLA.
  """
  with _formulation(variant):
    from agents.tools.tf1 import tf
    from planet.control.mpc_agent import MPCAgent
    from planet.training import collection
    from planet.training.ranks import Ranks

    config, graph = _define_graph(
      (1, 1), xla=bool(xla and variant != 'baseline')
    )
    config = config.replace(preprocess_fn=tf.identity)
    ((name, simulation),) = config.train_collects.items()
    agent = collection.agent_config(config, simulation, graph, name)
    env = types.SimpleNamespace(action=graph.data['action'][:1, 0])
    mpc = MPCAgent(env, graph.step, False, False, agent)
    action = mpc.perform(tf.range(1), graph.data['image'][:1, 0])[0]
    return _measure(action, units, Ranks())


def _formulation(variant):
  """Return a context manager that selects the operations of the variant."""
  if variant != 'baseline':
    return contextlib.nullcontext()
  # Use oneDNN only where TensorFlow does by default.
  with open('/proc/cpuinfo') as file_:
    os.environ['TF_ENABLE_ONEDNN_OPTS'] = str(int('avx512f' in file_.read()))
  from scripts.benchmarks import planet_stock

  return planet_stock.formulation()


def _define_graph(sizes, **params):
  """Define the networks of `default` on constant random data."""
  from planet.scripts import configs

  config = configs.make('default', {'tasks': ['cheetah_run'], **params})
  shapes = {'image': (64, 64, 3), 'action': (6,), 'reward': ()}
  return config, define_networks(config, draw_data(sizes, shapes))


def draw_data(batch_shape: Sequence[int], shapes: dict[str, Any]) -> dict:
  """Return random data that stays constant between executions.

  Args:
    batch_shape: Number of sequences and their length.
    shapes: Dict from the names of recorded data to the shape of one step.

  Returns:
    Dict of tensors float32 [batch, time, ...], and `length` int32 [batch].
  """
  import numpy as np

  from agents.tools.tf1 import tf

  random = np.random.RandomState(0)
  data = {'length': tf.fill(batch_shape[:1], batch_shape[1])}
  for name, shape in shapes.items():
    value = random.uniform(-0.5, 0.5, (*batch_shape, *shape))
    # Graph optimization would fold constants.
    variable = tf.get_local_variable(
      f'data_{name}', initializer=value.astype(np.float32)
    )
    data[name] = tf.identity(variable)
  return data


def define_networks(config: Any, data: dict[str, Any]) -> Any:
  """Define the networks for the first step of a training phase."""
  from agents.tools.tf1 import tf
  from planet.tools.attr_dict import AttrDict
  from planet.training import define_networks as networks

  graph = networks.define_networks(data, config)
  step, log = tf.constant(1), tf.constant(False)
  phase = tf.constant('train')
  with graph.unlocked:
    graph.step = step
    graph.trainer = AttrDict(step=step, global_step=step, log=log, phase=phase)
  return graph


def define_update(config: Any, graph: Any, *average: Any) -> Any:
  """Define an update of the whole model."""
  from agents.tools.tf1 import tf
  from planet.training import objectives as objectives_lib

  objectives = objectives_lib.compute_objectives(
    graph.posterior, graph.prior, graph.data, graph, config
  )
  summaries, norms = objectives_lib.apply_optimizers(
    objectives, graph.trainer, config, *average
  )
  return tf.group(*summaries, *norms.values())


def _measure(fetches, units, ranks):
  from agents.tools.tf1 import tf

  initializers = tf.global_variables_initializer, tf.local_variables_initializer
  with tf.Session(config=ranks.session_options()) as sess:
    sess.run([x() for x in initializers])
    ranks.broadcast(sess)
    return common.measure(lambda: sess.run(fetches), units)
