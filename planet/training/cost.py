"""What an update and an episode cost on this machine, found out by trying."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from agents.tools.tf1 import tf
from planet.control.mpc_agent import MPCAgent
from planet.tools.attr_dict import AttrDict
from planet.training import collection, precision
from planet.training import objectives as objectives_lib
from planet.training.define_networks import define_networks


class StandingEnv:
  """What an agent asks of its environments, for one that stands still.

  Args:
    observ: Observation [1, ...].
    action: Action [1, size].
  """

  def __init__(self, observ: tf.Tensor, action: tf.Tensor) -> None:
    self.observ = observ
    self.action = action

  def __len__(self) -> int:
    return 1


def measure(
  config: AttrDict, shapes: Mapping[str, Sequence[int]]
) -> tuple[float, float]:
  """Execute an update and a decision on random data, in a graph of their own.

  Args:
    config: Configuration of the run.
    shapes: Dict from the names of what is recorded to the shape of one step.

  Returns:
    Tuple of the seconds that an update takes, and those of a decision without
    its environment.
  """
  with tf.Graph().as_default():
    with tf.variable_scope('graph', use_resource=True):
      graph = define_graph(config, draw_data(config.batch_shape, shapes))
      fetches = (define_update(graph, config), define_decision(graph, config))
    session = tf.ConfigProto(allow_soft_placement=True)
    session.gpu_options.allow_growth = True
    precision.enable(config.precision, session)
    with tf.Session(config=session) as sess:
      sess.run(
        [tf.global_variables_initializer(), tf.local_variables_initializer()]
      )
      return _time(sess, fetches[0]), _time(sess, fetches[1])


def describe(config: AttrDict, shapes: Mapping[str, Sequence[int]]) -> str:
  """Return sentences on what an update and an episode cost here.

  Args:
    config: Configuration of the run.
    shapes: See `measure`.
  """
  update, decision = measure(config, shapes)
  text = f'Without a GPU, an update takes {_say(update)} here'
  if config.train_collects:
    length = max(x.task.max_length for x in config.train_collects.values())
    text += f', and planning an episode of {length} decisions '
    text += _say(length * decision)
  return f'{text}. --config cpu is smaller and made for processors.'


def draw_data(
  batch_shape: Sequence[int], shapes: Mapping[str, Sequence[int]]
) -> dict[str, tf.Tensor]:
  """Return random data that does not change from one execution to the next.

  Args:
    batch_shape: Number of sequences and their length.
    shapes: See `measure`.

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
  env: Any = StandingEnv(
    graph.data[config.observation][:1, 0], graph.data['action'][:1, 0]
  )
  mpc = MPCAgent(env, graph.step, False, False, agent)
  return mpc.perform(tf.range(1), env.observ)[0]


def _say(seconds):
  for size, unit in ((3600, 'hours'), (60, 'minutes')):
    if seconds >= 1.5 * size:
      return f'{seconds / size:.1f} {unit}'
  return f'{seconds:.2g} seconds'


def _time(sess, fetches):
  """Execute once to warm up; return the seconds that it takes then."""
  sess.run(fetches)
  began = time.perf_counter()
  sess.run(fetches)
  return time.perf_counter() - began
