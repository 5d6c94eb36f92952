"""Graph of the model, its updates and the collection of episodes."""

from collections.abc import Callable
from typing import Any

from agents.tools.tf1 import tf
from planet.tools import schedule
from planet.tools.attr_dict import AttrDict
from planet.training import collection, utility
from planet.training import objectives as objectives_lib
from planet.training.define_networks import define_networks
from planet.training.define_summaries import define_summaries


def define_model(
  data: dict[str, tf.Tensor], trainer: Any, config: AttrDict
) -> tuple[tf.Tensor, tf.Tensor, list[Callable]]:
  """Define one training or test step.

  The same execution updates the model, then plays the episodes that are due
  with the new weights.

  Args:
    data: Dict of tensors [batch, time, ...].
    trainer: `Trainer`.
    config: Configuration.

  Returns:
    Tuple of a score, float32 [1], or [0] in steps that are not logged, a
    summary, and a list of functions to call at the end.
  """
  cleanups: list[Callable] = []
  ranks = trainer.ranks
  try:
    graph = define_networks(data, config)
    objectives = objectives_lib.compute_objectives(
      graph.posterior, graph.prior, graph.data, graph, config
    )
    with tf.variable_scope('optimizers'):
      optimizer_summaries, grad_norms = utility.apply_optimizers(
        objectives, trainer, config, ranks.average if ranks.size > 1 else None
      )
    # After the gradients: all processes must exchange in the same order.
    with tf.control_dependencies(optimizer_summaries):
      objectives = objectives_lib.average(objectives, ranks.average)
    graph = AttrDict(
      graph, trainer=trainer, step=trainer.step, objectives=objectives
    )
    # A rank that stops while playing has no exchange left to do. A group, as
    # TensorFlow would copy tensors into each operation of the planner's loop.
    exchanged = tf.group(optimizer_summaries, [x.value for x in objectives])
    with tf.control_dependencies([exchanged]):
      collect_summaries = _define_collection(graph, config, cleanups)
    # Afterwards, as summaries count the episodes.
    with tf.control_dependencies([exchanged, *collect_summaries]):
      summary, score = tf.cond(
        trainer.log,
        lambda: define_summaries(graph, config, cleanups),
        lambda: (tf.constant(''), tf.zeros((0,), tf.float32)),
        name='summaries',
      )
    score.set_shape((None,))
    losses = objectives_lib.as_dict(objectives)
    step, every = trainer.global_step, config.print_metrics_every
    batch = config.batch_shape[0]
    printed = [
      utility.print_metrics(losses, step, every, 'objectives', batch),
      utility.print_metrics(grad_norms, step, every, 'gradient_norms', batch),
    ]
    with tf.control_dependencies(printed):
      score = tf.identity(score)
    summary = tf.summary.merge(
      optimizer_summaries + collect_summaries + [summary]
    )
    return score, summary, cleanups
  except BaseException:
    for cleanup in cleanups:
      cleanup()
    raise


def _define_collection(graph, config, cleanups):
  """Define the collection of training episodes that are due in this step."""
  episodes = collection.Episodes(config, graph, cleanups)
  training = tf.equal(graph.trainer.phase, 'train')
  may_play = lambda: tf.reshape(
    tf.py_func(graph.trainer.may_play, [], tf.bool), ()
  )
  with tf.variable_scope('collection'):
    dues = [
      schedule.binary(
        graph.step,
        config.batch_shape[0],
        params.steps_after,
        params.steps_every,
        params.steps_until,
      )
      for params in config.train_collects.values()
    ]
    if config.get('total_env_steps') and dues:
      # Asked once, so that no collection sees the episodes of the others.
      training = tf.cond(
        tf.logical_and(training, tf.reduce_any(dues)), may_play, lambda: False
      )
    for due, (name, params) in zip(dues, config.train_collects.items()):
      due = tf.logical_and(training, due)
      episodes.play_if(due, name, params, f'should_collect_{name}')
  return episodes.summaries
