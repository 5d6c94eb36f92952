"""Proximal policy optimisation in the pipeline: a face of `agents.ppo`."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from agents.pipeline import agent
from agents.run import references
from agents.tools.tf1 import tf


@references.nameable
class PPOAgent(agent.AgentBase):
  """Lets `agents.ppo.policy.Policy` act and learn outside of its graph.

  It acts, remembers and learns in the same order as in `agents.train_ppo`;
  explorer and memory replace the simulation and the memory in the graph. The
  policy is improved when there are enough episodes; those that end in the
  same step but do not fit are dropped, as in the original.

  Source: see `agents.ppo.policy.Policy`.

  Args:
    session: See `AgentBase`, also for `memory`, `name` and `sampler`.
    memory: Usually with an `agents.pipeline.episodes.EpisodeMemory`.
    name: Name in the tree of parameters.
    observation_space: Plain description of the observations, a box.
    action_space: Plain description of the actions, a box.
    policy: Function that makes a `Policy`, or anything with its methods, of
      the shape of observations, the size of actions, and a bool tensor for
      training.
    sampler: Returns whole episodes, or None if there are too few.

  Raises:
    UsageError: If the spaces or the number of processes do not suit.
  """

  def __init__(
    self,
    session: Any,
    memory: Mapping[str, Any],
    name: str = 'agent',
    *,
    observation_space: Mapping[str, Any] | None = None,
    action_space: Mapping[str, Any] | None = None,
    policy: Callable[..., Any],
    sampler: agent.Sampler,
  ) -> None:
    super().__init__(session, memory, name, action_space, sampler)
    agent.check_processes(session.comm, name, 'use agents.train_ppo')
    observ_shape = agent.find_shape(observation_space, 'observations', False)
    action_shape = agent.find_shape(action_space, 'actions')
    # Callables spare the preparations of each `Session.run`.
    self._make = session.tf_session().make_callable
    self._define_graph(policy, observ_shape, action_shape)

  def action_generator(
    self,
    observations: Mapping[str, np.ndarray],
    hidden_state: np.ndarray,
    masks: np.ndarray,
    deterministic: bool = False,
  ) -> dict[str, Any]:
    """Sample actions, or take their means; see `AgentBase`.

    Args:
      observations: Dict with `agent`, float array [workers, ...].
      hidden_state: Float32 array [workers, hidden size].
      masks: Float32 array [workers, 1].
      deterministic: Whether to take the means.

    Returns:
      Dict; the artifacts are `mean` and `logstd`, float32 [workers, size].
    """
    with self.session.profiler('graph'):
      action, mean, logstd, state = self._act(
        not deterministic, observations['agent'], hidden_state * masks
      )
    return {
      'actions': action,
      'hidden_state': state,
      'artifacts': {'mean': mean, 'logstd': logstd},
    }

  def remember(
    self, observations: Mapping[str, np.ndarray], rewards: np.ndarray
  ) -> None:
    with self.session.profiler('graph'):
      self._remember(observations['agent'], rewards)

  def learn(self, batch: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Improve the policy by episodes [episodes, time, ...]."""
    prefix = f'/agents/{self.name}'
    summary = self._update(
      batch['/observations/agent'],
      batch[f'{prefix}/actions'],
      batch[f'{prefix}/artifacts/mean'],
      batch[f'{prefix}/artifacts/logstd'],
      batch['/rewards'][..., 0],
      batch['/lengths'],
    )
    length = float(np.mean(batch['/lengths']))
    return {**_scalars(summary), 'episode_length': length}

  def update(self) -> None:
    for key, value in self.step().items():
      self.session.monitor(f'/update/{self.name}/{key}', value)

  def _define_graph(self, policy, observ_shape, action_shape):
    """Build the policy and the functions that execute parts of it."""
    with tf.device('/cpu:0'):
      sampling = tf.placeholder(tf.bool, (), f'{self.name}/sampling')
      with tf.variable_scope(self.name):
        self.policy = policy(observ_shape, action_shape[0], sampling)
      self.hidden_size = self.policy.state_size or 1
      with tf.name_scope(self.name):
        self._define_steps(sampling, observ_shape)
        self._define_update([observ_shape, *[action_shape] * 3, []])

  def _define_steps(self, sampling, observ_shape):
    observ = tf.placeholder(tf.float32, [None, *observ_shape], 'observ')
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

  def _define_update(self, shapes):
    config = self.policy.config
    leading = [config.update_every, config.max_length]
    data = [tf.placeholder(tf.float32, [*leading, *x]) for x in shapes]
    length = tf.placeholder(tf.int32, leading[:1], 'length')
    summary = self.policy.update(data, length)
    self._update = self._make(summary, [*data, length])


def _scalars(summary):
  """Dict from the last part of the tag to value, of a serialised summary."""
  return {
    x.tag.rpartition('/')[2]: x.simple_value
    for x in tf.Summary.FromString(summary).value
    if x.HasField('simple_value')
  }
