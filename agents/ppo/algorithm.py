"""Proximal policy optimisation of a batch of agents, within the graph."""

import collections
import functools

from agents.ppo import memory
from agents.ppo import normalize
from agents.ppo import summaries
from agents.ppo import update
from agents.ppo import utility
from agents.run import mpi_ops
from agents.run import references
from agents.run import saver
from agents.tools import scopes
from agents.tools.tf1 import tf

Decision = collections.namedtuple('Decision', 'action, mean, logstd, state')
_Last = collections.namedtuple('_Last', 'action, mean, logstd')


@references.nameable
class PPOAlgorithm:
  """Collect episodes with the current policy, then improve it.

  Observations and rewards are normalised by what has been seen so far. The
  memory keeps them as they came, so they are normalised anew, by the
  statistics of that time, when the policy is updated.

  Source: Schulman et al. (2017), arXiv:1707.06347, the variant with an
  adaptive penalty on the divergence from the old policy.

  Args:
    batch_env: In-graph batch environment of N environments; only the shapes
      of its observations, actions and rewards are used.
    step: Unused.
    is_training: Bool tensor, whether to sample actions, store experience and
      improve the policy.
    should_log: Bool tensor, whether to compute summaries.
    config: AttrDict, see `agents.configs`.
    comm: MPI communicator. With several processes, episodes, gradients and
      statistics are those of all of them together.
  """

  def __init__(
    self, batch_env, step, is_training, should_log, config, comm=None
  ):
    del step
    self._batch_env = batch_env
    self._is_training = is_training
    self._should_log = should_log
    self._config = config
    self._comm = comm if comm and comm.Get_size() > 1 else None
    observ, action, reward = (
      batch_env.observ,
      batch_env.action,
      batch_env.reward,
    )
    self._observ_filter = normalize.StreamingNormalize(
      observ[0], True, True, 5, 'normalize_observ', self._comm
    )
    self._reward_filter = normalize.StreamingNormalize(
      reward[0], False, True, 10, 'normalize_reward', self._comm
    )
    template = (observ[0], action[0], action[0], action[0], reward[0])
    self._memory = memory.EpisodeMemory(
      template, config.update_every, config.max_length, 'memory'
    )
    with scopes.uncached_scope('memory_index'):
      self._memory_index = tf.get_variable(
        'index', (), tf.int32, tf.zeros_initializer(), trainable=False
      )
    gpus = config.use_gpu and utility.available_gpus()
    self._device = '/gpu:0' if gpus else '/cpu:0'
    action_size = action.shape.as_list()[1]
    self._network = tf.make_template(
      'network', functools.partial(config.network, config, action_size)
    )
    with tf.device(self._device):
      output = self._network(
        tf.zeros_like(observ)[:, None], tf.ones(len(batch_env))
      )
    self._define_temporary(template, output)
    with scopes.uncached_scope('penalty'):
      self._penalty = tf.get_variable(
        'penalty',
        (),
        tf.float32,
        tf.constant_initializer(float(config.kl_init_penalty)),
        trainable=False,
      )
    self._optimizer = config.optimizer(config.learning_rate)
    outer = tf.get_variable_scope().name
    self._optimizer_scope = f'{outer}/{saver.OPTIMIZER}/'.lstrip('/')

  def begin_episode(self, agent_indices):
    """Forget the recurrent states and unfinished episodes of some agents.

    Args:
      agent_indices: Agents that begin an episode, int32 [rows].

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

  def perform(self, agent_indices, observ):
    """Choose actions: samples in training, means otherwise.

    Args:
      agent_indices: Agents to act for, int32 [rows].
      observ: Their observations [rows, ...].

    Returns:
      Tuple of actions float32 [rows, size] and a summary.
    """
    with tf.name_scope('perform'):
      state = self._last_state
      if state is not None:
        state = tf.gather(state, agent_indices)
      output, action = self._define_action(observ, state)
      last = _Last(action[:, 0], output.mean[:, 0], output.logstd[:, 0])
      remember = [
        tf.scatter_update(variable, agent_indices, value)
        for variable, value in zip(self._last, last)
      ]
      if state is not None:
        remember.append(
          tf.scatter_update(self._last_state, agent_indices, output.state)
        )
      summary = tf.cond(
        self._should_log,
        lambda: summaries.summarize_actions(output, action),
        str,
      )
      with tf.control_dependencies(remember):
        return tf.identity(last.action), tf.identity(summary)

  def decide(self, observ, state=None):
    """Choose actions like `perform`, for callers that remember themselves.

    Args:
      observ: Observations [rows, ...].
      state: State of a recurrent network [rows, units]; zero if None.

    Returns:
      `Decision` of the actions, means and logstds float32 [rows, size], and
      the next state, None if the network has none.
    """
    with tf.name_scope('decide'):
      output, action = self._define_action(observ, state)
      return Decision(
        action[:, 0], output.mean[:, 0], output.logstd[:, 0], output.state
      )

  @property
  def state_size(self):
    """Number of units of a recurrent network, None if there are none."""
    if self._last_state is None:
      return None
    return self._last_state.shape.as_list()[1]

  @property
  def filters(self):
    """`StreamingNormalize` of observations and of rewards."""
    return self._observ_filter, self._reward_filter

  @property
  def stored(self):
    """`EpisodeMemory` of finished episodes, and variable of their number."""
    return self._memory, self._memory_index

  @property
  def training_variables(self):
    """Variables that only training reads: memory, penalty, optimiser."""
    return [
      *self._memory.variables,
      self._memory_index,
      self._penalty,
      *self._optimizer.variables(),
    ]

  def experience(
    self, agent_indices, observ, action, reward, unused_done, unused_nextob
  ):
    """Count statistics and store a transition, in training.

    Args:
      agent_indices: Agents that have acted, int32 [rows].
      observ: Observations they acted on [rows, ...].
      action: Actions, before the environment clips them, [rows, size].
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

  def end_episode(self, agent_indices):
    """Store finished episodes; improve the policy when there are enough.

    Args:
      agent_indices: Agents whose episode is over, int32 [rows].

    Returns:
      Summary.
    """
    if self._comm:
      # All processes have to take part in an update, also those in which no
      # episode has ended now; see `synchronize`.
      return tf.constant('')
    with tf.name_scope('end_episode'):
      return tf.cond(
        self._is_training,
        lambda: self._define_end_episode(agent_indices),
        str,
      )

  def synchronize(self):
    """Do what `end_episode` does, for all processes at once.

    Only needed with several processes, after every step.

    Returns:
      Summary.
    """
    with tf.name_scope('synchronize'):
      return tf.cond(self._is_training, self._define_synchronization, str)

  def _define_temporary(self, template, output):
    """Variables for unfinished episodes, which are not saved."""
    count = len(self._batch_env)
    with scopes.uncached_scope('ppo_temporary'):
      self._episodes = memory.EpisodeMemory(
        template, count, self._config.max_length, 'episodes'
      )
      self._last = _Last(
        *[
          tf.get_variable(
            f'last_{name}',
            [count] + template[1].shape.as_list(),
            initializer=tf.zeros_initializer(),
            trainable=False,
          )
          for name in _Last._fields
        ]
      )
      self._last_state = None
      if output.state is not None:
        self._last_state = tf.get_variable(
          'last_state',
          output.state.shape,
          initializer=tf.zeros_initializer(),
          trainable=False,
        )

  def _define_action(self, observ, state):
    """Outputs of the network and actions, both [rows, 1, ...]."""
    observ = self._observ_filter.transform(observ)
    with tf.device(self._device):
      length = tf.ones([tf.shape(observ)[0]])
      output = self._network(observ[:, None], length, state)
    action = tf.cond(
      self._is_training, output.policy.sample, lambda: output.mean
    )
    return output, action

  def _define_experience(self, agent_indices, observ, action, reward):
    observ_summary = self._observ_filter.update(observ)
    # Messages between processes need an order.
    with tf.control_dependencies([observ_summary] if self._comm else []):
      reward_summary = self._reward_filter.update(reward)
    filters = tf.summary.merge([observ_summary, reward_summary])
    with tf.control_dependencies([filters]):
      if self._config.train_on_agent_action:
        action = tf.gather(self._last.action, agent_indices)
      append = self._episodes.append(
        (
          observ,
          action,
          tf.gather(self._last.mean, agent_indices),
          tf.gather(self._last.logstd, agent_indices),
          reward,
        ),
        agent_indices,
      )

    def summarize():
      size = tf.identity(self._memory_index)
      return tf.summary.merge(
        [
          filters,
          summaries.summarize_experience(
            self.filters, size, observ, action, reward
          ),
        ]
      )

    with tf.control_dependencies([append]):
      return tf.cond(self._should_log, summarize, str)

  def _define_end_episode(self, agent_indices):
    space = self._config.update_every - self._memory_index
    store = self._define_store(agent_indices[:space])
    with tf.control_dependencies([store]):
      full = self._memory_index >= self._config.update_every
      return tf.cond(full, self._define_training, str)

  def _define_synchronization(self):
    """Store what fits, in the order of the ranks; train when all are full."""
    rank, size = self._comm.Get_rank(), self._comm.Get_size()
    ending = tf.cast(tf.where(self._batch_env.done)[:, 0], tf.int32)
    counts = tf.stack(
      [
        tf.one_hot(rank, size, tf.size(ending), 0),
        tf.one_hot(rank, size, self._memory_index, 0),
      ]
    )
    ended, stored = tf.unstack(mpi_ops.allreduce(counts, self._comm))
    space = self._config.update_every - tf.reduce_sum(stored)
    own = tf.maximum(0, space - tf.reduce_sum(ended[:rank]))
    store = self._define_store(ending[:own])
    with tf.control_dependencies([store]):
      full = tf.reduce_sum(ended) >= space
      return tf.cond(full, self._define_training, str)

  def _define_store(self, agent_indices):
    """Move finished episodes to the memory."""
    episodes, length = self._episodes.data(agent_indices)
    rows = tf.range(tf.size(agent_indices)) + self._memory_index
    store = self._memory.replace(episodes, length, rows)
    with tf.control_dependencies([store]):
      return self._memory_index.assign_add(tf.size(agent_indices)).op

  def _define_training(self):
    """Improve the policy by all stored episodes, and forget them."""
    with tf.device(self._device), tf.name_scope('training'):
      checks = []
      if not self._comm:
        checks.append(
          tf.assert_equal(self._memory_index, self._config.update_every)
        )
      with tf.control_dependencies(checks):
        rows = tf.range(self._memory_index) if self._comm else None
        data, length = self._memory.data(rows)
      with tf.control_dependencies(
        [tf.assert_greater(length, 0, message='empty episode')]
      ):
        data = [tf.identity(x) for x in data]
      summary = self.train_on(data, length)
      with tf.control_dependencies([summary]):
        clear = tf.group(self._memory.clear(), self._memory_index.assign(0))
      with tf.control_dependencies([clear]):
        weights = utility.variable_summaries(
          tf.trainable_variables(), self._config.weight_summaries
        )
        return tf.summary.merge([summary, weights])

  def train_on(self, data, length):
    """Improve the policy by some episodes.

    Args:
      data: List of observations [episodes, time, ...], actions, means,
        logstds [episodes, time, size], and rewards [episodes, time], as they
        were recorded.
      length: Lengths of the episodes int32 [episodes].

    Returns:
      Summary.
    """
    observ, action, mean, logstd, reward = data
    with tf.device(self._device):
      episodes = update.Episodes(
        self._observ_filter.transform(observ),
        action,
        mean,
        logstd,
        self._reward_filter.transform(reward),
        length,
      )
      return update.define_update(
        episodes,
        self._network,
        self._optimizer,
        self._penalty,
        self._config,
        self._comm,
        self._optimizer_scope,
      )
