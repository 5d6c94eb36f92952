"""Proximal policy optimisation in the pipeline: a face of `agents.ppo`."""

import numpy as np

from agents.pipeline import agent
from agents.pipeline import episodes
from agents.run import errors
from agents.run import plain_data
from agents.tools import attr_dict
from agents.tools.tf1 import tf


class PPOAgent(agent.AgentBase):
  """Lets `agents.ppo.PPOAlgorithm` act and learn outside of its graph.

  The algorithm chooses actions, counts statistics and improves the policy in
  the same order as within `agents.train_ppo`; explorer and memory replace its
  simulation and its own memory. Each action that is not deterministic counts
  its observation, so that explorers must not act in the half-step.

  The policy is improved when `update_every` episodes have ended; those that
  end in the same step but do not fit are dropped, as in the original.

  Source: see `agents.ppo.PPOAlgorithm`.

  Args:
    session: Session that the agent runs in.
    memory: Dict from mode to memory; the last chunk of `train` is read.
    name: Name in the tree of parameters.
    config: Configuration of `agents.configs` as plain data; see
      `agents.run.plain_data`.
    observation_space: Plain description of the observations, a box.
    action_space: Plain description of the actions, a box.
    num_workers: Number of workers of the training explorer.

  Raises:
    UsageError: If the spaces or the number of processes do not suit.
  """

  def __init__(
    self,
    session,
    memory,
    name='agent',
    config=None,
    observation_space=None,
    action_space=None,
    num_workers=1,
  ):
    super().__init__(session, memory, name, action_space)
    self._config = attr_dict.AttrDict(
      plain_data.from_plain(config, session.trust)
    )
    self._check(getattr(session, 'comm', None))
    shapes = find_shapes(observation_space, action_space)
    key = f'/agents/{name}/'
    self._cutter = episodes.EpisodeCutter(
      [
        '/observations/agent',
        key + 'actions',
        key + 'artifacts/mean',
        key + 'artifacts/logstd',
        '/rewards',
      ],
      self._config.max_length,
    )
    self._finished = []
    self._define_graph(num_workers, *shapes)

  def action_generator(
    self, observations, hidden_state, masks, deterministic=False
  ):
    """Sample actions, or take their means; see `AgentBase`.

    Args:
      observations: Dict with `agent`, float array [workers, ...].
      hidden_state: Float32 array [workers, hidden size].
      masks: Float32 array [workers, 1].
      deterministic: Whether to take the means and count nothing.

    Returns:
      Dict; the artifacts are `mean` and `logstd`, float32 [workers, size].
    """
    act = self._act if deterministic else self._act_and_count
    with self.session.profiler('graph'):
      action, mean, logstd, state = act(
        not deterministic, observations['agent'], hidden_state * masks
      )[:4]
    return {
      'actions': action,
      'hidden_state': state,
      'artifacts': {'mean': mean, 'logstd': logstd},
    }

  def step(self):
    """Improve the policy by the episodes that have ended, if these suffice."""
    count = self._config.update_every
    if len(self._finished) < count:
      return {}
    with self.session.profiler('sample'):
      rows, length = zip(*self._finished[:count])
      data = [np.stack([row[key] for row in rows]) for key in rows[0]]
      data[-1] = data[-1][..., 0]
    self._finished = []
    with self.session.profiler('graph'):
      summary = self._train(*data, length)
    values = _scalars(summary)
    return {**values, 'episode_length': float(np.mean(length))}

  def update(self):
    """Count the rewards of the newest chunk, and improve the policy."""
    chunk = self.memory['train'].get_last_chunk()
    if chunk:
      with self.session.profiler('graph'):
        self._count_rewards(chunk['/rewards'][:, :-1, 0].T)
      with self.session.profiler('sample'):
        self._finished += self._cutter.cut(chunk)
    for key, value in self.step().items():
      self.session.monitor(f'/update/{self.name}/{key}', value)

  def state_dict(self):
    return {
      'finished': list(self._finished),
      'unfinished': self._cutter.state_dict(),
    }

  def load_state_dict(self, state):
    self._finished = list(state['finished'])
    self._cutter.load_state_dict(state['unfinished'])

  def _define_graph(self, num_workers, observ_shape, action_shape):
    """Build the algorithm and the functions that execute parts of it."""
    with tf.device('/cpu:0'):
      with tf.variable_scope(self.name):
        batch = TemplateBatch(num_workers, observ_shape, action_shape)
        sampling = tf.placeholder(tf.bool, (), 'sampling')
        self._algorithm = self._config.algorithm(
          batch, None, sampling, tf.constant(False), self._config
        )
      self.hidden_size = self._algorithm.state_size or 1
      with tf.name_scope(self.name):
        self._define_acting(batch, sampling)
        self._define_rewards(batch)
        self._define_training(batch)

  def _define_acting(self, batch, sampling):
    shape = [None] + batch.observ.shape.as_list()[1:]
    observ = tf.placeholder(tf.float32, shape, 'observ')
    state = tf.placeholder(tf.float32, (None, self.hidden_size), 'state')
    recurrent = self._algorithm.state_size is not None
    decision = self._algorithm.decide(observ, state if recurrent else None)
    if not recurrent:
      decision = decision._replace(state=tf.identity(state))
    with tf.control_dependencies(decision):
      observ_filter, _ = self._algorithm.filters
      count = observ_filter.update(observ)
    feeds = [sampling, observ, state]
    self._act = self._make_callable(list(decision), feeds)
    self._act_and_count = self._make_callable([*decision, count], feeds)

  def _define_rewards(self, batch):
    """Count rewards step by step, for the rounding of the original."""
    rewards = tf.placeholder(tf.float32, (None, len(batch)), 'rewards')
    _, reward_filter = self._algorithm.filters

    def count(index):
      with tf.control_dependencies([reward_filter.update(rewards[index])]):
        return index + 1

    done = tf.while_loop(
      lambda index: index < tf.shape(rewards)[0],
      count,
      [0],
      parallel_iterations=1,
      back_prop=False,
    )
    self._count_rewards = self._make_callable(done, [rewards])

  def _define_training(self, batch):
    leading = [self._config.update_every, self._config.max_length]
    elements = [batch.observ] + 3 * [batch.action] + [batch.reward]
    data = [
      tf.placeholder(tf.float32, leading + x.shape.as_list()[1:])
      for x in elements
    ]
    length = tf.placeholder(tf.int32, leading[:1], 'length')
    summary = self._algorithm.train_on(data, length)
    self._train = self._make_callable(summary, [*data, length])

  def _make_callable(self, fetches, feeds):
    """Function of the values of some placeholders; made when first called."""
    made = []

    def call(*values):
      if not made:
        sess = self.session.tf_session()
        made.append(sess.make_callable(fetches, feeds))
      return made[0](*values)

    return call

  def _check(self, comm):
    for key in ('algorithm', 'network', 'update_every', 'max_length'):
      if not self._config.get(key):
        raise errors.UsageError(
          f'Agent {self.name!r} has a configuration without {key!r}; give it '
          'one of agents.configs.'
        )
    if comm and comm.Get_size() > 1:
      raise errors.UsageError(
        f'PPO of the pipeline cannot use {comm.Get_size()} processes of MPI; '
        'start one, or use mpirun with agents.train_ppo.'
      )


