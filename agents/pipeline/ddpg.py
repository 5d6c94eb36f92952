"""Deep deterministic policy gradient (Lillicrap et al., 2016)."""

import numpy as np

from agents.pipeline import agent
from agents.pipeline import samplers
from agents.run import errors
from agents.tools import layers
from agents.tools.tf1 import tf


class DDPGAgent(agent.AgentBase):
  """Actor and critic for continuous actions, trained from a ring memory.

  With state s, action a, reward r, next state s', terminal flag d, actor pi,
  critic Q and their slowly following copies pi', Q':

    y = r + gamma (1 - d) Q'(s', pi'(s'))
    critic: mean smooth L1 of Q(s, a) - y,  actor: -sum Q(s, pi(s))

  Args:
    session: Session with the graph that the agent is built in.
    memory: Dict from mode to memory; learns from `train`.
    name: Name of the agent and the scope of its variables.
    action_space: Plain description of the actions, a bounded box.
    observation_space: Plain description of what is observed, a box of one
      dimension.
    observation_key: Path of the observation.
    gamma: Discount factor.
    batch_size: Transitions per step of optimisation.
    n_update: Steps of optimisation per update.
    actor_rate: Learning rate of the actor.
    critic_rate: Learning rate of the critic.
    polyak: Weight of the networks in the moving average of the copies.
    noise_mu: Mean of the Ornstein-Uhlenbeck noise; all noise is in units of
      half the range of the actions.
    noise_theta: Part by which it returns to the mean in each step.
    noise_sigma: Standard deviation of its steps.

  Attributes:
    sampler: Function from the memories to a batch, None if there is none yet.

  Raises:
    UsageError: If the spaces are not of the right kind, or there are several
      ranks of MPI.
  """

  def __init__(
    self,
    session,
    memory,
    name='agent',
    action_space=None,
    observation_space=None,
    observation_key='agent',
    gamma=0.99,
    batch_size=64,
    n_update=1,
    actor_rate=1e-4,
    critic_rate=1e-3,
    polyak=0.001,
    noise_mu=0.0,
    noise_theta=0.15,
    noise_sigma=0.2,
  ):
    super().__init__(session, memory, name, action_space)
    if session.comm.Get_size() > 1:
      raise errors.UsageError(
        f'DDPG learns in one process, but there are {session.comm.Get_size()}; '
        'start it without mpirun and raise num_workers instead.'
      )
    self._low, self._high = _check_spaces(name, action_space, observation_space)
    self._key = observation_key
    self._gamma, self._polyak = gamma, polyak
    self._rates = {'actor': actor_rate, 'critic': critic_rate}
    self._n_update = n_update
    self._noise = _Noise(noise_mu, noise_theta, noise_sigma, len(self._low))
    self.sampler = samplers.Compose(
      [samplers.pick_memory, samplers.sample_replay], batch_size=batch_size
    )
    self._sums, self._updates = {}, 0
    with tf.variable_scope(name):
      self._define_graph(observation_space['dim'][0])

  def action_generator(
    self, observations, hidden_state, masks, deterministic=False
  ):
    with self.session.profiler('graph'):
      actions = self._act(observations[self._key])
    if not deterministic:
      scale = (self._high - self._low) / 2
      actions = actions + scale * self._noise.step(masks)
      actions = np.clip(actions, self._low, self._high).astype(np.float32)
    return {'actions': actions, 'hidden_state': hidden_state, 'artifacts': {}}

  def evaluate(self, observations, actions):
    """Values Q(s, a) [batch] of observations and actions [batch, size]."""
    return self._evaluate(observations, actions)

  def step(self):
    with self.session.profiler('sample'):
      batch = self.sampler(self.memory)
    if batch is None:
      return {}
    prefix = f'/observations/{self._key}'
    with self.session.profiler('graph'):
      actor, critic = self._train(
        batch[prefix],
        batch[f'/agents/{self.name}/actions'],
        batch['/rewards'],
        batch['/terminals'],
        batch[f'{prefix}_2'],
      )
    return {'loss_actor': actor, 'loss_critic': critic}

  def update(self):
    for _ in range(self._n_update):
      for key, value in self.step().items():
        self.session.monitor(f'/update/{key}', value)
        self._sums.setdefault(key, []).append(value)
    self._updates += self._n_update

  def epoch_done(self):
    for key, values in self._sums.items():
      tag = f'loss/{key.removeprefix("loss_")}'
      self.session.writer.add_scalar(tag, float(np.mean(values)), self._updates)
    self._sums = {}

  def state_dict(self):
    return {'noise': self._noise.value, 'updates': self._updates}

  def load_state_dict(self, state):
    value = state['noise']
    self._noise.value = None if value is None else np.array(value)
    self._updates = int(state['updates'])

  def _define_graph(self, observation_size):
    observ, next_observ = (
      tf.placeholder(tf.float32, (None, observation_size), x)
      for x in ('observ', 'next_observ')
    )
    action = tf.placeholder(tf.float32, (None, len(self._low)), 'action')
    reward = tf.placeholder(tf.float32, (None, 1), 'reward')
    terminal = tf.placeholder(tf.float32, (None, 1), 'terminal')
    networks = self._make_networks()
    mode, value = networks['actor'](observ), networks['critic'](observ, action)
    targets = self._make_networks('target_', networks)
    future = targets['critic'](next_observ, targets['actor'](next_observ))
    goal = reward + self._gamma * (1 - terminal) * future
    train = self._define_training(networks, targets, observ, value, goal)
    # Callables spare the preparations of each `Session.run`.
    make = self.session.tf_session().make_callable
    self._act = make(mode, [observ])
    self._evaluate = make(value[:, 0], [observ, action])
    self._train = make(train, [observ, action, reward, terminal, next_observ])

  def _make_networks(self, prefix='', sources=None):
    """Templates of actor and critic.

    Args:
      prefix: Beginning of the names of their scopes.
      sources: Networks with variables, whose copies these are.
    """
    args = {
      'actor': {'func_': _actor, 'low': self._low, 'high': self._high},
      'critic': {'func_': _critic},
    }
    return {
      key: tf.make_template(
        prefix + key,
        custom_getter_=sources and _copy_getter(sources[key], prefix),
        **value,
      )
      for key, value in args.items()
    }

  def _define_training(self, networks, targets, observ, value, goal):
    """Losses of a step: critic, then actor, then the copies."""
    critic_loss = _smooth_l1(value - tf.stop_gradient(goal))
    train_critic = self._minimize(critic_loss, networks, 'critic')
    with tf.control_dependencies([train_critic]):
      chosen = networks['critic'](observ, networks['actor'](observ))
      actor_loss = -tf.reduce_sum(chosen)
      train_actor = self._minimize(actor_loss, networks, 'actor')
    with tf.control_dependencies([train_actor]):
      follow = [
        tf.assign_add(target, self._polyak * (source - target))
        for key in networks
        for source, target in _pair(networks[key], targets[key])
      ]
    with tf.control_dependencies(follow):
      return tf.identity(actor_loss), tf.identity(critic_loss)

  def _minimize(self, loss, networks, name):
    optimizer = tf.train.AdamOptimizer(
      self._rates[name], name=f'{name}_optimizer'
    )
    variables = networks[name].trainable_variables
    return optimizer.minimize(loss, var_list=variables)


