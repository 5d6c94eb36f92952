"""Parts of your own for PlaNet: a model, and a planner that draws plans once.

planet-train --config cpu --logdir=logs/cart_own --params '{
  tasks: ["my_env:PushCart-v0"], model: "my_planet:NormalizedRSSM",
  planner: "my_planet:random_shooting"}'
planet-evaluate --logdir=logs/cart_own --trust my_planet,my_env
"""

from agents.tools.tf1 import tf
from planet import models


class NormalizedRSSM(models.RSSM):
  """RSSM whose belief has mean 0 and variance 1 over its units."""

  def _transition(self, prev_state, prev_action, zero_obs):
    state = super()._transition(prev_state, prev_action, zero_obs)
    mean, variance = tf.nn.moments(state['belief'], -1, keepdims=True)
    return {
      **state,
      'belief': (state['belief'] - mean) * tf.rsqrt(variance + 1e-3),
    }


def random_shooting(
  cell,
  objective_fn,
  state,
  obs_shape,
  action_shape,
  horizon,
  graph,
  amount,
  **unused,
):
  """Return the best of random plans, float32 [batch, horizon, actions]."""
  batch = tf.shape(state['sample'])[0]
  plans = tf.random_uniform([batch, amount, horizon, *action_shape], -1, 1)
  actions = tf.reshape(plans, [batch * amount, horizon, *action_shape])
  state = {key: tf.repeat(value, amount, 0) for key, value in state.items()}
  obs, states = tf.zeros([batch * amount, *obs_shape]), []
  for step in range(horizon):
    _, state = cell.step(obs, actions[:, step], False, state)
    states.append(state)
  states = {key: tf.stack([x[key] for x in states], 1) for key in state}
  returns = tf.reshape(objective_fn(states), [batch, amount])
  return tf.gather(plans, tf.argmax(returns, 1), batch_dims=1)
