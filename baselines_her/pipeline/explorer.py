"""Rollouts of entire episodes as an explorer of the pipeline."""

from collections.abc import Mapping
from typing import Any

from agents.envs import window
from agents.pipeline import session as session_lib
from agents.pipeline.base import ExplorerBase
from agents.run import references
from baselines_her import play, rollout
from baselines_her.pipeline.agent import HERAgent
from baselines_her.util import Episode

# What is shown begins elsewhere than what was trained on.
_EVAL_SEED = 101


@references.nameable
class HERExplorer(ExplorerBase):
  """Owns a `RolloutWorker`.

  The explorer for playing (`eval`) opens a window or writes one video per
  episode.

  Args:
    session: Session that the explorer runs in.
    agents: Dict with a single agent, a `HERAgent`, by name.
    mode: One of `train`, `test` and `eval`.

  Attributes:
    worker: The `RolloutWorker`.
    venv: Vector of environments of the worker.
  """

  scores = '/success/{}', '/q/{}'

  def __init__(
    self,
    session: session_lib.Session,
    agents: dict[str, HERAgent],
    mode: str = 'train',
  ):
    super().__init__(session, agents, mode, win_size=-1)
    (agent,) = agents.values()
    self._task = agent.task
    is_test = mode == 'test'
    self._n_rollouts = agent.task.settings.n_test_rollouts if is_test else 1
    self.venv = self._view() if mode == 'eval' else agent.task.venv
    self.worker = rollout.make_worker(
      agent.policy,
      self.venv,
      session.logger,
      exploit=mode != 'train',
      profiler=session.profiler,
    )

  def update(self) -> Episode:
    """Play episodes.

    Returns:
      Episodes of the last rollout, one per environment; see
      `RolloutWorker.generate_rollouts`. There are no rewards, because they are
      computed when transitions are sampled.
    """
    worker, monitor = self.worker, self.session.monitor
    for _ in range(self._n_rollouts):
      episode = worker.generate_rollouts()
      self.n_episode = worker.n_episodes
      self.timesteps += worker.T * worker.rollout_batch_size
      self._set_meta()
      monitor(f'/success/{self.mode}', worker.success_history[-1])
      if worker.compute_Q:
        monitor(f'/q/{self.mode}', worker.Q_history[-1])
    if self.mode == 'eval' and hasattr(self.venv, 'finish'):
      self.venv.finish()
    if self.mode == 'test':
      self._task.success_rate = worker.current_success_rate()
    return episode

  def reset(self) -> None:
    """Clear the statistics; every rollout starts new episodes anyway."""
    self.worker.clear_history()

  def close(self) -> None:
    self.venv.close()

  def state_dict(self) -> dict[str, Any]:
    state = {**super().state_dict(), 'worker': self.worker.state_dict()}
    if self.mode == 'train':
      state['envs'] = self.venv.get_states()
    return state

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    super().load_state_dict(state)
    self.worker.load_state_dict(state['worker'])
    if self.mode == 'train':
      self.venv.set_states(state['envs'])

  def _view(self) -> Any:
    """Create an environment that is shown or recorded, if that is possible."""
    task, session = self._task, self.session
    seed = None if task.seed is None else task.seed + _EVAL_SEED
    shown = session.comm.Get_rank() == 0 and window.has_display()
    if not (shown or session.path):
      return task.make_venv(1, seed)
    limit = task.settings.T
    if problem := play.find_problem(task.name, shown, limit):
      session.logger.warn(f'Playing without pictures: {problem}')
      return task.make_venv(1, seed)
    task.tell_version()
    return play.make_viewed_env(
      task.name,
      seed,
      shown,
      f'{session.folder("videos")}/',
      folder=session.folder('monitor'),
      time_limit=limit,
    )
