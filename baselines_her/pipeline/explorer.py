"""Rollouts of whole episodes as an explorer of the pipeline."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from agents.envs import window
from agents.pipeline import session as session_lib
from agents.pipeline.explorer import ExplorerBase
from agents.pipeline.profiler import Profiler
from agents.run import references
from baselines_her import config, envs, vec_env, video_recorder
from baselines_her.pipeline.agent import HERAgent
from baselines_her.rollout import RolloutWorker
from baselines_her.util import Episode

# What is shown begins elsewhere than what was trained on.
_EVAL_SEED = 101
# Key of the environments that training and tests share.
_SHARED = 'environments of HER'


@references.nameable
class HERExplorer(ExplorerBase):
  """Holds a `RolloutWorker`.

  Training and tests share their environments, as in the stand-alone training,
  whose numbers depend on it. The explorer that shows (`eval`) opens a window
  or writes one video per episode.

  Args:
    session: Session that the explorer runs in.
    agents: Dict from name to the only agent, a `HERAgent`.
    mode: One of `train`, `test` and `eval`.
    env: Dict of the `name`, the `seed`, the time limit `T` and the `dims` of
      the environment.
    settings: Dict of settings of `config.DEFAULT_PARAMS`.
    n_rollouts: Number of rollouts per update.

  Attributes:
    worker: The `RolloutWorker`.
    venv: Its vector of environments.
  """

  def __init__(
    self,
    session: session_lib.Session,
    agents: dict[str, HERAgent],
    mode: str = 'train',
    *,
    env: dict[str, Any],
    settings: dict[str, Any],
    n_rollouts: int = 1,
  ):
    super().__init__(session, agents, mode, win_size=-1)
    (self._agent,) = agents.values()
    self._n_rollouts = n_rollouts
    self._render = self._choose_render()
    num_envs = 1 if mode == 'eval' else settings['rollout_batch_size']
    # Training and tests share theirs, whichever explorer is made first.
    shared = {} if mode == 'eval' else session.shared
    self._owns_venv = _SHARED not in shared
    if self._owns_venv:
      shared[_SHARED] = self._make_venv(env, num_envs)
    self.venv = shared[_SHARED]
    self.worker = self._make_worker(env, settings, num_envs)
    # Not before now, as the worker resets what it is given.
    recorded = self._render == 'rgb_array'
    self._recorder = self._make_recorder() if recorded else None
    self.worker.venv = _TimedVenv(self._recorder or self.venv, session.profiler)

  def update(self) -> Episode:
    """Play episodes.

    Returns:
      Episodes of the last rollout, one per environment; see
      `RolloutWorker.generate_rollouts`. There are no rewards, as those of
      hindsight are computed when transitions are sampled.
    """
    worker, monitor = self.worker, self.session.monitor
    for _ in range(self._n_rollouts):
      episode = worker.generate_rollouts()
      self.n_episode = worker.n_episodes
      self._count_steps(worker.T, worker.rollout_batch_size)
      monitor(f'/success/{self.mode}', worker.success_history[-1])
      if worker.compute_Q:
        monitor(f'/q/{self.mode}', worker.Q_history[-1])
    if self._recorder:
      with self.session.profiler('poststep'):
        self._recorder.finish()
    if self.mode == 'test':
      self._agent.report_test(worker.current_success_rate())
    return episode

  def reset(self) -> None:
    """Begin new statistics; every rollout begins new episodes anyway."""
    self.worker.clear_history()

  def close(self) -> None:
    if self._owns_venv:
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

  def _make_venv(self, env: dict[str, Any], num_envs: int) -> vec_env.VecEnv:
    name, seed = env['name'], env['seed']
    if envs.resolve(name) != name:
      self.session.logger.warn(
        f'{name} is not runnable any more, using {envs.resolve(name)}.'
      )
    if self.mode == 'eval' and seed is not None:
      seed += _EVAL_SEED
    return vec_env.make_vec_env(
      name,
      'robotics',
      num_envs,
      seed,
      render=self._render,
      folder=self.session.folder('monitor'),
    )

  def _choose_render(self) -> str | None:
    """Choose a mode to render in: to a window, to a video, or not at all."""
    if self.mode != 'eval':
      return None
    if self.session.comm.Get_rank() == 0 and window.has_display():
      return 'human'
    return 'rgb_array' if self.session.path else None

  def _make_worker(
    self, env: dict[str, Any], settings: dict[str, Any], num_envs: int
  ) -> RolloutWorker:
    exploits = self.mode != 'train'
    settings = {**config.DEFAULT_PARAMS, **settings}
    return _TimedWorker(
      self.session.profiler,
      self.venv,
      self._agent.policy,
      env['dims'],
      self.session.logger,
      env['T'],
      num_envs,
      exploit=exploits,
      use_target_net=exploits and settings['test_with_polyak'],
      compute_Q=exploits,
      noise_eps=settings['noise_eps'],
      random_eps=settings['random_eps'],
    )

  def _make_recorder(self) -> video_recorder.VecVideoRecorder:
    """Make a video of the environments from each reset to `finish`."""
    return video_recorder.VecVideoRecorder(
      self.venv, self.session.folder('videos'), lambda step: True, np.inf
    )


class _TimedWorker(RolloutWorker):
  """Worker that tells the profiler when it acts and steps.

  Args:
    profiler: `Profiler`.
    *args: Arguments of `RolloutWorker`.
    **kwargs: Arguments of `RolloutWorker`.
  """

  def __init__(self, profiler: Profiler, *args: Any, **kwargs: Any):
    self._profiler = profiler
    super().__init__(*args, **kwargs)

  def _act(self, Qs: list[np.ndarray]) -> np.ndarray:
    with self._profiler('prestep'), self._profiler('graph'):
      return super()._act(Qs)


class _TimedVenv:
  """Vector of environments whose steps and resets the profiler sees.

  Args:
    venv: Vector of environments.
    profiler: `Profiler`.
  """

  def __init__(self, venv: Any, profiler: Profiler):
    self._venv = venv
    self._profiler = profiler

  def step(self, actions: np.ndarray) -> tuple:
    """Step all environments."""
    with self._profiler('envstep'):
      return self._venv.step(actions)

  def reset(self) -> dict[str, np.ndarray]:
    """Reset all environments."""
    with self._profiler('envstep'):
      return self._venv.reset()
