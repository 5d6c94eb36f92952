"""Define the summaries of a logged step and the score of the test phase."""

import math
from collections.abc import Callable

from tensorflow_probability import distributions as tfd

from agents.tools.tf1 import tf
from planet.tools import summary as summary_lib
from planet.tools import unroll
from planet.tools.attr_dict import AttrDict
from planet.training import collection


def define_summaries(
  graph: AttrDict, config: AttrDict, cleanups: list[Callable]
) -> tuple[tf.Tensor, tf.Tensor]:
  """Summarize the model on a batch and play the test episodes.

  Args:
    graph: AttrDict of the model.
    config: Configuration.
    cleanups: List to which functions to call at the end are added.

  Returns:
    Tuple of a summary and the score float32 [1], the mean return over all
    test collections, or NaN in the training phase.
  """
  summaries: list[tf.Tensor] = []
  # The first rank summarizes the model; all ranks play test episodes.
  if graph.trainer.ranks.is_first:
    target = _define_targets(graph, config)
    summaries += _define_general(graph, config, target)
    summaries += _define_closed_loop(graph, config, target)
    summaries += _define_open_loop(graph, config, target)
  simulation, score = _define_simulation(graph, config, cleanups)
  # A merge needs at least one summary on every rank.
  return tf.summary.merge([*summaries, *simulation, '']), score


def _define_general(graph, config, target):
  with tf.variable_scope('general'):
    summaries = summary_lib.timing_summaries(
      graph.step, graph.trainer.global_step
    )
    summaries += summary_lib.dataset_summaries(config.train_dir)
    summaries += summary_lib.objective_summaries(graph.objectives)
    if 'image' in target:
      summaries += summary_lib.data_summaries(target)
    return summaries


def _define_closed_loop(graph, config, target):
  with tf.variable_scope('closedloop'):
    summaries = summary_lib.state_summaries(
      graph.cell, graph.prior, graph.posterior
    )
    for name in ('prior', 'posterior'):
      with tf.variable_scope(name):
        dists = _predict(graph, config, graph[name])
        summaries += _compare(dists, target)
    return summaries


def _define_open_loop(graph, config, target):
  with tf.variable_scope('openloop'):
    state = unroll.open_loop(
      graph.cell,
      graph.embedded,
      graph.data['action'],
      config.open_loop_context,
      config.debug,
    )
    dists = _predict(graph, config, state)
    summaries = summary_lib.state_summaries(graph.cell, state, graph.posterior)
    summaries += _compare(dists, target)
    summaries += summary_lib.prediction_summaries(
      dists, target, context=config.open_loop_context
    )
    return summaries


def _define_simulation(graph, config, cleanups):
  """Play test episodes, in the test phase only."""
  episodes = collection.Episodes(config, graph, cleanups, gif_summary=True)
  testing = tf.equal(graph.trainer.phase, 'test')
  scores, parts = [], []
  with tf.variable_scope('simulation'):
    for name, params in config.test_collects.items():
      scope = f'should_simulate_{params.task.name}'
      episodes.play_if(testing, name, params, scope)
      # A rank may play only a part of the episodes of a simulation.
      parts.append(params.get('part', 1.0))
      scores.append(episodes.scores[-1] * parts[-1])
    total = tf.reduce_sum(tf.stack(scores))
    score = (total / tf.constant(float(sum(parts))))[None]
    score = tf.where(testing, score, tf.constant([math.nan]))
  return episodes.summaries, score


def _predict(graph, config, state):
  """Predict distributions of all heads; images in the range [0, 1]."""
  features = graph.cell.features_from_state(state)
  dists = {}
  for name, head in graph.heads.items():
    dist = head(features)
    if name == 'image':
      mean = tf.clip_by_value(config.postprocess_fn(dist.mean()), 0, 1)
      dist = tfd.Independent(tfd.Normal(mean, 1.0), 3)
    dists[name] = dist
  return dists


def _compare(dists, target):
  """Summarize predictions, images also as pictures."""
  summaries = summary_lib.dist_summaries(dists, target)
  if 'image' in dists:
    summaries += summary_lib.image_summaries(dists['image'], target['image'])
  return summaries


def _define_targets(graph, config):
  """Select the targets of the heads; images in the range [0, 1].

  (The original compared images in [0, 1] with data in [-0.5, 0.5].)
  """
  target = {name: graph.data[name] for name in graph.heads}
  if 'image' in target:
    target['image'] = config.postprocess_fn(target['image'])
  return target
