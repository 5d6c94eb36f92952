"""Deep deterministic policy gradients, Lillicrap et al. 2016."""

import copy
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar

import annotated_types
import numpy as np

from agents.pipeline import base, toolbox
from agents.run import references, schema
from agents.tools import callables
from agents.tools import layers as layers_lib
from agents.tools.tf1 import tf


class NoiseSettings(schema.Settings):
  """Settings of the exploration, see `Noise`."""

  called: ClassVar[str] = 'Setting {!r} of the noise'

  mu: schema.Finite = 0.0
  theta: schema.Finite = 0.15
  sigma: Annotated[schema.Finite, annotated_types.Ge(0)] = 0.2


@references.nameable
class DDPGAgent(base.AgentBase):
  """Explores with time-correlated noise and learns from a ring memory.

  Args:
    session: See `AgentBase`.
    memory: See `AgentBase`, usually with a `RingMemory`.
    name: See `AgentBase`.
    action_space: Plain description of a bounded box.
    sampler: Sampler of transitions, see `samplers.sample_replay`.
    observation_space: Plain description of the observations, a one-dimensional
      box.
    observation_key: Path of the observation.
    n_update: Optimization steps per update.
    noise: Dict of the `mu`, `theta` and `sigma` of `Noise`, in units of half
      the action range.
    policy: Function that creates a `DDPGPolicy`, or an object with its methods
      `act` and `update`, from the TensorFlow session, the size of observations,
      and the lower and upper action bounds.

  Raises:
    UsageError: If a space has the wrong type, a number is out of range, or
      there are several MPI ranks.
  """

  def __init__(
    self,
    session: Any,
    memory: Mapping[str, Any],
    name: str = 'agent',
    action_space: Mapping[str, Any] | None = None,
    sampler: base.Sampler | None = None,
    *,
    observation_space: Mapping[str, Any] | None = None,
    observation_key: str = 'agent',
    n_update: int = 1,
    noise: Mapping[str, float] | None = None,
    policy: Callable[..., Any] | None = None,
  ) -> None:
    super().__init__(session, memory, name, action_space, sampler)
    base.check_processes(self.session.comm, self.name, 'raise num_workers')
    observed = f'observations of agent {self.name!r}'
    (self._size,) = base.find_shape(observation_space, observed)
    what = f'actions of agent {self.name!r}'
    base.find_shape(self.action_space, what)
    self._low, self._high = base.find_limits(self.action_space, what)
    self._key = observation_key
    self._n_update = schema.convert(schema.Positive, n_update, 'n_update')
    given = schema.convert(dict | None, noise, 'noise')
    self._noise = Noise(len(self._low), **dict(NoiseSettings.read(given or {})))
    with tf.variable_scope(self.name):
      make, sess = policy or DDPGPolicy, self.session.tf_session()
      self.policy = make(sess, self._size, self._low, self._high)

  def action_generator(
    self, observations, hidden_state, masks, deterministic=False
  ) -> dict[str, Any]:
    with self.session.profiler('graph'):
      observed = self.find_observation(observations, [self._size], self._key)
      actions = self.policy.act(observed)
    if not deterministic:
      actions = self._explore(actions, self._noise.step(masks))
    return {'actions': actions, 'hidden_state': hidden_state, 'artifacts': {}}

  def explore(
    self, actions: np.ndarray, states: Sequence[Any]
  ) -> tuple[np.ndarray, list[np.ndarray]]:
    """Add noise to actions outside of a training.

    Args:
      actions: Actions [batch, size].
      states: Noise of the step before for each row, None for none.

    Returns:
      Tuple of the actions and the noise of each row.
    """
    noise = copy.copy(self._noise)
    noise.value = np.stack(
      [np.zeros(len(self._low)) if x is None else x for x in states]
    )
    masks = np.array([[x is not None] for x in states], np.float32)
    value = noise.step(masks)
    return self._explore(actions, value), list(value)

  def _explore(self, actions, noise):
    scale = (self._high - self._low) / 2
    noisy = actions + scale * noise
    return np.clip(noisy, self._low, self._high).astype(np.float32)

  def learn(self, batch: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Improve the policy on transitions [batch, ...]."""
    prefix = f'/observations/{self._key}'
    actions, flags = f'/agents/{self.name}/actions', ('/rewards', '/terminals')
    keys = prefix, actions, *flags, f'{prefix}_2'
    actor, critic = self.policy.update(*base.pick(batch, *keys))
    return {'loss_actor': actor, 'loss_critic': critic}

  def update(self) -> None:
    for _ in range(self._n_update):
      for key, value in self.step().items():
        self.session.monitor(f'/update/{key}', value)

  def state_dict(self) -> dict[str, Any]:
    return {'noise': self._noise.value}

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    self._noise.value = state['noise']


class Noise:
  """Ornstein-Uhlenbeck noise that restarts at its mean with each episode.

    x_{t+1} = x_t + theta (mu - x_t) + sigma e_t,  e_t ~ N(0, 1)

  Source: exploration of Lillicrap et al. (2016), equation 7 and section 7.

  Args:
    size: Number of dimensions.
    mu: Mean.
    theta: Fraction by which it returns to the mean in each step.
    sigma: Standard deviation of its steps.
  """

  def __init__(
    self, size: int, mu: float = 0.0, theta: float = 0.15, sigma: float = 0.2
  ) -> None:
    self._mu, self._theta, self._sigma, self._size = mu, theta, sigma, size
    self.value: np.ndarray | None = None

  def step(self, masks: np.ndarray) -> np.ndarray:
    """Return noise [workers, size]; rows with mask 0 restart at the mean."""
    shape = (len(masks), self._size)
    before = np.full(shape, self._mu) if self.value is None else self.value
    value = np.where(masks > 0, before, self._mu)
    value = value + self._theta * (self._mu - value)
    value = value + self._sigma * np.random.standard_normal(shape)
    self.value = value
    return value


@references.nameable
def actor_network(
  observ: tf.Tensor,
  low: np.ndarray,
  high: np.ndarray,
  layers: Sequence = (256, 256, 256),
) -> tf.Tensor:
  """Return actions [batch, size] within bounds.

  Args:
    observ: Observations [batch, size].
    low: Lower action bounds [size].
    high: Upper action bounds [size].
    layers: Units of the hidden layers.
  """
  hidden = observ
  for units in layers:
    hidden = _hidden(hidden, units)
  scale, center = (high - low) / 2, (high + low) / 2
  return _last(hidden, len(low), tf.tanh) * scale + center


@references.nameable
def critic_network(observ: tf.Tensor, action: tf.Tensor) -> tf.Tensor:
  """Return values [batch, 1] of observations and actions [batch, size]."""
  hidden = tf.concat(
    [_hidden(_hidden(observ, 256), 128), _hidden(action, 128)], 1
  )
  return _last(_hidden(hidden, 256), 1)


@references.nameable
class DDPGPolicy:
  """Actor and critic for continuous actions.

  With state s, action a, reward r, next state s', terminal flag d, actor pi,
  critic Q and their target networks pi', Q':

    y = r + gamma (1 - d) Q'(s', pi'(s'))
    critic: mean smooth L1 of Q(s, a) - y,  actor: -sum Q(s, pi(s))

  Source: Lillicrap et al. (2016), arXiv:1509.02971, equations 4 to 6. Smooth L1
  in place of the square, and the sum in place of the mean, are digideep's.

  Args:
    sess: TensorFlow session whose graph to build in.
    observation_size: Size of observation vectors.
    low: Lower action bounds [size].
    high: Upper action bounds [size].
    gamma: Discount factor.
    actor_rate: Learning rate of the actor.
    critic_rate: Learning rate of the critic.
    polyak: Weight of the current networks in the moving average of the targets.
    actor: Function from observations and bounds to actions.
    critic: Function from observations and actions to values [batch, 1].

  Raises:
    UsageError: If a number is out of range.

  Attributes:
    observed: Placeholder of observations [batch, size].
    chosen: Tensor of their actions [batch, size], without noise.
  """

  def __init__(
    self,
    sess: Any,
    observation_size: int,
    low: np.ndarray,
    high: np.ndarray,
    *,
    gamma: float = 0.99,
    actor_rate: float = 1e-4,
    critic_rate: float = 1e-3,
    polyak: float = 0.001,
    actor: Callable[..., tf.Tensor] = actor_network,
    critic: Callable[..., tf.Tensor] = critic_network,
  ) -> None:
    for name, function in (('actor', actor), ('critic', critic)):
      toolbox.check_function(function, f'The {name} of the policy')
    rates = {'actor': actor_rate, 'critic': critic_rate}
    self._rates = {
      k: schema.convert(schema.Rate, v, f'{k}_rate') for k, v in rates.items()
    }
    self._polyak = schema.convert(schema.Fraction, polyak, 'polyak')
    gamma = schema.convert(schema.Fraction, gamma, 'gamma')
    self._functions: dict[str, dict[str, Any]] = {
      'actor': {'func_': actor, 'low': low, 'high': high},
      'critic': {'func_': critic},
    }
    observ, next_observ = (
      tf.placeholder(tf.float32, (None, observation_size), x)
      for x in ('observ', 'next_observ')
    )
    action = tf.placeholder(tf.float32, (None, len(low)), 'action')
    reward = tf.placeholder(tf.float32, (None, 1), 'reward')
    terminal = tf.placeholder(tf.float32, (None, 1), 'terminal')
    networks = self._make_networks()
    chosen = networks['actor'](observ)
    value = networks['critic'](observ, action)
    targets = self._make_networks('target_', networks)
    future = targets['critic'](next_observ, targets['actor'](next_observ))
    y = reward + gamma * (1 - terminal) * future
    train = self._define_training(networks, targets, observ, value, y)
    make = functools.partial(callables.make_function, sess=sess)
    self.observed, self.chosen = observ, chosen
    self._act = make([chosen], [observ])
    self._evaluate = make([value[:, 0]], [observ, action])
    self._train = make(train, [observ, action, reward, terminal, next_observ])

  def act(self, observ: np.ndarray) -> np.ndarray:
    """Return actions [batch, size] without noise."""
    return self._act(observ)[0]

  def evaluate(self, observ: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """Return the values Q(s, a) [batch]."""
    return self._evaluate(observ, actions)[0]

  def update(
    self,
    observ: np.ndarray,
    action: np.ndarray,
    reward: np.ndarray,
    terminal: np.ndarray,
    next_observ: np.ndarray,
  ) -> tuple[float, float]:
    """Run one optimization step of critic, actor and targets.

    Args:
      observ: Observations [batch, size].
      action: Actions [batch, size].
      reward: Rewards [batch, 1].
      terminal: Whether the task has ended, 0 or 1, [batch, 1].
      next_observ: Observations after the actions [batch, size].

    Returns:
      Losses of actor and critic.
    """
    return self._train(observ, action, reward, terminal, next_observ)

  def _make_networks(self, prefix='', sources=None):
    """Templates of actor and critic.

    Args:
      prefix: Prefix of their scope names.
      sources: Networks whose initial values to copy.
    """
    return {
      key: tf.make_template(
        prefix + key,
        custom_getter_=sources and _copy_getter(sources[key], prefix),
        **value,
      )
      for key, value in self._functions.items()
    }

  def _define_training(self, networks, targets, observ, value, y):
    """Losses of a step: critic, then actor, then the copies."""
    critic_loss = _smooth_l1(value - tf.stop_gradient(y))
    train_critic = self._minimize(critic_loss, networks, 'critic')
    with tf.control_dependencies([train_critic]):
      values = networks['critic'](observ, networks['actor'](observ))
      actor_loss = -tf.reduce_sum(values)
      train_actor = self._minimize(actor_loss, networks, 'actor')
    with tf.control_dependencies([train_actor]):
      follow = [
        tf.assign_add(target, self._polyak * (source - target))
        for key in networks
        for source, target in zip(
          networks[key].variables, targets[key].variables, strict=True
        )
      ]
    with tf.control_dependencies(follow):
      return tf.identity(actor_loss), tf.identity(critic_loss)

  def _minimize(self, loss, networks, name):
    optimizer = tf.train.AdamOptimizer(
      self._rates[name], name=f'{name}_optimizer'
    )
    variables = networks[name].trainable_variables
    return optimizer.minimize(loss, var_list=variables)


def _hidden(inputs, units):
  # Uniform within one over the root of the number of inputs.
  uniform = tf.variance_scaling_initializer(1 / 3, 'fan_in', 'uniform')
  return layers_lib.dense(inputs, units, tf.nn.relu, kernel_initializer=uniform)


def _last(inputs, units, activation=None):
  uniform = tf.random_uniform_initializer(-0.003, 0.003)
  return layers_lib.dense(inputs, units, activation, kernel_initializer=uniform)


def _smooth_l1(error):
  size = tf.abs(error)
  return tf.reduce_mean(tf.where(size < 1, 0.5 * error**2, size - 0.5))


def _copy_getter(network, prefix):
  """Return a getter of variables that start as copies of a network."""
  starts = {x.op.name: x.initial_value for x in network.variables}

  def get(getter, name, **kwargs):
    start = starts[name.replace(prefix, '', 1)]
    kwargs.update(initializer=start, shape=None, trainable=False)
    return getter(name, **kwargs)

  return get
