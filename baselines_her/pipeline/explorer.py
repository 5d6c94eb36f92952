"""Rollouts of entire episodes as an explorer of the pipeline."""

from collections.abc import Mapping
from typing import Any

from agents.pipeline import session as session_lib
from agents.pipeline.base import ExplorerBase
from agents.run import references
from baselines_her import envs, rollout, vec_env
from baselines_her.pipeline.agent import HERAgent
from baselines_her.settings import Settings
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

  def __init__(
    self,
    session: session_lib.Session,
    agents: dict[str, HERAgent],
    mode: str = 'train',
  ):
    super().__init__(session, agents, mode, win_size=-1)
    (self._agent,) = agents.values()
    memory, exploits = self._agent.memory['train'], mode != 'train'
    settings, task = memory.settings, memory.task
    self._n_rollouts = settings.n_test_rollouts if mode == 'test' else 1
    self.venv = self._make_venv(task.name, memory.env['seed'], settings)
    policy, logger = self._agent.policy, session.logger
    self.worker = rollout.make_worker(policy, self.venv, logger, exploits)
    self._time('graph', self.worker, '_act')

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
      self._agent.success_rate = worker.current_success_rate()
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

  def _make_venv(
    self, name: str, seed: int | None, settings: Settings
  ) -> vec_env.VecEnv:
    agent, session = self._agent, self.session
    if self.mode != 'eval' and agent.venv:
      return agent.venv
    if envs.resolve(name) != name:
      session.logger.warn(
        f'{name} is no longer supported; using {envs.resolve(name)}.'
      )
    folder, limit = session.folder('monitor'), settings.T
    if self.mode == 'eval':
      from agents.envs import window
      from baselines_her import play

      seed = None if seed is None else seed + _EVAL_SEED
      shown = session.comm.Get_rank() == 0 and window.has_display()
      if shown or session.path:
        videos = f'{session.folder("videos")}/'
        options = {'folder': folder, 'time_limit': limit}
        return play.make_viewed_env(name, seed, shown, videos, **options)
    agent.venv = vec_env.make_vec_env(
      name,
      'robotics',
      1 if self.mode == 'eval' else settings.rollout_batch_size,
      seed,
      folder=folder,
      time_limit=limit,
    )
    self._time('envstep', agent.venv, 'step', 'reset')
    return agent.venv

  def _time(self, scope: str, owner: Any, *names: str) -> None:
    """Let the profiler time methods of an object."""
    for name in names:
      timed = self.session.profiler(scope)(getattr(owner, name))
      setattr(owner, name, timed)
