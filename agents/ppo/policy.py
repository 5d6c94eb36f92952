"""The learning part of PPO, without environments: act, remember, update."""

import collections
import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from agents import configs, networks
from agents.envs import observations
from agents.ppo import normalize, update, utility
from agents.run import errors, references
from agents.tools import attr_dict, saver, scopes
from agents.tools.categorical import Categorical
from agents.tools.diag_normal import DiagNormal
from agents.tools.tf1 import tf

# Settings without which TensorFlow would fail on None.
_NEEDED = (
  'network',
  'optimizer',
  'learning_rate',
  'update_every',
  'update_epochs',
  'max_length',
  'discount',
  'kl_target',
  'kl_cutoff_factor',
  'kl_init_penalty',
)
Decision = collections.namedtuple('Decision', 'action, policy, state')


@references.nameable
class Policy:
  """Network, statistics, penalty and optimizer of PPO.

  `PPOAlgorithm` uses it within the graph of a simulation, the pipeline from
  outside. The code that collects episodes calls `act` and then `remember` for
  every step, and `update` when there are enough episodes.

  Observations and rewards are normalized by the statistics of everything
  remembered so far. Pass unnormalized episodes to `update`; it uses the
  statistics at that time.

  Source: Schulman et al. (2017), arXiv:1707.06347, the variant with an
  adaptive penalty on the divergence from the old policy.

  Args:
    observ_shape: Shape of an observation.
    action_size: Number of action dimensions, or of discrete actions.
    is_training: Bool tensor, whether to sample actions.
    config: AttrDict or dict, see `agents.configs`.
    comm: MPI communicator. With several processes, gradients are computed over
      all of them, and so are statistics after `merge`.
    discrete: Whether actions are discrete, which requires the feed-forward
      network.
    packing: `agents.envs.observations.Packing` if observations are rows of
      bytes.

  Raises:
    UsageError: If the configuration is incomplete, or the network does not
      support the actions.

  Attributes:
    config: The configuration as AttrDict.
    observ_filter: `StreamingNormalize` of vectors; images are unchanged.
    observ_dtype: Type of observations: uint8 for images, otherwise float32.
    reward_filter: `StreamingNormalize` of rewards.
    family: Class of the policy's distributions; its `PARAMETERS` name the
      outputs of the network that it is created from.
    state_size: Number of units of a recurrent network, None for others.
    training_variables: Variables used only in training.
  """

  def __init__(
    self,
    observ_shape: Sequence[int],
    action_size: int,
    is_training: tf.Tensor,
    config: Mapping[str, Any],
    comm: Any = None,
    discrete: bool = False,
    packing: observations.Packing | None = None,
  ) -> None:
    self.config = config = attr_dict.AttrDict(config)
    for key in _NEEDED:
      if config.get(key) is None:
        raise errors.UsageError(
          f'The configuration of PPO has no {key!r}; start from one in '
          'agents.configs.'
        )
    self._is_training = is_training
    self._comm = comm
    images = configs.sees_images(config)
    self.observ_dtype = tf.uint8 if images else tf.float32
    self._packing = packing
    self.observ_filter: Any = normalize.Unchanged()
    vector = observ_shape if packing is None else [packing.size]
    if not images or (packing and packing.size):
      self.observ_filter = normalize.StreamingNormalize(
        tf.zeros(vector), True, True, 5, 'normalize_observ'
      )
    self.reward_filter = normalize.StreamingNormalize(
      tf.zeros(()), False, True, 10, 'normalize_reward'
    )
    gpus = config.use_gpu and utility.available_gpus()
    self._device = '/gpu:0' if gpus else '/cpu:0'
    self.family = Categorical if discrete else DiagNormal
    network = configs.find(config.network)
    # Pairs stand for each other, so that one configuration suits all.
    for heads in (
      (networks.feed_forward_gaussian, networks.feed_forward_categorical),
      (networks.convolutional_gaussian, networks.convolutional_categorical),
    ):
      if network in heads:
        network = heads[int(discrete)]
    self._template = tf.make_template(
      'network', functools.partial(network, config, action_size)
    )
    with tf.device(self._device):
      blank = tf.zeros([1, 1, *observ_shape], self.observ_dtype)
      output = self._network(blank, tf.ones([1]))
    if not set(self.family.PARAMETERS) <= set(output._fields):
      kind = 'discrete' if discrete else 'continuous'
      raise errors.UsageError(
        f'The network {references.name_of(network)} does not support {kind} '
        'actions; omit the parameter network, or choose another one.'
      )
    self.state_size = None
    if output.state is not None:
      self.state_size = output.state.shape.as_list()[1]
    with scopes.uncached_scope('penalty'):
      first = tf.constant_initializer(float(config.kl_init_penalty))
      self._penalty = scopes.variable('penalty', (), tf.float32, first)
    optimizer = configs.find(config.optimizer)
    self._optimizer = optimizer(config.learning_rate)
    outer = tf.get_variable_scope().name
    self._optimizer_scope = f'{outer}/{saver.OPTIMIZER}/'.lstrip('/')

  @property
  def training_variables(self) -> list:
    return [self._penalty, *self._optimizer.variables()]

  def act(self, observ: tf.Tensor, state: tf.Tensor | None = None) -> Decision:
    """Choose actions: samples in training, means or modes otherwise.

    Args:
      observ: Observations [rows, ...].
      state: State of a recurrent network [rows, units]; zero if None.

    Returns:
      `Decision` of the actions, float32 [rows, size] or int32 [rows] if
      discrete, their distribution, and the next state, None if the network has
      none.
    """
    with tf.name_scope('act'):
      observ = self._normalize(observ)
      with tf.device(self._device):
        length = tf.ones([tf.shape(observ)[0]])
        output = self._network(observ[:, None], length, state)
      parameters = [getattr(output, x) for x in self.family.PARAMETERS]
      action = tf.cond(
        self._is_training, output.policy.sample, self.family(*parameters).mode
      )
      action = action[:, 0]
      policy = self.family(*[x[:, 0] for x in parameters])
      return Decision(action, policy, output.state)

  def remember(self, observ: tf.Tensor, reward: tf.Tensor) -> tf.Tensor:
    """Update the statistics with a step.

    Args:
      observ: Observations that the actions were based on [rows, ...].
      reward: Rewards float32 [rows].

    Returns:
      Serialized summary.
    """
    with tf.name_scope('remember'):
      return tf.summary.merge(
        [
          self.observ_filter.update(self.vector(observ)),
          self.reward_filter.update(reward),
        ]
      )

  def vector(self, observ: tf.Tensor) -> tf.Tensor:
    """Return what `observ_filter` normalizes of observations [..., size]."""
    return self._unpack(observ).vector if self._packing else observ

  def merge(self) -> tf.Operation:
    """Combine the statistics with those of the other processes."""
    filters = [self.observ_filter, self.reward_filter]
    merged = [x for x in filters if not isinstance(x, normalize.Unchanged)]
    return normalize.merge(merged, self._comm)

  def update(self, episodes: Sequence[tf.Tensor], length: tf.Tensor) -> Any:
    """Improve the network on some episodes and adapt the penalty.

    Args:
      episodes: Observations [episodes, time, ...], actions, parameters of
        their distributions [episodes, time, size] in the order of `family`, and
        rewards [episodes, time], all unnormalized.
      length: Lengths of the episodes int32 [episodes].

    Returns:
      Serialized summary.
    """
    observ, action, *parameters, reward = episodes
    with tf.device(self._device), tf.name_scope('training'):
      return update.define_update(
        update.Episodes(
          self._normalize(observ),
          action,
          self.family(*parameters),
          self.reward_filter.transform(reward),
          length,
        ),
        self._network,
        self._optimizer,
        self._penalty,
        self.config,
        self._comm,
        self._optimizer_scope,
      )

  def _normalize(self, observ):
    """Normalized observations; rows of bytes stay small until they are used."""
    return observ if self._packing else self.observ_filter.transform(observ)

  def _network(self, observ, length, state=None):
    """Output of the network for observations [rows, time, ...]."""
    if self._packing:
      parts = self._unpack(observ)
      dims = tf.shape(parts.vector)
      size = self._packing.size
      vector = tf.reshape(parts.vector, [-1, size]) if size else parts.vector
      vector = self.observ_filter.transform(vector)
      vector = tf.reshape(vector, dims)
      vector.set_shape(parts.vector.shape)
      observ = parts._replace(vector=vector)
    return self._template(observ, length, state)

  def _unpack(self, rows):
    """Split rows of bytes into `Parts`, images and vectors [..., size]."""
    assert self._packing is not None
    ends = np.cumsum([math.prod(x) for x in self._packing.images])
    *pieces, rest = tf.split(
      rows, [*np.diff([0, *ends]), 4 * self._packing.size], -1
    )
    images = [_reshape(x, y) for x, y in zip(pieces, self._packing.images)]
    rest = _reshape(rest, [self._packing.size, 4])
    return networks.Parts(images, tf.bitcast(rest, tf.float32))


def _reshape(rows, shape):
  """Reshape rows [..., size] to [..., *shape]."""
  reshaped = tf.reshape(rows, tf.concat([tf.shape(rows)[:-1], shape], 0))
  reshaped.set_shape([*rows.shape.as_list()[:-1], *shape])
  return reshaped
