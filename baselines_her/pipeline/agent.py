"""DDPG with HER as an agent of the pipeline."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from agents.pipeline import session as session_lib
from agents.pipeline.base import AgentBase
from agents.run import errors, references
from baselines_her import ddpg, mpi, policies, tf_util
from baselines_her.pipeline.memory import HERMemory


@references.nameable
class HERAgent(AgentBase):
  """Owns a `DDPG` agent, which learns like `baselines_her.her.train`.

  Args:
    session: Session that the agent runs in.
    memory: Dict with a `HERMemory` as `train`.
    name: Name in the parameter tree.

  Attributes:
    policy: `DDPG` agent.
    task: `Task` of the session.

  Raises:
    UsageError: If the demonstrations are unreadable, or another agent uses the
      same scope.
  """

  memory: dict[str, HERMemory]

  def __init__(
    self,
    session: session_lib.Session,
    memory: dict[str, HERMemory],
    name: str = 'agent',
  ):
    super().__init__(session, memory, name)
    train = errors.find('Memory', 'train', memory)
    buffer, self.task = train.buffer, train.task
    settings = self.task.settings
    self._n_batches = settings.n_batches
    self._epoch = 0
    self._best = -1.0
    self.policy = ddpg.DDPG(
      settings,
      self.task.dims,
      sample_transitions=buffer.sample_transitions,
      buffer=buffer,
      info=self.task.info,
    )
    if self.policy.sess is not session.tf_session():
      raise errors.UsageError(
        f'The scope {settings.scope!r} is used by another agent, so '
        f'{name!r} would not be saved; set another scope.'
      )
    self._saver = policies.PolicySaver(
      self.policy,
      session.folder('policies'),
      settings.policy_save_interval,
      session.logger.info,
    )
    if not session.is_loading and settings.load_path:
      tf_util.load_variables(settings.load_path, sess=self.policy.sess)
    if not session.is_playing and settings.demo_file:
      self.policy.init_demo_buffer(settings.demo_file)

  def update(self) -> None:
    """Train on the newest episodes first, then on all of them."""
    profiler, policy = self.session.profiler, self.policy
    with profiler('graph'):
      policy.update_stats(self.task.episodes)
    with profiler('sample'):
      batches = policy.sample_batches(self._n_batches)
    with profiler('graph'):
      losses = policy.train_on(batches)
      policy.update_target_net()
      # Before acting: errors about NaN actions would name the environment.
      policy.check_finite(self.session.newest_checkpoint)
    for loss in losses:
      self.session.monitor('/update/loss_critic', loss)

  def epoch_done(self) -> None:
    """Save the policy if it is the best or due, and compare the ranks.

    Only epochs with a test can update the best policy.
    """
    for name, value in self.policy.logs():
      self.session.monitor(f'/{name}', value)
    rate = float(mpi.mpi_average(self.task.success_rate))
    self.task.success_rate = np.nan
    self._best = self._saver.save(self._epoch, rate, self._best)
    mpi.check_seeds(self.session.comm)
    self.policy.check_synced()
    self._epoch += 1

  def state_dict(self) -> dict[str, Any]:
    optimizers = self.policy.Q_adam, self.policy.pi_adam
    return {
      'adam': [x.get_slots() for x in optimizers],
      'epoch': self._epoch,
      'best_success_rate': self._best,
    }

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    optimizers = self.policy.Q_adam, self.policy.pi_adam
    for optimizer, slots in zip(optimizers, state['adam']):
      optimizer.set_slots(slots)
    self._epoch = state['epoch']
    self._best = state['best_success_rate']
