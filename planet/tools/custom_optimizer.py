"""Optimizer with clipping, schedule, variable filter and summaries."""

from collections.abc import Callable, Sequence

from agents.tools.tf1 import tf
from planet.tools.filter_variables import filter_variables


class CustomOptimizer:
  """Minimize losses with respect to selected variables.

  Args:
    optimizer_cls: Constructor of a v1 optimizer from learning rate and name.
    step: Tensor for the schedule.
    log: Bool tensor, whether to compute summaries.
    learning_rate: Rate before the schedule.
    include: Regular expression(s) for names of variables to train.
    exclude: Regular expression(s) for names to exclude.
    clipping: Maximum global norm of the gradient, None or 0 for no limit.
    schedule: Function from step to a factor of the learning rate.
    debug: Whether to check that loss and gradients are finite and not zero.
    name: Summaries are in the scope `optimizer_<name>`.
    average: Function from gradients to their means over all processes.
  """

  def __init__(
    self,
    optimizer_cls: Callable,
    step: tf.Tensor,
    log: tf.Tensor,
    learning_rate: float,
    include: str | Sequence[str] | None = None,
    exclude: str | Sequence[str] | None = None,
    clipping: float | None = None,
    schedule: Callable[[tf.Tensor], tf.Tensor] | None = None,
    debug: bool = False,
    name: str = 'custom_optimizer',
    average: Callable[[list[tf.Tensor]], list[tf.Tensor]] | None = None,
  ) -> None:
    if schedule:
      learning_rate = learning_rate * schedule(step)
    self._step = step
    self._log = log
    self._learning_rate = tf.convert_to_tensor(learning_rate, tf.float32)
    trainable = {x.name for x in tf.trainable_variables()}
    self._variables = [
      x for x in filter_variables(include, exclude) if x.name in trainable
    ]
    self._clipping = float(clipping or 0)
    self._debug = debug
    self._average = average
    self._name = name
    self._optimizer = optimizer_cls(self._learning_rate, name=name)

  def maybe_minimize(
    self, condition: tf.Tensor, loss: tf.Tensor
  ) -> tuple[tf.Tensor, tf.Tensor]:
    """Apply one update if a condition holds.

    Args:
      condition: Bool tensor.
      loss: Scalar tensor.

    Returns:
      Tuple of a summary string, empty without update or log, and the global
      norm of the gradient before clipping, 0 without update.
    """
    with tf.name_scope(f'cond_{self._name}'):
      return tf.cond(
        condition,
        lambda: self.minimize(loss),
        lambda: (tf.constant(''), tf.constant(0.0)),
      )

  def minimize(self, loss: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Apply one update.

    Args:
      loss: Scalar tensor.

    Returns:
      Tuple of a summary string and the norm of the gradient.
    """
    if self._debug:
      loss = tf.check_numerics(loss, f'{self._name}_loss')
    pairs = self._optimizer.compute_gradients(loss, self._variables)
    gradients, variables = map(list, zip(*pairs))
    if self._average:
      # All processes clip and apply the same gradients.
      means = iter(self._average([x for x in gradients if x is not None]))
      gradients = [None if x is None else next(means) for x in gradients]
    norm = tf.global_norm(gradients)
    if self._debug:
      with tf.control_dependencies([tf.Assert(norm > 0, [norm])]):
        norm = tf.identity(norm)
    if self._clipping:
      gradients, _ = tf.clip_by_global_norm(gradients, self._clipping, norm)
    optimize = self._optimizer.apply_gradients(zip(gradients, variables))
    with tf.control_dependencies([optimize]):
      summary = tf.cond(self._log, lambda: self._define_summaries(norm), str)
      return summary, tf.identity(norm)

  def _define_summaries(self, norm):
    with tf.name_scope(f'optimizer_{self._name}'):
      summaries = [
        tf.summary.scalar('learning_rate', self._learning_rate),
        tf.summary.scalar('grad_norm', norm),
      ]
      if self._clipping:
        clipped = tf.minimum(norm, self._clipping)
        summaries.append(tf.summary.scalar('clipped_gradient_norm', clipped))
      return tf.summary.merge(summaries)
