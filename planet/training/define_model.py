"""Graph of the model, its updates, and the collection of episodes."""

from agents.tools.attr_dict import AttrDict
from agents.tools.tf1 import tf
from planet.tools import schedule
from planet.tools import unroll
from planet.training import objectives as objectives_lib
from planet.training import utility
from planet.training.define_summaries import define_summaries


def define_model(data, trainer, config):
  """Define everything that happens in one training or test step.

  An update comes first; episodes that are due are then played with the new
  weights, within the same execution.

  Args:
    data: Dict of tensors [batch, time, ...].
    trainer: Trainer that tells step, phase and when to log.
    config: Configuration.

  Returns:
    Tuple of a score [0 or 1], a summary, and a list of functions to call at
    the end.
  """
  cleanups = []
  try:
    graph = _define_graph(data, trainer, config)
    with tf.variable_scope('optimizers'):
      optimizer_summaries, grad_norms = utility.apply_optimizers(
        graph.objective_list, trainer, config
      )
    with tf.control_dependencies(optimizer_summaries):
      collect_summaries = _define_collection(graph, config, cleanups)
    summary, score = tf.cond(
      trainer.log,
      lambda: define_summaries(graph, config, cleanups),
      lambda: (tf.constant(''), tf.zeros((0,), tf.float32)),
      name='summaries',
    )
    score.set_shape((None,))
    objectives = {x.name: x.value for x in graph.objective_list}
    printed = [
      utility.print_metrics(
        metrics, trainer.global_step, config.print_metrics_every, name
      )
      for name, metrics in (
        ('objectives', objectives),
        ('gradient_norms', grad_norms),
      )
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


def _define_graph(data, trainer, config):
  """Networks, states and losses for a batch of data."""
  if config.observation == 'vector':
    data = dict(
      data, vector=tf.concat([data[key] for key in config.observation_keys], -1)
    )
  cell = config.cell()
  encoder = tf.make_template('encoder', config.encoder, create_scope_now_=True)
  heads = _define_heads(data, cell, config)
  embedded = encoder(data)
  graph = AttrDict(
    cell=cell,
    encoder=encoder,
    heads=heads,
    data=data,
    embedded=embedded,
    trainer=trainer,
    step=trainer.step,
  )
  prior, posterior = unroll.closed_loop(
    cell, embedded, data['action'], config.debug
  )
  objectives = objectives_lib.compute_objectives(
    posterior, prior, data, graph, config
  )
  with graph.unlocked:
    graph.update(prior=prior, posterior=posterior, objective_list=objectives)
  return graph


def _define_heads(data, cell, config):
  """Templates of all heads, whose weights exist after this call."""
  heads = AttrDict(_unlocked=True)
  features = cell.features_from_state(cell.zero_state(1, tf.float32))
  for key, head in config.heads.items():
    source = 'action' if key == 'action_target' else key
    heads[key] = tf.make_template(
      f'head_{key}',
      head,
      create_scope_now_=True,
      data_shape=data[source].shape[2:].as_list(),
    )
    heads[key](features)
  heads.lock()
  return heads


def _define_collection(graph, config, cleanups):
  """Episodes for training that are due in this step."""
  summaries = []
  training = tf.equal(graph.trainer.phase, 'train')
  with tf.variable_scope('collection'):
    for name, params in config.train_collects.items():
      due = tf.logical_and(
        training,
        schedule.binary(
          graph.step,
          config.batch_shape[0],
          params.steps_after,
          params.steps_every,
          params.steps_until,
        ),
      )
      summary, _ = tf.cond(
        due,
        lambda name=name, params=params: utility.simulate_episodes(
          config,
          params,
          graph,
          cleanups,
          expensive_summaries=False,
          gif_summary=False,
          name=name,
        ),
        lambda: (tf.constant(''), tf.constant(0.0)),
        name=f'should_collect_{name}',
      )
      summaries.append(summary)
  return summaries
