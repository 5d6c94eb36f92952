"""Proximal policy optimization in the pipeline, based on `agents.ppo`."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from agents.envs import observations as observations_lib
from agents.pipeline import base
from agents.run import errors, log, references
from agents.tools import callables
from agents.tools.tf1 import tf


@references.nameable
class PPOAgent(base.AgentBase):
  """Uses `agents.ppo.policy.Policy` outside of its simulation graph.

  It acts, remembers and learns in the same order as `agents.train_ppo`; the
  explorer and the memory replace the simulation and the memory in the graph.
  The policy is updated when there are enough episodes; surplus episodes that
  end in the same step are dropped, as in the original.

  Source: see `agents.ppo.policy.Policy`.

  Args:
    session: See `AgentBase`.
    memory: See `AgentBase`, usually with an
      `agents.pipeline.episodes.EpisodeMemory`.
    name: See `AgentBase`.
    action_space: Plain description of the actions, a box or discrete.
    sampler: Sampler of entire episodes, None if there are too few.
    observation_space: Plain description of the observations, a box.
    packing: Dict of the fields of `agents.envs.observations.Packing` if
      observations are rows of bytes.
    policy: Function that creates a `Policy`, or an object with its methods,
      from the shape of observations, the size of actions, and a bool tensor
      that is True in training; gets `discrete=True` for discrete actions, whose
      size is their number.

  Raises:
    UsageError: If a space or the number of processes is not supported.
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
    packing: Mapping[str, Any] | None = None,
    policy: Callable[..., Any],
  ) -> None:
    super().__init__(session, memory, name, action_space, sampler)
    base.check_processes(self.session.comm, self.name, 'use agents.train_ppo')
    observ_shape = base.find_shape(observation_space, 'observations', False)
    self._observ_shape = observ_shape
    sess = self.session.tf_session()
    self._make = functools.partial(callables.make_function, sess=sess)
    self._packing: Any = {}
    if packing:
      shapes = tuple(map(tuple, packing['images']))
      self._packing = {
        'packing': observations_lib.Packing(shapes, packing['size'])
      }
    self._define_graph(policy, observ_shape)

  def action_generator(
    self, observations, hidden_state, masks, deterministic=False
  ) -> dict[str, Any]:
    """Sample actions, or return their means; see `AgentBase`.

    The artifacts are the parameters of their distribution, float32 [workers,
    size]: `mean` and `logstd`, or `logits` of discrete actions, which are int32
    [workers].
    """
    with self.session.profiler('graph'):
      observed = self.find_observation(observations, self._observ_shape)
      action, *parameters, state = self._act(
        not deterministic, observed, hidden_state * masks
      )
    return {
      'actions': action,
      'hidden_state': state,
      'artifacts': dict(zip(self.policy.family.PARAMETERS, parameters)),
    }

  def remember(self, observations, rewards) -> None:
    with self.session.profiler('graph'):
      self._remember(observations['agent'], rewards)

  def learn(self, batch: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Improve the policy on episodes [episodes, time, ...]."""
    prefix = f'/agents/{self.name}'
    parameters = [f'artifacts/{x}' for x in self.policy.family.PARAMETERS]
    keys = [f'{prefix}/{x}' for x in ('actions', *parameters)]
    keys = ['/observations/agent', *keys, '/rewards', '/lengths']
    *steps, rewards, lengths = base.pick(batch, *keys)
    config = self.policy.config
    expected, found = (config.update_every, config.max_length), rewards.shape
    if found[:2] != expected:
      raise errors.UsageError(
        f'The batch of agent {self.name!r} has the shape {found[:2]}, but the '
        'config of its policy has the update_every and max_length '
        f'{expected}; make them equal to the count of the sampler and the '
        'max_length of the memory.'
      )
    (summary,) = self._update(*steps, rewards[..., 0], lengths)
    scalars = {
      tag.rpartition('/')[2]: value
      for tag, value in log.read_summary(summary).items()
    }
    return {**scalars, 'episode_length': float(np.mean(lengths))}

  def update(self) -> None:
    for key, value in self.step().items():
      self.session.monitor(f'/update/{self.name}/{key}', value)

  def _define_graph(self, policy, observ_shape):
    """Build the policy and the functions that execute parts of it."""
    space, kind = self.action_space, tf.float32
    action: tuple[Any, tuple[int, ...]]
    options: dict[str, Any] = {}
    if size := base.count_choices(space, 'actions'):
      options, action = {'discrete': True}, (tf.int32, ())
    else:
      (size,) = base.find_shape(space, 'actions')
      action = kind, (size,)
    options = {**options, **self._packing}
    with tf.device('/cpu:0'):
      sampling = tf.placeholder(tf.bool, (), f'{self.name}/sampling')
      with tf.variable_scope(self.name):
        self.policy = policy(observ_shape, size, sampling, **options)
      self.hidden_size = self.policy.state_size or 1
      with tf.name_scope(self.name):
        self._define_steps(sampling, observ_shape)
        parameters = [(kind, (size,))] * len(self.policy.family.PARAMETERS)
        observed = self.policy.observ_dtype, observ_shape
        step = observed, action, *parameters, (kind, ())
        self._define_update(step)

  def _define_steps(self, sampling, observ_shape):
    observ = tf.placeholder(
      self.policy.observ_dtype, [None, *observ_shape], 'observ'
    )
    reward = tf.placeholder(tf.float32, [None], 'reward')
    state = tf.placeholder(tf.float32, [None, self.hidden_size], 'state')
    if self.policy.state_size is None:
      decision = self.policy.act(observ)._replace(state=tf.identity(state))
    else:
      decision = self.policy.act(observ, state)
    outputs = [decision.action, *decision.policy.parameters, decision.state]
    self._act = self._make(outputs, [sampling, observ, state])
    remembered = self.policy.remember(observ, reward)
    self._remember = self._make(remembered.op, [observ, reward])

  def _define_update(self, kinds):
    """Build the update for pairs of dtype and shape of a step."""
    config = self.policy.config
    leading = [config.update_every, config.max_length]
    data = [tf.placeholder(x, [*leading, *y]) for x, y in kinds]
    length = tf.placeholder(tf.int32, leading[:1], 'length')
    summary = self.policy.update(data, length)
    self._update = self._make([summary], [*data, length])
