"""Choose actions by searching in the latent space of a model."""

from collections.abc import Callable, Sequence
from typing import Any

from agents.tools import nested
from agents.tools.tf1 import tf
from planet.tools.shape import shape


def cross_entropy_method(
  cell: Any,
  objective_fn: Callable,
  state: dict[str, tf.Tensor],
  obs_shape: Sequence[int],
  action_shape: Sequence[int],
  horizon: int,
  graph: Any,
  amount: int = 1000,
  topk: int = 100,
  iterations: int = 10,
  min_action: float = -1,
  max_action: float = 1,
  initial_mean: tf.Tensor | None = None,
  bias: Sequence[float] | None = None,
) -> tf.Tensor:
  """Plan action sequences with the cross entropy method.

  Repeatedly sample candidates from a diagonal Gaussian, predict the states that
  they lead to, and fit the Gaussian to the best candidates.
  Source: Hafner et al. (2019), arXiv:1811.04551, algorithm 2.

  Args:
    cell: Latent dynamics model, see `planet.models.Base`.
    objective_fn: Function from states [batch * amount, horizon, ...] to
      returns [batch * amount].
    state: Current state of the model, dict of tensors [batch, ...].
    obs_shape: Shape of one encoded observation.
    action_shape: Shape of one action, [actions].
    horizon: Number of actions to plan.
    graph: Unused; the whole model, which planners of users may need.
    amount: Number of candidates per iteration.
    topk: Number of candidates to fit the Gaussian to.
    iterations: Number of iterations; with 0, return the initial mean.
    min_action: Lower bound of the actions.
    max_action: Upper bound of the actions.
    initial_mean: Mean of the first Gaussian [batch, horizon, actions]; zero
      by default.
    bias: Every action of the default `initial_mean`; None for zeros.

  Returns:
    Mean of the last Gaussian, float32 [batch, horizon, actions].
  """
  del graph
  batch = shape(nested.flatten(state)[0])[0]
  sizes = tf.stack([batch, horizon] + list(action_shape))
  if initial_mean is None:
    initial_mean = tf.zeros(sizes) + tf.constant(bias or 0, tf.float32)
  if iterations < 1:
    return initial_mean
  start = nested.map(lambda x: _repeat(x, amount), state)
  obs = tf.zeros(tf.stack([batch * amount] + list(obs_shape)))

  def iteration(mean, stddev):
    candidates = _draw(mean, stddev, amount, min_action, max_action)
    states = _predict(cell, start, obs, candidates)
    returns = tf.reshape(objective_fn(states), tf.stack([batch, amount]))
    return _fit(candidates, returns, topk)

  return _iterate(iteration, iterations, initial_mean, tf.ones(sizes))


def _iterate(iteration, iterations, mean, stddev):
  """Return the mean of the Gaussian after all iterations.

  Runs one iteration at a time, to keep the order of random numbers.
  """
  _, mean, _ = tf.while_loop(
    lambda index, *unused: index < iterations,
    lambda index, mean, stddev: (index + 1, *iteration(mean, stddev)),
    [0, mean, stddev],
    parallel_iterations=1,
    back_prop=False,
  )
  return mean


def _draw(mean, stddev, amount, min_action, max_action):
  """Draw candidates [batch * amount, horizon, actions]; line 4 of the paper."""
  batch, *rest = shape(mean)
  noise = tf.random_normal(tf.stack([batch, amount] + rest))
  candidates = mean[:, None] + stddev[:, None] * noise
  candidates = tf.clip_by_value(candidates, min_action, max_action)
  return tf.reshape(candidates, tf.stack([batch * amount] + rest))


def _fit(candidates, returns, topk):
  """Compute mean and stddev of the best candidates; lines 7 and 8.

  As in the original, the deviation is the root of the variance; the paper has
  the mean of absolute differences.

  Args:
    candidates: Actions [batch * amount, horizon, actions].
    returns: Predicted returns [batch, amount].
    topk: Number of candidates to keep.

  Returns:
    Tuple of mean and stddev [batch, horizon, actions].
  """
  batch, amount = shape(returns)
  _, best = tf.nn.top_k(returns, topk, sorted=False)
  best = tf.gather(candidates, best + tf.range(batch)[:, None] * amount)
  mean, variance = tf.nn.moments(best, 1)
  return mean, tf.sqrt(variance + 1e-6)


def _predict(cell, state, obs, actions):
  """Predict states [batch, time, ...] after each action, without observations.

  Line 5 of the paper, from a sample of the posterior.

  Unrolls the loop, so that only state entries that the objective uses are kept.
  """
  states = []
  for action in tf.unstack(actions, axis=1):
    _, state = cell.step(obs, action, False, state)
    states.append(state)
  return nested.map(lambda *steps: tf.stack(steps, 1), *states)


def _repeat(tensor, amount):
  """Repeat each row: 0, 0, ..., 1, 1, ...

  Each environment of a batch gets the same plan as without the others. (The
  original mixed up the states of several environments.)
  """
  tiled = tf.tile(tensor[:, None], [1, amount] + [1] * (tensor.shape.ndims - 1))
  rest = shape(tensor)[1:]
  repeated = tf.reshape(tiled, tf.stack([-1] + rest))
  repeated.set_shape([None] + tensor.shape.as_list()[1:])
  return repeated