class _Noise:
  """Ornstein-Uhlenbeck noise that starts anew with each episode."""

  def __init__(self, mu, theta, sigma, size):
    self._mu, self._theta, self._sigma, self._size = mu, theta, sigma, size
    self.value = None

  def step(self, masks):
    """Noise [workers, size]; rows with a mask of 0 come from the mean."""
    shape = (len(masks), self._size)
    if self.value is None:
      self.value = np.full(shape, self._mu)
    value = np.where(masks > 0, self.value, self._mu)
    value = value + self._theta * (self._mu - value)
    self.value = value + self._sigma * np.random.standard_normal(shape)
    return self.value


def _actor(observ, low, high):
  hidden = observ
  for _ in range(3):
    hidden = _hidden(hidden, 256)
  scale, center = (high - low) / 2, (high + low) / 2
  return _last(hidden, len(low), tf.tanh) * scale + center


def _critic(observ, action):
  hidden = tf.concat(
    [_hidden(_hidden(observ, 256), 128), _hidden(action, 128)], 1
  )
  return _last(_hidden(hidden, 256), 1)


def _hidden(inputs, units):
  # Uniform within one over the root of the number of inputs.
  uniform = tf.variance_scaling_initializer(1 / 3, 'fan_in', 'uniform')
  return layers.dense(inputs, units, tf.nn.relu, kernel_initializer=uniform)


def _last(inputs, units, activation=None):
  uniform = tf.random_uniform_initializer(-0.003, 0.003)
  return layers.dense(inputs, units, activation, kernel_initializer=uniform)


def _smooth_l1(error):
  size = tf.abs(error)
  return tf.reduce_mean(tf.where(size < 1, 0.5 * error**2, size - 0.5))


def _copy_getter(network, prefix):
  """Getter of variables that begin as those of a network, if together."""
  starts = {x.op.name: x.initial_value for x in network.variables}

  def get(getter, name, **kwargs):
    start = starts[name.replace(prefix, '', 1)]
    kwargs.update(initializer=start, shape=None, trainable=False)
    return getter(name, **kwargs)

  return get


def _pair(network, target):
  """Variables of a network with those of its copy."""
  return zip(network.variables, target.variables, strict=True)


def _check_spaces(name, action, observation):
  """Lowest and highest actions [size]."""
  for what, space in (('actions', action), ('observations', observation)):
    if not space or space['typ'] != 'Box' or len(space['dim']) != 1:
      raise errors.UsageError(
        f'The {what} of agent {name!r} are {space}; DDPG needs vectors of real '
        'numbers. Choose an environment with boxes of one dimension.'
      )
  low, high = (np.array(x, np.float32) for x in action['lim'])
  if not (np.isfinite(low).all() and np.isfinite(high).all()):
    raise errors.UsageError(
      f'The actions of agent {name!r} go from {low} to {high}; DDPG needs '
      'finite limits.'
    )
  return low, high
