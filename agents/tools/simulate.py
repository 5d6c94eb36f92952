"""One step of a batch of environments together with an algorithm."""

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
  """Step environments and algorithm, resetting what has finished.

  Events happen in this order, each waiting for the one before: reset the
  environments whose last episode is done (or all), `algo.begin_episode`,
  copy the observations, `algo.perform`, step the environments, add up the
  scores, `algo.experience`, and `algo.end_episode` for what is done now. The
  reset happens at the beginning of the next step, so none is lost.

  Args:
    batch_env: In-graph batch environment of N environments.
    algo: Object with the four methods above, returning summary tensors.
    log: Bool tensor or value, whether to compute summaries.
    reset: Bool tensor or value, whether to reset all environments.
    collections: Collections of the variables for score and length of the
      current episodes; the global variables by default.

  Returns:
    Tuple of done flags bool [N], scores of the episodes so far float32 [N],
    and a summary string.
  """
  return _Simulation(batch_env, algo, log, reset, collections).define()


class _Simulation:
  """Builds the graph of one step, a method per link of the chain."""

  def __init__(self, batch_env, algo, log, reset, collections):
    self._batch_env = batch_env
    self._algo = algo
    self._log = tf.convert_to_tensor(log)
    self._reset = tf.convert_to_tensor(reset)
    count = len(batch_env)
    with scopes.uncached_scope('simulate_temporary'):
      self._score, self._length = [
        tf.get_variable(
          name,
          (count,),
          dtype,
          tf.zeros_initializer(),
          trainable=False,
          collections=collections,
        )
        for name, dtype in (('score', tf.float32), ('length', tf.int32))
      ]
    self._mean_score = streaming_mean.StreamingMean(
      (), tf.float32, 'mean_score'
    )
    self._mean_length = streaming_mean.StreamingMean(
      (), tf.float32, 'mean_length'
    )

  def define(self):
    with tf.name_scope('simulate'):
      everything = tf.range(len(self._batch_env))
      starting = tf.cond(
        self._reset, lambda: everything, lambda: _where(self._batch_env.done)
      )
      begin = tf.cond(
        tf.size(starting) > 0, lambda: self._define_begin_episode(starting), str
      )
      with tf.control_dependencies([begin]):
        step = self._define_step()
      with tf.control_dependencies([step]):
        ending = _where(self._batch_env.done)
        end = tf.cond(
          tf.size(ending) > 0, lambda: self._define_end_episode(ending), str
        )
      with tf.control_dependencies([end]):
        summary = tf.summary.merge(
          [
            begin,
            step,
            end,
            self._define_summary('mean_score'),
            self._define_summary('mean_length'),
          ]
        )
      with tf.control_dependencies([summary]):
        done = tf.identity(self._batch_env.done)
        score = tf.identity(self._score)
      return done, score, summary

  def _define_begin_episode(self, indices):
    zeros = tf.zeros_like(indices)
    with tf.control_dependencies(
      [
        self._batch_env.reset(indices),
        tf.scatter_update(self._score, indices, tf.cast(zeros, tf.float32)),
        tf.scatter_update(self._length, indices, zeros),
      ]
    ):
      return self._algo.begin_episode(indices)

  def _define_step(self):
    indices = tf.range(len(self._batch_env))
    observ = self._batch_env.observ
    with tf.control_dependencies([observ]):
      action, summary = self._algo.perform(indices, observ)
    action.set_shape(self._batch_env.action.shape)
    with tf.control_dependencies([self._batch_env.step(action)]):
      count = [
        self._score.assign_add(self._batch_env.reward),
        self._length.assign_add(tf.ones_like(indices)),
      ]
    with tf.control_dependencies(count):
      experience = self._algo.experience(
        indices,
        observ,
        self._batch_env.action,
        self._batch_env.reward,
        self._batch_env.done,
        self._batch_env.observ,
      )
    return tf.summary.merge([summary, experience])

  def _define_end_episode(self, indices):
    submit = [
      self._mean_score.submit(tf.gather(self._score, indices)),
      self._mean_length.submit(
        tf.cast(tf.gather(self._length, indices), tf.float32)
      ),
    ]
    with tf.control_dependencies(submit):
      return self._algo.end_episode(indices)

  def _define_summary(self, name):
    mean = getattr(self, '_' + name)
    return tf.cond(
      tf.logical_and(self._log, tf.cast(mean.count, tf.bool)),
      lambda: tf.summary.scalar(name, mean.clear()),
      str,
    )


def _where(mask):
  """Indices at which a bool vector is True, int32."""
  return tf.cast(tf.where(mask)[:, 0], tf.int32)
