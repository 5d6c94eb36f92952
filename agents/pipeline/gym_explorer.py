"""Explorer of environments of gymnasium and its relatives."""

import functools
import os
from collections.abc import Mapping
from importlib import util
from typing import Any, Literal

import numpy as np

from agents.envs import window
from agents.pipeline import (
  chunks,
  env_config,
  env_pool,
  explorer,
  normalizers,
  worker,
)
from agents.run import errors, references, schema
from agents.run.schema import (
  Amount,
  Count,
  Flag,
  Fraction,
  Positive,
  Whole,
  setting,
)


class ExplorerSettings(schema.Settings):
  """Arguments of a `GymExplorer`.

  As counting the first episodes to finish prefers short ones, each worker has
  its share of `n_episodes`, rounded up. Without `quota`, the update ends with
  the step in which the last of that many episodes has ended, no matter whose;
  the others go on in the next chunk.

  By default, a single environment that does not render with OpenGL runs in
  the current process, and several of them in a process per core.
  """

  env: dict[str, Any] = setting({}, 'see `env_config.make`')
  num_workers: Positive = setting(1, 'number of environments')
  n_steps: Count | None = setting(None, 'steps per update')
  n_episodes: Count | None = setting(None, 'episodes per update')
  quota: Flag = setting(True, 'split n_episodes evenly over the workers')
  final_action: Flag = setting(False, 'also act in the half-step')
  warm_start: Count = setting(0, 'frames with random actions')
  deterministic: Flag | None = setting(
    None, 'act without exploration; by default outside training'
  )
  do_reset: Flag | None = setting(
    None, 'start new episodes with each update; by default outside training'
  )
  win_size: Whole | None = setting(
    None,
    'episodes per logged value, -1 for one value per epoch; by default '
    '10 in training, otherwise all episodes of an update',
  )
  seed: Whole | None = setting(
    0, 'seed of the first environment; the others count up'
  )
  processes: Count | Literal['auto'] | None = setting(
    'auto', 'worker processes; 0 to use this process, null for one per core'
  )
  record: Flag | None = setting(
    None, 'record each episode as a video; by default in `eval`'
  )
  normalize_observations: Flag = setting(False, 'see `normalizers`')
  normalize_rewards: Flag = setting(False, 'see `normalizers`')
  clip: Amount = setting(10.0, 'largest normalised magnitude')
  gamma: Fraction = setting(0.99, 'discount for normalising rewards')
  extra_env_kwargs: dict[str, Any] | None = setting(
    None, 'further arguments for the environment'
  )

  def episodes_per_worker(self) -> int:
    """Return the share of each worker, 0 if there is none."""
    return -(-(self.n_episodes or 0) // self.num_workers) if self.quota else 0

  def find_window(self, mode: str) -> int:
    """Return the number of episodes per line of the monitor in a mode."""
    if self.win_size is not None:
      return self.win_size
    if mode == 'train':
      return 10
    return self.episodes_per_worker() * self.num_workers or -1

  def in_mode(self, mode: str) -> 'ExplorerSettings':
    """Return settings whose defaults are those of a mode.

    Args:
      mode: One of `train`, `test` and `eval`.
    """
    defaults = {
      'deterministic': mode != 'train',
      'do_reset': mode != 'train',
      'record': mode == 'eval',
    }
    missing = {k: v for k, v in defaults.items() if getattr(self, k) is None}
    return self.model_copy(update=missing)


@references.nameable
class GymExplorer(explorer.ExplorerBase):
  """Steps several environments together, which reset themselves.

  An update lasts until it has made `n_steps` steps and each worker has
  finished its share of `n_episodes`. The chunk has these keys, with the
  leading dimensions [workers, T + 1]; index T is a half-step that observes:

    /observations/<path>        before acting; `agent` is the only path
                                unless observations are dictionaries
    /masks                      [1] 0 where an episode begins, else 1
    /rewards                    [1] of the action at the same index
    /terminals, /truncations    [1] 1 where the environment, or a limit of
                                time, has ended the episode after the action
    /infos/<key>                what the step told, flat, numbers only
    /final_observations/<path>  after a step that ended an episode; only if
                                there was one
    /agents/<a>/actions
    /agents/<a>/hidden_state    that the agent acted with
    /agents/<a>/artifacts/<k>

  Unknown values are NaN or, for types without NaN, zero; see `chunks.Chunk`.
  `/terminals` and `/truncations` are 0 in the half-step.

  Args:
    session: Session that the explorer runs in.
    agents: Dict from name to agent. Several agents need an environment with
      a dictionary of actions, one for each name.
    mode: One of `train`, `test` and `eval`.
    **settings: Values of `ExplorerSettings`.

  Raises:
    UsageError: If the settings do not fit together or to the environment.
  """

  def __init__(
    self,
    session: Any,
    agents: Mapping[str, Any],
    mode: str = 'train',
    **settings: Any,
  ) -> None:
    called = f'Setting {{!r}} of the {mode} explorer'
    self._settings = checked = ExplorerSettings.model_construct(
      **ExplorerSettings.check(settings, called)
    ).in_mode(mode)
    if not (checked.n_steps or checked.n_episodes):
      raise errors.UsageError(
        f'The {mode} explorer has neither n_steps nor n_episodes; give it the '
        'number of steps or episodes per update.'
      )
    super().__init__(session, agents, mode, checked.find_window(mode))
    self._num_workers = checked.num_workers
    self._n_steps = checked.n_steps or 0
    self._n_episodes = checked.n_episodes or 0
    self._quota = checked.episodes_per_worker()
    self._normalize_observations = self._normalize_rewards = None
    if checked.normalize_observations:
      self._normalize_observations = normalizers.ObservationNormalizer(
        checked.clip
      )
    if checked.normalize_rewards:
      self._normalize_rewards = normalizers.RewardNormalizer(
        checked.gamma, checked.clip
      )
    self._observations: Any = None
    self._masks: Any = None
    self._hidden: Any = None
    self._zeros, self._ones = _constant_masks(checked.num_workers)
    self._was_reset = False
    self._has_window = self._wants_window()
    self._envs = env_pool.EnvPool(
      self._define_workers(), self._count_processes()
    )
    self._check_agents()

  def update(self) -> dict[str, np.ndarray]:
    if self._masks is None or (self._settings.do_reset and not self._was_reset):
      self.reset()
    self._was_reset = False
    profiler = self.session.profiler
    chunk = chunks.Chunk(
      self._num_workers, not self._n_episodes and self._n_steps
    )
    finished = np.zeros(self._num_workers, int)
    time = 0
    while time < self._n_steps or not self._has_enough(finished):
      with profiler('prestep'):
        actions = self._act(chunk, time)
      with profiler('envstep'):
        results = self._envs.step(actions)
      with profiler('poststep'):
        self._receive(chunk, time, finished, *results)
      time += 1
    with profiler('prestep'):
      self._end_with_half_step(chunk, time)
    self._set_meta()
    if self.mode != 'train' and self.win_size > 0:
      self.session.monitor.discard_key(f'/reward/{self.mode}/episodic')
    return chunk.finish(time)

  def reset(self) -> None:
    if self._was_reset:
      return
    self._set_observations(self._envs.reset())
    self._masks = self._zeros
    self._hidden = {
      name: agent.reset_hidden_state(self._num_workers)
      for name, agent in self.agents.items()
    }
    if self._normalize_rewards:
      self._normalize_rewards.reset()
    self._was_reset = True

  def close(self) -> None:
    self._envs.close()

  def export_normalizers(self) -> dict[str, Any]:
    found = {
      'observations': self._normalize_observations,
      'rewards': self._normalize_rewards,
    }
    return {k: v.state_dict() for k, v in found.items() if v}

  def import_normalizers(self, state: Mapping[str, Any]) -> None:
    if self._normalize_observations and 'observations' in state:
      self._normalize_observations.load_state_dict(state['observations'])
    if self._normalize_rewards and 'rewards' in state:
      self._normalize_rewards.load_state_dict(state['rewards'])
    # What was observed already is scaled by what was known before.
    self._was_reset = False

  def state_dict(self) -> dict[str, Any]:
    state = {
      **super().state_dict(),
      'normalizers': self.export_normalizers(),
      'envs': self._envs.state_dicts(),
    }
    if self._masks is not None:
      state['now'] = {
        'observations': self._observations,
        'masks': self._masks,
        'hidden': self._hidden,
        'was_reset': self._was_reset,
      }
    return state

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Restore the state; episodes go on where environments can do that.

    Raises:
      UsageError: If the number of workers differs.
    """
    if len(state['envs']) != self._num_workers:
      raise errors.UsageError(
        f'The checkpoint has {len(state["envs"])} workers in mode '
        f'{self.mode!r}, but {self._num_workers} are asked for; use the same '
        'number.'
      )
    super().load_state_dict(state)
    self.import_normalizers(state['normalizers'])
    begun = self._envs.load_state_dicts(state['envs'])
    if 'now' not in state:
      return
    now = state['now']
    self._observations = {
      k: np.array(v) for k, v in now['observations'].items()
    }
    self._masks = np.array(now['masks'], np.float32)
    self._hidden = {k: np.array(v) for k, v in now['hidden'].items()}
    self._was_reset = bool(now['was_reset'])
    for row, observation in enumerate(begun):
      if observation is not None:
        self._restart(row, observation)

  def _wants_window(self):
    """Whether what is played can be shown in a window, and is to be."""
    session = self.session
    if not session.is_playing or session.comm.Get_rank() > 0:
      return False
    if not window.has_display():
      return False
    if not util.find_spec('pygame'):
      session.logger.info('For a window: pip install pygame.')
      return False
    return True

  def _count_processes(self):
    """Number of processes, None for one per core."""
    settings = self._settings
    if settings.processes != 'auto':
      return settings.processes
    isolated = env_config.needs_process(
      settings.env, bool(settings.record) or self._has_window
    )
    return 0 if settings.num_workers == 1 and not isolated else None

  def _define_workers(self):
    settings, session = self._settings, self.session
    # As the runner seeds the ranks of MPI, each has episodes of its own.
    first_seed = (settings.seed or 0) + 1000000 * session.comm.Get_rank()
    csv_folder = session.folder('monitor')
    video_folder = session.folder('videos') if settings.record else None
    if csv_folder:
      csv_folder = os.path.join(csv_folder, self.mode)
      os.makedirs(csv_folder, exist_ok=True)
    return [
      functools.partial(
        worker.Worker,
        settings.env,
        None if settings.seed is None else first_seed + rank,
        csv_folder and os.path.join(csv_folder, f'{rank}.monitor.csv'),
        video_folder and os.path.join(video_folder, str(rank)),
        settings.extra_env_kwargs,
        self._has_window and rank == 0,
      )
      for rank in range(settings.num_workers)
    ]

  def _check_agents(self):
    spaces = self._envs.description['action_space']
    if set(self.agents) == set(spaces):
      return
    if len(self.agents) != 1 or set(spaces) != {'agent'}:
      self.close()
      raise errors.UsageError(
        f'The environment takes actions of {", ".join(sorted(spaces))}, but '
        f'the agents are {", ".join(sorted(self.agents))}; name the agents '
        'like the actions.'
      )

  def _observe(self, chunk, time):
    for path, value in self._observations.items():
      chunk.put(time, f'/observations/{path}', value)
    chunk.put(time, '/masks', self._masks)

  def _act(self, chunk, time):
    """Note what is observed and done; returns the actions by agent."""
    self._observe(chunk, time)
    actions = {}
    for name, agent in self.agents.items():
      if self.timesteps < self._settings.warm_start:
        result = agent.random_action_generator(self._num_workers)
      else:
        result = agent.action_generator(
          self._observations,
          self._hidden[name],
          self._masks,
          self._settings.deterministic,
        )
      actions[name] = np.asarray(result['actions'])
      chunk.put(time, f'/agents/{name}/actions', actions[name])
      chunk.put(time, f'/agents/{name}/hidden_state', self._hidden[name])
      for key, value in (result.get('artifacts') or {}).items():
        chunk.put(time, f'/agents/{name}/artifacts/{key}', value)
      self._hidden[name] = result['hidden_state']
    return actions

  def _has_enough(self, finished):
    """Whether the episodes that each worker has finished suffice."""
    if self._quota:
      return finished.min() >= self._quota
    return finished.sum() >= self._n_episodes

  def _end_with_half_step(self, chunk, time):
    """Note what the next update will begin with."""
    if self._settings.final_action:
      hidden = dict(self._hidden)
      self._act(chunk, time)
      # The next update acts on the same observation.
      self._hidden = hidden
    else:
      self._observe(chunk, time)
    for key in ('/terminals', '/truncations'):
      chunk.put(time, key, self._zeros)

  def _receive(
    self, chunk, time, finished, observations, rewards, dones, infos
  ):
    """Note what came of a step."""
    self.steps += 1
    self.timesteps += self._num_workers
    ends: Any = (self._zeros, self._zeros)
    self._masks = self._ones
    if dones.any():
      ends = np.zeros((2, self._num_workers, 1), np.float32)
    for row, info in infos.items():
      for key, value in info.get('infos', {}).items():
        chunk.put_row(time, f'/infos/{key}', row, value)
      if dones[row]:
        ends[int(info['truncated'])][row] = 1
        self._note_end(chunk, time, row, info, finished)
    if dones.any():
      self._masks = 1 - ends.sum(0)
    if self._normalize_rewards:
      if self.mode == 'train':
        self._normalize_rewards.update(rewards, dones)
      rewards = self._normalize_rewards.transform(rewards)
    if self.mode == 'train':
      for agent in self.agents.values():
        agent.remember(self._observations, rewards)
    chunk.put(time, '/rewards', rewards[:, None])
    chunk.put(time, '/terminals', ends[0])
    chunk.put(time, '/truncations', ends[1])
    self._set_observations(observations)

  def _note_end(self, chunk, time, row, info, finished):
    final = info['final']
    self._check_numbers({k: v[None] for k, v in final.items()}, row)
    if self._normalize_observations:
      final = self._normalize_observations.transform(final)
    for path, value in final.items():
      chunk.put_row(time, f'/final_observations/{path}', row, value)
    finished[row] += 1
    # Episodes beyond the share of a worker do not count.
    if not self._quota or self.mode == 'train' or finished[row] <= self._quota:
      self._report_episode(float(info['infos']['episode/r']))

  def _check_numbers(self, observations, first_row=0):
    for path, value in observations.items():
      if value.dtype.kind == 'f' and np.isnan(value).any():
        row = first_row + int(np.argwhere(np.isnan(value))[0, 0])
        raise ValueError(
          f'Worker {row} of the {self.mode} explorer observed NaN in '
          f'/observations/{path} after step {self.steps}.'
        )

  def _set_observations(self, observations):
    self._check_numbers(observations)
    if self._normalize_observations:
      if self.mode == 'train':
        self._normalize_observations.update(observations)
      observations = self._normalize_observations.transform(observations)
    self._observations = observations

  def _restart(self, row, observation):
    """Begin a new episode in one row."""
    observation = {k: v[None] for k, v in observation.items()}
    if self._normalize_observations:
      observation = self._normalize_observations.transform(observation)
    for path, value in observation.items():
      self._observations[path][row] = value[0]
    self._masks[row] = 0
    if self._normalize_rewards:
      # Workers are alike: either all of them go on, or none does.
      self._normalize_rewards.reset()


def _constant_masks(num_workers):
  """Read-only arrays [workers, 1] of zeros and of ones."""
  masks = [np.full((num_workers, 1), x, np.float32) for x in (0, 1)]
  for mask in masks:
    mask.flags.writeable = False
  return masks
