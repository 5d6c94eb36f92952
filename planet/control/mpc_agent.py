"""Agent that filters observations and plans at every step."""

import itertools
from typing import Any

from tensorflow_probability import distributions as tfd

from agents.tools import nested, scopes
from agents.tools.attr_dict import AttrDict
from agents.tools.tf1 import tf


class MPCAgent:
  """Model predictive control with a latent dynamics model.

  Model states and previous actions of all environments are local variables,
  which are not saved.

  Args:
    batch_env: In-graph batch environment.
    step: Tensor of the training step, for the exploration schedule.
    is_training: Unused.
    should_log: Unused.
    config: AttrDict of
      `cell`, see `planet.models.Base`;
      `encoder`, function from a dict of observations [batch, time, ...] to
      embeddings [batch, time, size];
      `observation`, key of the observation for the encoder, by default
      `image`;
      `preprocess_fn`, function from observations to encoder inputs, or to a
      dict of them;
      `planner`, function from cell, objective, state, shape of an embedding
      and shape of an action to plans [batch, horizon, actions];
      `objective`, argument of the planner;
      `exploration`, None or AttrDict of `scale`, the standard deviation of
      the noise, and `schedule`, None or a function from step to a factor;
      `warm_start`, None or the horizon of a planner that accepts the rest of
      the previous plan as `initial_mean`.
  """

  def __init__(
    self,
    batch_env: Any,
    step: tf.Tensor,
    is_training: Any,
    should_log: Any,
    config: AttrDict,
  ) -> None:
    del is_training, should_log
    self._step = step
    self._config = config
    self._cell = config.cell
    count, *action_shape = batch_env.action.shape.as_list()
    state = self._cell.zero_state(count, tf.float32)
    with scopes.uncached_scope('agent_temporary'):
      names = (f'state_{x}' for x in itertools.count())
      self._state = nested.map(
        lambda x: self._remember(next(names), x.shape.as_list()), state
      )
      self._prev_action = self._remember(
        'prev_action_var', [count] + action_shape
      )
      self._plan = config.get('warm_start') and self._remember(
        'plan', [count, config.warm_start] + action_shape
      )

  @property
  def memory(self) -> tuple[tf.Variable, ...]:
    """Variables [agents, ...] that are zero at the start of an episode."""
    plan = () if self._plan is None else (self._plan,)
    return (*nested.flatten(self._state), self._prev_action, *plan)

  def begin_episode(self, agent_indices: tf.Tensor) -> tf.Tensor:
    """Reset model states and previous actions of the given agents.

    (The original reset the actions of all agents.)
    """
    with tf.control_dependencies(
      [_clear(variable, agent_indices) for variable in self.memory]
    ):
      return tf.constant('')

  def perform(
    self, agent_indices: tf.Tensor, observ: tf.Tensor
  ) -> tuple[tf.Tensor, tf.Tensor]:
    """Choose actions.

    Args:
      agent_indices: Indices of agents, int32 [n].
      observ: Observations of these agents [n, ...].

    Returns:
      Tuple of actions in [-1, 1] float32 [n, actions] and an empty summary.
    """
    embedded = self._encode(observ)
    state = nested.map(lambda x: tf.gather(x, agent_indices), self._state)
    prev_action = tf.gather(self._prev_action, agent_indices)
    _, state = self._cell.step(embedded, prev_action, True, state)
    plan, remember = self._define_plan(agent_indices, state, embedded)
    action = self._explore(plan[:, 0])
    action = tf.clip_by_value(action, -1.0, 1.0)
    remember.append(self._update(self._prev_action, agent_indices, action))
    pairs = zip(nested.flatten(self._state), nested.flatten(state))
    remember += [self._update(x, agent_indices, y) for x, y in pairs]
    with tf.control_dependencies(remember):
      return tf.identity(action), tf.constant('')

  def experience(
    self, unused_agent_indices: tf.Tensor, *unused_transition: tf.Tensor
  ) -> tf.Tensor:
    """Do nothing; environments record the episodes."""
    return tf.constant('')

  def end_episode(self, unused_agent_indices: tf.Tensor) -> tf.Tensor:
    """Do nothing."""
    return tf.constant('')

  def _encode(self, observ):
    observ = self._config.preprocess_fn(observ)
    if not isinstance(observ, dict):
      observ = {self._config.get('observation') or 'image': observ}
    observ = {key: value[:, None] for key, value in observ.items()}
    return self._config.encoder(observ)[:, 0]

  def _define_plan(self, agent_indices, state, embedded):
    """Return plans [n, horizon, actions] and operations that store them."""
    args = (
      self._cell,
      self._config.objective,
      state,
      embedded.shape.as_list()[1:],
      self._prev_action.shape.as_list()[1:],
    )
    if self._plan is None:
      return self._config.planner(*args), []
    plan = self._config.planner(
      *args, initial_mean=tf.gather(self._plan, agent_indices)
    )
    rest = tf.concat([plan[:, 1:], tf.zeros_like(plan[:, :1])], 1)
    return plan, [self._update(self._plan, agent_indices, rest)]

  def _remember(self, name, shape):
    return tf.get_local_variable(
      name, shape, tf.float32, tf.zeros_initializer(), use_resource=True
    )

  def _update(self, variable, indices, value):
    return tf.scatter_update(variable, indices, value)

  def _explore(self, action):
    exploration = self._config.exploration
    if not exploration:
      return action
    scale = exploration.scale
    if exploration.schedule:
      scale = scale * exploration.schedule(self._step)
    return tfd.Normal(action, scale).sample()


class MemorylessAgent(MPCAgent):
  """Agent whose memory is fed, and returned by `memory_after`."""

  def __init__(self, *args: Any) -> None:
    self._after: dict[str, tf.Tensor] = {}
    super().__init__(*args)

  @property
  def memory_after(self) -> list[tf.Tensor]:
    """Memory after `perform` with all agents, in the order of `memory`."""
    return [self._after[x.name] for x in self.memory]

  def _remember(self, name, shape):
    return tf.placeholder(tf.float32, shape, name)

  def _update(self, variable, indices, value):
    self._after[variable.name] = value
    return value


def _clear(variable, indices):
  shape = tf.concat([tf.shape(indices), variable.shape.as_list()[1:]], 0)
  return tf.scatter_update(variable, indices, tf.zeros(shape))
