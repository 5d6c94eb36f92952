"""Proximal policy optimization of a batch of agents, within the graph."""

import contextlib
import functools
from typing import Any

from agents.envs import observations
from agents.ppo import memory, policy, together, utility
from agents.run import references, stopping
from agents.tools import attr_dict, graph_errors, scopes
from agents.tools.tf1 import tf


@references.nameable
class PPOAlgorithm:
  """Collect episodes with the current policy, then improve it.

  `Policy` acts, keeps statistics and learns. This class adds what a simulation
  within the graph needs: the unfinished episodes of all environments, and a
  memory of the episodes for the next update. Both store unnormalized
  observations and rewards.

  Source: see `agents.ppo.policy.Policy`.

  Args:
    batch_env: In-graph batch environment of N environments; only the shapes
      of its observations, actions and rewards are used, the number of actions
      if they are discrete, and the `Packing` of observations.
    step: Variable of the global step.
    is_training: Bool tensor, whether to sample actions, store experience and
      improve the policy.
    should_log: Bool tensor, whether to compute summaries.
    config: AttrDict, see `agents.configs`.
    comm: MPI communicator, None for a single process. With several, each
      contributes the same number of episodes to an update, and statistics and
      gradients are computed over all of them. Between two updates, the
      processes do not communicate.
  """

  def __init__(
    self,
    batch_env: Any,
    step: Any,
    is_training: tf.Tensor,
    should_log: tf.Tensor,
    config: attr_dict.AttrDict,
    comm: Any = None,
  ) -> None:
    self._batch_env = batch_env
    self._is_training = is_training
    self._should_log = should_log
    self._config = config
    self._comm = comm
    self._quota = config.update_every // (comm.Get_size() if comm else 1)
    observ, action, reward = (
      x[0] for x in (batch_env.observ, batch_env.action, batch_env.reward)
    )
    discrete = action.dtype.is_integer
    size = batch_env.action_space.n if discrete else action.shape.as_list()[0]
    self._policy = policy.Policy(
      observ.shape.as_list(),
      int(size),
      is_training,
      config,
      comm,
      discrete,
      observations.find_packing(batch_env),
    )
    # Distribution parameters have one entry per action or action dimension.
    parameter = tf.zeros([size]) if discrete else action
    parameters = [parameter for _ in self._policy.family.PARAMETERS]
    template = (observ, action, *parameters, reward)
    self._memory = memory.EpisodeMemory(
      template, config.update_every, config.max_length, 'memory'
    )
    with scopes.uncached_scope('memory_index'):
      self._memory_index = scopes.variable('index', (), tf.int32)
    self._define_temporary(template)

  def begin_episode(self, agent_indices: tf.Tensor) -> tf.Tensor:
    """Clear the recurrent states and unfinished episodes of some agents.

    Args:
      agent_indices: Agents that start an episode, int32 [rows].

    Returns:
      Empty summary.
    """
    with tf.name_scope('begin_episode'):
      reset = [self._episodes.clear(agent_indices)]
      if self._last_state is not None:
        reset.append(
          utility.reinit_nested_vars(self._last_state, agent_indices)
        )
      with tf.control_dependencies(reset):
        return tf.constant('')

  def perform(
    self, agent_indices: tf.Tensor, observ: tf.Tensor
  ) -> tuple[tf.Tensor, tf.Tensor]:
    """Choose actions: samples in training, means or modes otherwise.

    Args:
      agent_indices: Agents to act for, int32 [rows].
      observ: Their observations [rows, ...].

    Returns:
      Tuple of actions, float32 [rows, size] or int32 [rows] depending on the
      environment, and a summary.
    """
    with tf.name_scope('perform'):
      state = self._last_state
      if state is not None:
        state = tf.gather(state, agent_indices)
      decision = self._policy.act(observ, state)
      last = [decision.action, *decision.policy.parameters]
      remember = [utility.assign_nested_vars(self._last, last, agent_indices)]
      if state is not None:
        remember.append(
          tf.scatter_update(self._last_state, agent_indices, decision.state)
        )
      summary = tf.cond(
        self._should_log, lambda: _summarize_actions(decision), str
      )
      with tf.control_dependencies(remember):
        return tf.identity(decision.action), tf.identity(summary)

  def experience(
    self,
    agent_indices: tf.Tensor,
    observ: tf.Tensor,
    action: tf.Tensor,
    reward: tf.Tensor,
    unused_done: Any,
    unused_nextob: Any,
  ) -> tf.Tensor:
    """Update the statistics and store a transition, in training only.

    Args:
      agent_indices: Agents that acted, int32 [rows].
      observ: Observations they acted on [rows, ...].
      action: Actions, before the environment clips them, [rows, ...].
      reward: Rewards float32 [rows].

    Returns:
      Summary.
    """
    with tf.name_scope('experience'):
      return tf.cond(
        self._is_training,
        lambda: self._define_experience(agent_indices, observ, action, reward),
        str,
      )

  def end_episode(self, agent_indices: tf.Tensor) -> tf.Tensor:
    """Store finished episodes; improve the policy when there are enough.

    Args:
      agent_indices: Agents whose episode has ended, int32 [rows].

    Returns:
      Summary.
    """
    with tf.name_scope('end_episode'):
      return tf.cond(
        self._is_training,
        lambda: self._define_end_episode(agent_indices),
        str,
      )

  def end_phase(self) -> tf.Tensor:
    """Wait until all processes have finished the phase; returns a summary.

    Needed only with several processes: those with a full memory that wait for
    others then continue without an update.
    """
    with tf.name_scope('end_phase'):
      with tf.control_dependencies([self._sync(together.END)]):
        return tf.constant('')

  def should_stop(self) -> bool:
    """Return whether to stop: in all processes if one was asked to."""
    if self._comm is None or not stopping.requested():
      return stopping.requested()
    with contextlib.suppress(stopping.StopRequested):
      together.sync(self._comm, together.STOP)
    return True

  def begin_together(self) -> tf.Operation:
    """Clear waiting episodes, which all processes restored identically."""
    filters = [self._policy.observ_filter, self._policy.reward_filter]
    forget = [self._memory.clear(), self._memory_index.assign(0)]
    return tf.group(*forget, *[x.mark() for x in filters])

  def _sync(self, kind):
    function = functools.partial(together.sync, self._comm, kind)
    remembered = graph_errors.remember(function)
    return tf.py_func(remembered, [], tf.bool, name='sync')

  def _define_temporary(self, template):
    """Create variables for unfinished episodes, which are not saved."""
    count = len(self._batch_env)
    names = ['action', *self._policy.family.PARAMETERS]
    state_size = self._policy.state_size
    with scopes.uncached_scope('ppo_temporary'):
      self._episodes = memory.EpisodeMemory(
        template, count, self._config.max_length, 'episodes'
      )
      self._last = [
        scopes.variable(
          f'last_{name}', [count, *element.shape.as_list()], element.dtype
        )
        for name, element in zip(names, template[1:])
      ]
      self._last_state = None
      if state_size is not None:
        self._last_state = scopes.variable('last_state', [count, state_size])

  def _define_experience(self, agent_indices, observ, action, reward):
    filters = self._policy.remember(observ, reward)
    with tf.control_dependencies([filters]):
      if self._config.train_on_agent_action:
        action = tf.gather(self._last[0], agent_indices)
      parameters = [tf.gather(x, agent_indices) for x in self._last[1:]]
      append = self._episodes.append(
        (observ, action, *parameters, reward), agent_indices
      )

    def summarize():
      observ_filter = self._policy.observ_filter
      reward_filter = self._policy.reward_filter
      vector = self._policy.vector(observ)
      reward_mean = tf.reduce_mean(reward_filter.transform(reward))
      return tf.summary.merge(
        [
          filters,
          observ_filter.summary(),
          reward_filter.summary(),
          tf.summary.scalar('memory_size', tf.identity(self._memory_index)),
          tf.summary.histogram(
            'normalized_observ', observ_filter.transform(vector)
          ),
          tf.summary.histogram('action', action),
          tf.summary.scalar('normalized_reward', reward_mean),
        ]
      )

    with tf.control_dependencies([append]):
      return tf.cond(self._should_log, summarize, str)

  def _define_end_episode(self, agent_indices):
    finished = agent_indices[: self._quota - self._memory_index]
    number = tf.size(finished)
    episodes, length = self._episodes.data(finished)
    rows = tf.range(number) + self._memory_index
    with tf.control_dependencies(
      [self._memory.replace(episodes, length, rows)]
    ):
      store = self._memory_index.assign_add(number).op
    with tf.control_dependencies([store]):
      full = self._memory_index >= self._quota
      if self._comm:
        waits = tf.logical_and(full, tf.size(agent_indices) > 0)
        full = tf.cond(waits, lambda: self._sync(together.FULL), lambda: False)
      return tf.cond(full, self._define_training, str)

  def _define_training(self):
    """Improve the policy on the stored episodes, and clear them."""
    checks = [tf.assert_equal(self._memory_index, self._quota)]
    if self._comm:
      checks.append(self._policy.merge())
    with tf.control_dependencies(checks):
      data, length = self._memory.data(
        tf.range(self._quota) if self._comm else None
      )
    with tf.control_dependencies(
      [tf.assert_greater(length, 0, message='empty episode')]
    ):
      data = [tf.identity(x) for x in data]
    summary = self._policy.update(data, length)
    with tf.control_dependencies([summary]):
      forget = [self._memory.clear(), self._memory_index.assign(0)]
    with tf.control_dependencies(forget):
      weights = utility.variable_summaries(
        tf.trainable_variables(), self._config.weight_summaries
      )
      return tf.summary.merge([summary, weights])


def _summarize_actions(decision):
  """Return a summary of the proposed and the executed actions."""
  values = {
    **decision.policy.describe(),
    'action': decision.action,
    'logprob': decision.policy.log_prob(decision.action),
  }
  return tf.summary.merge(
    [tf.summary.histogram(name, value) for name, value in values.items()]
  )