class TemplateBatch:
  """What `PPOAlgorithm` reads from a batch environment, which is shapes.

  Args:
    count: Number of environments.
    observ_shape: Shape of an observation.
    action_shape: Shape of an action.
  """

  def __init__(self, count, observ_shape, action_shape):
    self._count = count
    self.observ = tf.zeros([count, *observ_shape])
    self.action = tf.zeros([count, *action_shape])
    self.reward = tf.zeros([count])

  def __len__(self):
    return self._count


def find_shapes(observation_space, action_space):
  """Shapes of observations and actions.

  Args:
    observation_space: Description of `agents.pipeline.env_config`, or None.
    action_space: The same.

  Returns:
    Tuple of two lists of integers.

  Raises:
    UsageError: If the spaces do not suit PPO.
  """
  spaces = {'observations': observation_space, 'actions': action_space}
  for name, space in spaces.items():
    if not space or space['typ'] != 'Box':
      raise errors.UsageError(
        f'PPO needs boxes of real numbers, but the {name} are {space}; choose '
        'an environment with continuous observations and actions.'
      )
  if len(action_space['dim']) != 1:
    raise errors.UsageError(
      f'PPO needs vectors, but the actions are shaped {action_space["dim"]}; '
      'choose another environment.'
    )
  return list(observation_space['dim']), list(action_space['dim'])


def _scalars(summary):
  """Dict from the last part of the tag to value, of a serialised summary."""
  return {
    x.tag.rpartition('/')[2]: x.simple_value
    for x in tf.Summary.FromString(summary).value
    if x.HasField('simple_value')
  }
