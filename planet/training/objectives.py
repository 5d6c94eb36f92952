"""Training objectives of the model and the updates that they define."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from agents.tools import nested
from agents.tools.tf1 import tf
from planet.tools.attr_dict import AttrDict
from planet.tools.custom_optimizer import CustomOptimizer
from planet.tools.overshooting import overshooting


class Objective(NamedTuple):
  """Scalar to minimize or maximize.

  Attributes:
    name: Name of its loss scale.
    value: Scalar.
    goal: One of the functions `min` and `max`.
    include: Regular expression for the names of variables to train.
    exclude: Regular expression for names to exclude, or None.
  """

  name: str
  value: tf.Tensor
  goal: Callable
  include: str
  exclude: str | None


def compute_objectives(
  posterior: dict[str, tf.Tensor],
  prior: dict[str, tf.Tensor],
  target: Mapping[str, tf.Tensor],
  graph: AttrDict,
  config: AttrDict,
) -> list[Objective]:
  """Compute losses of the latent dynamics model, means over batch and time.

  Source: Hafner et al. (2019), arXiv:1811.04551, equations 3 and 7.

  Args:
    posterior: Filtered states, dict of tensors [batch, time, ...].
    prior: Predicted states, of the same shapes.
    target: Dict of data [batch, time, ...].
    graph: AttrDict with `cell`, `heads`, `data` and `embedded`.
    config: AttrDict with `loss_scales`, `heads`, `gradient_heads`,
      `free_nats`, `overshooting_distance` and `os_stop_posterior_grad`.

  Returns:
    List with one `Objective` per loss scale that is not zero.
  """
  features = graph.cell.features_from_state(posterior)
  objectives = []
  for name, scale in config.loss_scales.items():
    if not scale:
      continue
    include = r'.*'
    if name in DIVERGENCES:
      value, goal = DIVERGENCES[name](posterior, prior, graph, config), min
    else:
      value, goal = _log_prob(name, features, target, graph, config), max
      if name not in config.gradient_heads:
        include = rf'.*/head_{name}/.*'
    objectives.append(
      Objective(name, tf.reduce_mean(value), goal, include, None)
    )
  return objectives


def apply_optimizers(
  objectives: list[Objective],
  trainer: Any,
  config: AttrDict,
  average: Callable[[list[tf.Tensor]], list[tf.Tensor]] | None = None,
) -> tuple[list[tf.Tensor], dict[str, tf.Tensor]]:
  """Update the model during the training phase.

  The optimizer `main` minimizes the sum of the losses that train the model.
  Each other head has its own optimizer, configured like `main` unless the
  configuration has an entry for it.

  Args:
    objectives: List of `Objective`.
    trainer: Object with `step`, `log` and `phase`.
    config: AttrDict with `optimizers`, `loss_scales` and `debug`.
    average: Function from gradients to their means over all processes, called
      for one optimizer at a time.

  Returns:
    Tuple of a list of summaries and a dict from the name of the optimizer to
    the norm of the gradient before clipping.
  """
  values = [objective.value for objective in objectives]
  groups: dict[str, list[Objective]] = {}
  for objective in objectives:
    whole_model = objective.include == r'.*' and objective.exclude is None
    name = 'main' if whole_model else objective.name
    groups.setdefault(name, []).append(objective)
  training = tf.equal(trainer.phase, 'train')
  summaries: list[tf.Tensor] = []
  grad_norms: dict[str, tf.Tensor] = {}
  for name, members in groups.items():
    settings = config.optimizers.get(name) or config.optimizers.main
    optimizer = CustomOptimizer(
      step=trainer.step,
      log=trainer.log,
      include=members[0].include,
      exclude=members[0].exclude,
      debug=config.debug,
      average=average,
      name=name,
      **settings,
    )
    # Compute all losses before an update changes weights.
    with tf.control_dependencies(values):
      loss = tf.add_n(
        [_sign(x) * config.loss_scales[x.name] * x.value for x in members]
      )
    # All processes must exchange gradients in the same order.
    with tf.control_dependencies(summaries if average else []):
      summary, grad_norm = optimizer.maybe_minimize(training, loss)
    summaries.append(summary)
    grad_norms[name] = grad_norm
  return summaries, grad_norms


def average(
  objectives: list[Objective],
  function: Callable[[list[tf.Tensor]], list[tf.Tensor]],
) -> list[Objective]:
  """Average the values of objectives over all processes.

  Args:
    objectives: List of `Objective`.
    function: Function from tensors to their means over all processes.
  """
  values = function([x.value for x in objectives])
  return [x._replace(value=value) for x, value in zip(objectives, values)]


def _sign(objective):
  return {min: 1, max: -1}[objective.goal]


def _divergence(posterior, prior, graph, config):
  """Compute KL(posterior || prior) beyond the free nats, [batch, time]."""
  return _free_nats(graph.cell.divergence_from_states(posterior, prior), config)


def _global_divergence(posterior, unused_prior, graph, config):
  """Compute KL(posterior || standard normal) beyond the free nats.

  Shape [batch, time].
  """
  standard = {
    **posterior,
    'mean': tf.zeros_like(posterior['mean']),
    'stddev': tf.ones_like(posterior['stddev']),
  }
  return _free_nats(
    graph.cell.divergence_from_states(posterior, standard), config
  )


def _overshooting(posterior, unused_prior, graph, config):
  """Compute the divergences of latent overshooting, equation 7.

  They are KL(posterior || prediction of several steps) beyond the free nats,
  [batch, time, distance].
  """
  distance = config.overshooting_distance
  batch, time = tf.unstack(tf.shape(graph.data['action'])[:2])
  length = graph.data.get('length', tf.fill([batch], time))
  _, priors, posteriors, mask = overshooting(
    graph.cell,
    {},
    graph.embedded,
    graph.data['action'],
    length,
    distance,
    posterior,
  )
  # Index 0, distance d = 1, is the usual divergence. Like the original, also
  # leave out the last one.
  priors, posteriors, mask = nested.map(
    lambda x: x[:, :, 1:-1], (priors, posteriors, mask)
  )
  if config.os_stop_posterior_grad:
    posteriors = nested.map(tf.stop_gradient, posteriors)
  return _free_nats(
    graph.cell.divergence_from_states(posteriors, priors, mask), config
  )


DIVERGENCES = {
  'divergence': _divergence,
  'global_divergence': _global_divergence,
  'overshooting': _overshooting,
}


def _free_nats(divergence, config):
  """Return the divergence beyond the free nats, elementwise."""
  if config.free_nats is None:
    return divergence
  return tf.maximum(0.0, divergence - float(config.free_nats))


def _log_prob(name, features, target, graph, config):
  """Compute the log-probability of data under a head, [batch, time]."""
  assert name in config.heads, (name, list(config.heads))
  if name not in config.gradient_heads:
    features = tf.stop_gradient(features)
  return graph.heads[name](features).log_prob(target[name])


def as_dict(objectives: list[Objective]) -> AttrDict:
  """Return a dict from the names of objectives to their values."""
  return AttrDict((x.name, x.value) for x in objectives)
