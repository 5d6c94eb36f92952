"""PlaNet's update and planner, against the original's formulations.

The baselines of `planet-step` and `planet-plan` use the stock operations of
TensorFlow and its defaults.
"""

import argparse
import contextlib
import os
import tempfile
import types
from collections.abc import Sequence
from typing import Any

from scripts.benchmarks import common


def run_step(variant: str, args: Any) -> dict[str, Any]:
  """Measure updates of the whole model on constant data."""
  with _formulation(variant):
    config, graph = _define_graph(args, args.batch, args.length)
    return _measure(define_update(config, graph), args.units)


def run_plan(variant: str, args: Any) -> dict[str, Any]:
  """Measure plans of one environment."""
  from agents.tools.tf1 import tf
  from planet.control.mpc_agent import MPCAgent
  from planet.training import collection

  with _formulation(variant):
    config, graph = _define_graph(args, 1, 1)
    ((name, simulation),) = config.train_collects.items()
    agent = collection.agent_config(config, simulation, graph, name)
    with agent.unlocked:
      agent.preprocess_fn = lambda x: x
    env = types.SimpleNamespace(action=graph.data['action'][:1, 0])
    mpc = MPCAgent(env, graph.step, False, False, agent)
    action = mpc.perform(tf.range(1), graph.data['image'][:1, 0])[0]
    return _measure(action, args.units * 5)


def run_ranks(variant: str, args: Any) -> dict[str, Any]:
  """Measure updates on constant data, of the same batch in all."""
  if variant == 'baseline':
    return run_step('ours', args)
  from agents.run import mpi
  from planet.training.ranks import Ranks

  mpi.abort_on_errors()
  ranks = Ranks(mpi.world())
  config, graph = _define_graph(args, args.batch // ranks.size, args.length)
  update = define_update(config, graph, ranks.average)
  return _measure(update, args.units, ranks.session_options(), ranks.broadcast)


@contextlib.contextmanager
def _formulation(variant):
  """Replace what is ours by the stock operations for the baseline."""
  from unittest import mock

  if variant == 'ours':
    yield
    return
  from agents.tools import layers
  from planet import models
  from planet.control import planning
  from planet.tools import unroll
  from scripts.benchmarks import planet_stock as stock

  with contextlib.ExitStack() as stack:
    for owner, name, value in (
      (layers, 'conv2d_transpose', stock.conv2d_transpose),
      (models.RSSM, '_define_posterior', stock.define_posterior),
      (unroll, 'closed_loop', stock.closed_loop),
      (planning, '_predict', stock.predict),
    ):
      stack.enter_context(mock.patch.object(owner, name, value))
    yield


def _define_graph(args, batch, length):
  """Networks on random data that does not change, in a training phase."""
  from planet.scripts import resume
  from planet.tools.attr_dict import AttrDict

  params = AttrDict(
    tasks=['cheetah_run'],
    batch_shape=[args.batch, args.length],
    planner_amount=args.amount,
    planner_topk=max(1, args.amount // 10),
    planner_horizon=args.horizon,
    planner_iterations=args.iterations,
  )
  settings = argparse.Namespace(config='default', params=params, seed=0)
  with tempfile.TemporaryDirectory() as logdir:
    config = resume.define_config(os.path.join(logdir, '00001'), settings)
  shapes = {'image': (64, 64, 3), 'action': (6,), 'reward': ()}
  return config, define_networks(config, draw_data((batch, length), shapes))


def draw_data(batch_shape: Sequence[int], shapes: dict[str, Any]) -> dict:
  """Return random data that does not change from one execution to the next.

  Args:
    batch_shape: Number of sequences and their length.
    shapes: Dict from the names of what is recorded to the shape of one step.

  Returns:
    Dict of tensors float32 [batch, time, ...], and `length` int32 [batch].
  """
  import numpy as np

  from agents.tools.tf1 import tf

  random = np.random.RandomState(0)
  data = {'length': tf.fill(batch_shape[:1], batch_shape[1])}
  for name, shape in shapes.items():
    value = random.uniform(-0.5, 0.5, (*batch_shape, *shape))
    # Constants would be folded while the graph is optimised.
    variable = tf.get_local_variable(
      f'data_{name}', initializer=value.astype(np.float32)
    )
    data[name] = tf.identity(variable)
  return data


def define_networks(config: Any, data: dict[str, Any]) -> Any:
  """Define the networks, in the first step of a training phase."""
  from agents.tools.tf1 import tf
  from planet.tools.attr_dict import AttrDict
  from planet.training import define_networks as networks

  graph = networks.define_networks(data, config)
  trainer = AttrDict(
    step=tf.constant(1),
    global_step=tf.constant(1),
    log=tf.constant(False),
    phase=tf.constant('train'),
  )
  with graph.unlocked:
    graph.update(trainer=trainer, step=trainer.step)
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


def _measure(fetches, units, options=None, prepare=lambda sess: None):
  from agents.tools.tf1 import tf

  options = options or tf.ConfigProto(allow_soft_placement=True)
  with tf.Session(config=options) as sess:
    sess.run(
      [tf.global_variables_initializer(), tf.local_variables_initializer()]
    )
    prepare(sess)
    return common.measure(lambda: sess.run(fetches), units)


def _environ(variant):
  """Let the baseline use oneDNN only where TensorFlow does so by default."""
  if variant == 'ours':
    return {}
  with open('/proc/cpuinfo') as file_:
    return {'TF_ENABLE_ONEDNN_OPTS': str(int('avx512f' in file_.read()))}


_FLAGS = [
  ('batch', 50, 'sequences per batch'),
  ('length', 50, 'steps per sequence'),
  ('amount', 1000, 'candidate plans per iteration'),
  ('horizon', 12, 'planning horizon in actions'),
  ('iterations', 10, 'optimization iterations of a plan'),
  ('units', 3, 'number of updates, or of plans divided by 5'),
]
ALL = [
  common.Benchmark(
    'planet-step',
    'an update of PlaNet; baseline: stock operations of TensorFlow',
    'updates',
    run_step,
    _FLAGS,
    _environ,
  ),
  common.Benchmark(
    'planet-plan',
    'a plan of PlaNet; baseline: stock operations of TensorFlow',
    'plans',
    run_plan,
    _FLAGS,
    _environ,
  ),
  common.Benchmark(
    'planet-ranks',
    'an update of PlaNet by several processes of MPI; baseline: one process',
    'updates',
    run_ranks,
    [*_FLAGS, ('ranks', 2, 'number of processes')],
    ranks=True,
  ),
]
