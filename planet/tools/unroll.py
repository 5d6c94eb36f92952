"""Unroll a latent model over a sequence.

Observations and actions may be nested structures of tensors, if the model
supports them.
"""

from collections.abc import Callable
from typing import Any

from agents.tools import nested
from agents.tools.tf1 import tf
from planet.tools.shape import shape


def closed_loop(
  cell: Any, embedded: Any, prev_action: Any, debug: bool = False
) -> tuple[Any, Any]:
  """Filter a sequence with an observation at every step.

  Args:
    cell: Model, see `planet.models.Base`.
    embedded: Encoded observations float32 [batch, time, embedding].
    prev_action: Preceding actions float32 [batch, time, actions].
    debug: Whether to check that the results are finite.

  Returns:
    Tuple of prior and posterior, dicts of tensors [batch, time, ...].
  """
  (prior, posterior), _ = tf.nn.dynamic_rnn(
    _Unrolled(cell, use_obs=True), (embedded, prev_action), dtype=tf.float32
  )
  if debug:
    prior, posterior = [_check(x) for x in (prior, posterior)]
  return prior, posterior


def open_loop(
  cell: Any,
  embedded: Any,
  prev_action: Any,
  context: int = 1,
  debug: bool = False,
) -> Any:
  """Filter the first steps of a sequence, then predict the rest.

  Args:
    cell: Model, see `planet.models.Base`.
    embedded: Encoded observations float32 [batch, time, embedding]; only the
      first `context` steps are used.
    prev_action: Actions float32 [batch, time, actions].
    context: Number of steps with observations, at least one.
    debug: Whether to check that the results are finite.

  Returns:
    Dict of tensors [batch, time, ...]: posteriors within the context, then
    priors.
  """
  (_, observed), last_state = tf.nn.dynamic_rnn(
    _Unrolled(cell, use_obs=True),
    nested.map(lambda x: x[:, :context], (embedded, prev_action)),
    dtype=tf.float32,
  )
  (predicted, _), _ = tf.nn.dynamic_rnn(
    _Unrolled(cell, use_obs=False, embedded=embedded),
    (nested.map(lambda x: x[:, context:], prev_action),),
    initial_state=last_state,
  )
  state = nested.map(lambda x, y: tf.concat([x, y], 1), observed, predicted)
  return _check(state) if debug else state


def predict(
  cell: Any,
  prev_state: Any,
  prev_action: Any,
  embedded: Any,
  length: tf.Tensor | None = None,
) -> Any:
  """Predict states for given actions, without observations.

  Args:
    cell: Model, see `planet.models.Base`.
    prev_state: State before the first action, dict of tensors [batch, ...].
    prev_action: Actions float32 [batch, time, actions], may be nested.
    embedded: Encoded observations [batch, time, embedding], may be nested;
      only their shapes are used.
    length: Integer tensor [batch], number of steps to predict; all by default.
      Results beyond it are zero.

  Returns:
    Dict of tensors [batch, time, ...].
  """
  (prior, _), _ = tf.nn.dynamic_rnn(
    _Unrolled(cell, use_obs=False, embedded=embedded),
    (prev_action,),
    sequence_length=length,
    initial_state=prev_state,
  )
  return prior


def planned(
  cell: Any,
  objective_fn: Callable,
  embedded: Any,
  prev_action: Any,
  planner: Callable,
  context: int = 1,
  length: int = 20,
  amount: int = 1000,
  debug: bool = False,
) -> tuple[Any, tf.Tensor]:
  """Filter the first steps of a sequence, then follow a plan.

  Part of the original, but unused there.

  Args:
    cell: Model, see `planet.models.Base`.
    objective_fn: Function from states to returns.
    embedded: Encoded observations float32 [batch, time, embedding].
    prev_action: Actions float32 [batch, time, actions].
    planner: Function like `cross_entropy_method`, whose `graph` has to be
      bound.
    context: Number of steps with observations.
    length: Number of steps to plan and predict.
    amount: Number of candidate plans.
    debug: Whether to check that the results are finite.

  Returns:
    Tuple of the states [batch, context + length, ...] and the planned
    actions [batch, length, actions].
  """
  (_, observed), last_state = tf.nn.dynamic_rnn(
    _Unrolled(cell, use_obs=True),
    (embedded[:, :context], prev_action[:, :context]),
    dtype=tf.float32,
  )
  action = planner(
    cell,
    objective_fn,
    last_state,
    shape(embedded)[2:],
    shape(prev_action)[2:],
    horizon=length,
    amount=amount,
  )
  predicted = predict(cell, last_state, action, embedded)
  state = nested.map(lambda x, y: tf.concat([x, y], 1), observed, predicted)
  return (_check(state) if debug else state), action


class _Unrolled:
  """Model as a cell for `dynamic_rnn`, either with or without observations.

  Choosing when the graph is built avoids a condition at every step, and zeros
  in place of missing observations.
  """

  def __init__(self, cell, use_obs, embedded=None):
    self._cell = cell
    self._use_obs = use_obs
    if not use_obs:
      self._blank = nested.map(_define_blank, embedded)
    self.state_size = cell.state_size
    self.output_size = cell.output_size

  def zero_state(self, batch_size, dtype):
    return self._cell.zero_state(batch_size, dtype)

  def __call__(self, inputs, state, scope=None):
    if self._use_obs:
      obs, action = inputs
    else:
      (action,) = inputs
      batch_size = tf.shape(nested.flatten(action)[0])[0]
      obs = nested.map(lambda blank: blank(batch_size), self._blank)
    return self._cell.step(obs, action, self._use_obs, state)


def _define_blank(embedded):
  """Return a function from a batch size to zeros like encoded observations."""
  sizes = shape(embedded)[2:]

  def blank(batch_size):
    obs = tf.zeros([batch_size] + sizes)
    obs.set_shape([None] + [x if isinstance(x, int) else None for x in sizes])
    return obs

  return blank


def _check(state):
  return nested.map(lambda x: tf.check_numerics(x, 'state'), state)
