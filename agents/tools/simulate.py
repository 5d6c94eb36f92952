"""One step of a batch of environments and an algorithm."""

from typing import Any

from agents.tools import scopes, streaming_mean
from agents.tools.tf1 import tf


def simulate(
  batch_env: Any,
  algo: Any,
  log: tf.Tensor | bool = True,
  reset: tf.Tensor | bool = False,
  collections: list[str] | None = None,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
  """Step the environments and the algorithm, and reset finished episodes.

  Runs these operations in order, each waiting for the previous one: reset the
  environments whose last episode is done (or all), `algo.begin_episode`,
  copy the observations, `algo.perform`, step the environments, add the rewards
  to the scores, `algo.experience`, and `algo.end_episode` for episodes that are
  now done. Resetting in the next step keeps the final observations available.

  Args:
    batch_env: In-graph batch environment of N environments.
    algo: Object with the four methods above, which return summary tensors.
    log: Bool tensor or value, whether to compute summaries.
    reset: Bool tensor or value, whether to reset all environments.
    collections: Collections of the variables for score and length of the
      current episodes; the global variables by default.

  Returns:
    Tuple of done flags bool [N], scores of the episodes so far float32 [N],
    and a summary string.
  """
  log, reset = tf.convert_to_tensor(log), tf.convert_to_tensor(reset)
  with scopes.uncached_scope('simulate_temporary'):
    score, length = [
      scopes.variable(name, (len(batch_env),), dtype, collections=collections)
      for name, dtype in (('score', tf.float32), ('length', tf.int32))
    ]
  mean_score = streaming_mean.StreamingMean((), tf.float32, 'mean_score')
  mean_length = streaming_mean.StreamingMean((), tf.float32, 'mean_length')

  def begin_episode(indices):
    zeros = tf.zeros_like(indices)
    with tf.control_dependencies(
      [
        batch_env.reset(indices),
        tf.scatter_update(score, indices, tf.cast(zeros, tf.float32)),
        tf.scatter_update(length, indices, zeros),
      ]
    ):
      return algo.begin_episode(indices)

  def step():
    indices = tf.range(len(batch_env))
    observ = batch_env.observ
    with tf.control_dependencies([observ]):
      action, summary = algo.perform(indices, observ)
    action.set_shape(batch_env.action.shape)
    with tf.control_dependencies([batch_env.step(action)]):
      count = [
        score.assign_add(batch_env.reward),
        length.assign_add(tf.ones_like(indices)),
      ]
    with tf.control_dependencies(count):
      experience = algo.experience(
        indices,
        observ,
        batch_env.action,
        batch_env.reward,
        batch_env.done,
        batch_env.observ,
      )
    return tf.summary.merge([summary, experience])

  def end_episode(indices):
    steps = tf.cast(tf.gather(length, indices), tf.float32)
    submit = [
      mean_score.submit(tf.gather(score, indices)),
      mean_length.submit(steps),
    ]
    with tf.control_dependencies(submit):
      return algo.end_episode(indices)

  def summarize(name, mean):
    return tf.cond(
      tf.logical_and(log, tf.cast(mean.count, tf.bool)),
      lambda: tf.summary.scalar(name, mean.clear()),
      str,
    )

  def for_any(indices, function):
    return tf.cond(tf.size(indices) > 0, lambda: function(indices), str)

  with tf.name_scope('simulate'):
    everything = tf.range(len(batch_env))
    starting = tf.cond(
      reset, lambda: everything, lambda: _where(batch_env.done)
    )
    begin = for_any(starting, begin_episode)
    with tf.control_dependencies([begin]):
      middle = step()
    with tf.control_dependencies([middle]):
      end = for_any(_where(batch_env.done), end_episode)
    with tf.control_dependencies([end]):
      means = [
        summarize('mean_score', mean_score),
        summarize('mean_length', mean_length),
      ]
      summary = tf.summary.merge([begin, middle, end, *means])
    with tf.control_dependencies([summary]):
      return tf.identity(batch_env.done), tf.identity(score), summary


def _where(mask):
  """Indices at which a bool vector is True, int32."""
  return tf.cast(tf.where(mask)[:, 0], tf.int32)
