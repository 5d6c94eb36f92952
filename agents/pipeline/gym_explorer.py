"""Explorer for environments of gymnasium and compatible ones."""

import functools
import json
import math
import os
from collections.abc import Mapping
from importlib import util
from typing import Any

import numpy as np

from agents.envs import probe, vector, window
from agents.pipeline import base, chunks, env_config, normalizers, worker
from agents.run import errors, references, schema, stopping
from agents.run.schema import Amount, Count, Flag, Fraction, Positive, Whole

# What an agent returns in any case.
_RESULTS = {'actions', 'hidden_state'}
# Steps after which to say that an update waits for the end of an episode.
_MANY_STEPS = 10000


class ExplorerSettings(schema.Settings):
  """Arguments of a `GymExplorer`.

  With `quota`, each worker has an equal share of `n_episodes`, rounded up,
  because counting the first episodes to finish favors short ones. Without it,
  an update ends with the step in which the last of that many episodes has
  ended, of any worker; other episodes continue in the next chunk.

  Attributes:
    env: See `env_config.make`.
    num_workers: Number of environments.
    n_steps: Steps per update.
    n_episodes: Episodes per update.
    quota: Split `n_episodes` evenly over the workers.
    final_action: Also choose an action in the half-step.
    warm_start: Frames with random actions.
    deterministic: Act without exploration; by default except in training.
    do_reset: Start new episodes in each update; by default except in training.
    win_size: Episodes per logged value, -1 for one value per epoch; by default
      10 in training, otherwise all episodes of an update.
    seed: Seed of the first environment; environment i uses this plus i.
    processes: Worker processes; 0 to use this process. By default one per core,
      but 0 for a single environment that does not render with OpenGL.
    record: Record each episode as a video; by default in `eval`.
    normalize_observations: See `normalizers`.
    normalize_rewards: See `normalizers`.
    clip: Maximum magnitude of normalized values.
    gamma: Discount factor for normalizing rewards.
  """

  env: dict[str, Any] = {}
  num_workers: Positive = 1
  n_steps: Count = 0
  n_episodes: Count = 0
  quota: Flag = True
  final_action: Flag = False
  warm_start: Count = 0
  deterministic: Flag = False
  do_reset: Flag = False
  win_size: Whole | None = None
  seed: schema.Seed | None = 0
  processes: Count | None = None
  record: Flag = False
  normalize_observations: Flag = False
  normalize_rewards: Flag = False
  clip: Amount = 10.0
  gamma: Fraction = 0.99

  @classmethod
  def make(cls, mode: str, given: Mapping[str, Any]) -> 'ExplorerSettings':
    """Return checked settings, with the defaults of a mode."""
    tests = mode != 'train'
    usual = {'deterministic': tests, 'do_reset': tests}
    usual['record'] = mode == 'eval'
    called = f'Setting {{!r}} of the {mode} explorer'
    made = cls.read({**usual, **given}, called)
    if not (made.n_steps or made.n_episodes):
      raise errors.UsageError(
        f'The {mode} explorer has neither n_steps nor n_episodes; set the '
        'number of steps or episodes per update.'
      )
    if made.win_size is None:
      made.win_size = made.share * made.num_workers or -1 if tests else 10
    return made

  @property
  def share(self) -> int:
    """Episodes per worker; 0 if episodes of any worker count."""
    return -(-self.n_episodes // self.num_workers) if self.quota else 0


@references.nameable
class GymExplorer(base.ExplorerBase):
  """Steps several environments together and resets them automatically.

  An update runs until it has taken `n_steps` steps and each worker has
  finished its share of `n_episodes`. The chunk has these keys, with the
  leading dimensions [workers, T + 1]; index T is a half-step that observes:

    /observations/<path>        before acting; `agent` is the only path
                                unless observations are dictionaries
    /masks                      [1] 0 where an episode starts, else 1
    /rewards                    [1] of the action at the same index
    /terminals, /truncations    [1] 1 where the environment, or a time limit,
                                ended the episode after the action
    /infos/<key>                info of the step, flat, numbers only
    /final_observations/<path>  after a step that ended an episode; only if
                                there was one
    /agents/<a>/actions
    /agents/<a>/hidden_state    before the action
    /agents/<a>/artifacts/<k>

  Unknown values are NaN or, for types without NaN, zero; see `chunks.Chunk`.
  `/terminals` and `/truncations` are 0 in the half-step.

  Args:
    session: Session that the explorer runs in.
    agents: Dict from name to agent. Several agents need an environment with
      a dictionary of actions that has one entry per name.
    mode: One of `train`, `test` and `eval`.
    **settings: Values of `ExplorerSettings`.

  Raises:
    UsageError: If the settings are invalid or do not fit the environment.
  """

  def __init__(
    self,
    session: Any,
    agents: Mapping[str, Any],
    mode: str = 'train',
    **settings: Any,
  ) -> None:
    self._settings = made = ExplorerSettings.make(mode, settings)
    super().__init__(session, agents, mode, made.win_size or -1)
    self._num_workers = made.num_workers
    scales: dict[str, Any] = {}
    if made.normalize_observations:
      scales['observations'] = normalizers.ObservationNormalizer(made.clip)
    if made.normalize_rewards:
      scales['rewards'] = normalizers.RewardNormalizer(made.gamma, made.clip)
    self._normalizers = scales
    self._observations: Any = None
    self._masks: Any = None
    self._hidden: dict[str, Any] = {}
    self._was_reset = False
    self._has_window = self._wants_window()
    self._envs = self._make_workers()
    self._check_agents()

  def update(self) -> dict[str, np.ndarray]:
    settings, profiler = self._settings, self.session.profiler
    if self._masks is None or (settings.do_reset and not self._was_reset):
      self.reset()
    self._was_reset = False
    steps = None if settings.n_episodes else settings.n_steps
    chunk = chunks.Chunk(self._num_workers, steps)
    finished = np.zeros(self._num_workers, int)
    time = 0
    while time < settings.n_steps or not self._has_enough(finished):
      with profiler('prestep'):
        actions = self._act(chunk, time)
      with profiler('envstep'):
        parts = self._envs.call('step', actions)
        results = vector.join_transitions(parts)
      with profiler('poststep'):
        self._receive(chunk, time, finished, *results)
      time += 1
      waits = settings.n_episodes and not finished.any()
      # Ranks stop together, after a cycle.
      if waits and time > _MANY_STEPS and self.session.comm.Get_size() == 1:
        stopping.check()
      if waits and time == _MANY_STEPS:
        self.session.logger.warn(
          f'No episode of the {self.mode} explorer has ended in {time} steps, '
          'but it waits for that; if the environment never ends one, stop and '
          'register it with max_episode_steps.'
        )
    with profiler('prestep'):
      self._end_with_half_step(chunk, time)
    self._set_meta()
    if self.mode != 'train' and self.win_size > 0:
      self.session.monitor.discard_key(f'/reward/{self.mode}/episodic')
    return chunk.finish(time)

  def reset(self) -> None:
    if not self._was_reset:
      self._begin(self._envs.reset())

  def close(self) -> None:
    self._envs.close()

  def export_normalizers(self) -> dict[str, Any]:
    return {k: v.state_dict() for k, v in self._normalizers.items()}

  def import_normalizers(self, state: Mapping[str, Any]) -> None:
    """Load the result of `export_normalizers` of another explorer.

    Raises:
      UsageError: If what this one observes is scaled otherwise.
    """
    missing = self._normalizers.keys() - state.keys()
    # Rewards only matter to the explorer that learns.
    missing |= {'observations'} & state.keys() - self._normalizers.keys()
    if missing:
      name = min(missing)
      raise errors.UsageError(
        f'The {self.mode} explorer and the statistics it gets do not both '
        f'normalize {name}; set its normalize_{name} as in the training.'
      )
    for name, normalizer in self._normalizers.items():
      normalizer.load_state_dict(state[name])
    # Observations so far were scaled by the previous statistics: reset.
    self._was_reset = False

  def state_dict(self) -> dict[str, Any]:
    return {
      **super().state_dict(),
      'normalizers': self.export_normalizers(),
      'envs': self._envs.find_states('state_dict'),
      'observations': self._observations,
      'masks': self._masks,
      'hidden': dict(self._hidden),
      'was_reset': self._was_reset,
      'spaces': self._spaces,
    }

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    """Restore the state; episodes continue if the environments support it.

    Raises:
      UsageError: If the number of workers or their spaces differ.
    """
    states = state['envs']
    # Earlier versions did not store spaces.
    if (trained := state.get('spaces', self._spaces)) != self._spaces:
      raise errors.UsageError(
        f'The session was trained with observations and actions {trained}, but '
        f'those of the environment are {self._spaces}; give the environment '
        'that it was trained with, or start a new session.'
      )
    if states is not None and len(states) != self._num_workers:
      raise errors.UsageError(
        f'The checkpoint has {len(states)} workers in mode '
        f'{self.mode!r}, not {self._num_workers}; set num_workers to the '
        'same number.'
      )
    super().load_state_dict(state)
    self.import_normalizers(state['normalizers'])
    if states is None:
      # The workers failed in their processes, and start again.
      return
    begun = self._envs.each('load_state_dict', states)
    self._observations, self._masks = state['observations'], state['masks']
    self._hidden, self._was_reset = dict(state['hidden']), state['was_reset']
    # All workers are alike: either all of them continue, or none does.
    if self._masks is not None and begun[0] is not None:
      self._begin(vector.stack(begun))

  def _wants_window(self):
    """Return whether to show episodes in a window, if there is a display."""
    session = self.session
    first = session.comm.Get_rank() == 0
    if not (session.is_playing and first and window.has_display()):
      return False
    if not util.find_spec('pygame'):
      session.logger.info('To show a window, run pip install pygame.')
      return False
    return True

  def _make_workers(self):
    settings, session = self._settings, self.session
    if self.mode == 'train' and not session.is_loading:
      env_config.try_wrappers(settings.env)
    # Ranks have different episodes; the runner gives them the same distance.
    first_seed = (settings.seed or 0) + 1000000 * session.comm.Get_rank()
    csv_folder = session.folder(os.path.join('monitor', self.mode))
    video_folder = session.folder('videos') if settings.record else None
    render = bool(video_folder) or self._has_window
    create = functools.partial(env_config.make, settings.env, True)
    if render and (problem := probe.find_problem(create)):
      session.logger.warn(f'Playing without pictures: {problem}')
      render, video_folder, self._has_window = False, None, False
    constructors = [
      functools.partial(
        worker.Worker,
        settings.env,
        None if settings.seed is None else first_seed + rank,
        csv_folder and os.path.join(csv_folder, f'{rank}.monitor.csv'),
        video_folder and os.path.join(video_folder, str(rank)),
        self._has_window and rank == 0,
      )
      for rank in range(settings.num_workers)
    ]
    processes = settings.processes
    isolated = env_config.needs_process(settings.env, render)
    if processes is None and settings.num_workers == 1 and not isolated:
      processes = 0
    return vector.Vector(vector.Group, constructors, processes)

  def _check_agents(self):
    observed, spaces = self._envs.get('spaces')[0][0]
    self._spaces = json.dumps([observed, spaces])
    self._action_spaces = spaces
    one = len(self.agents) == 1 and set(spaces) == {'agent'}
    if one:
      self._action_spaces = dict.fromkeys(self.agents, spaces['agent'])
    elif set(self.agents) != set(spaces):
      self.close()
      raise errors.UsageError(
        f'The environment takes actions of {", ".join(sorted(spaces))}, but '
        f'the agents are {", ".join(sorted(self.agents))}; give the agents '
        'the names of the actions.'
      )

  def _read_actions(self, name, result):
    """Actions in the result of an agent, of the size of the environment."""
    if not (isinstance(result, Mapping) and _RESULTS <= result.keys()):
      raise errors.UsageError(
        f'The action_generator of agent {name!r} returns {result!r:.80}; '
        'return a dictionary of actions and hidden_state.'
      )
    actions = np.asarray(result['actions'])
    space, workers = self._action_spaces[name], self._num_workers
    dim = space['dim'] if space['typ'] == 'Box' else []
    size = workers * math.prod(dim)
    if actions.shape[:1] != (workers,) or actions.size != size:
      raise errors.UsageError(
        f'Agent {name!r} chooses actions of shape {actions.shape}, but those '
        f'of the environment have the shape {dim} for each of {workers} '
        'workers; set the dim of its action_space, if it has one, to that '
        'shape.'
      )
    return actions

  def _begin(self, observations):
    """Start episodes in all workers with their initial observations."""
    self._set_observations(observations)
    self._masks = np.zeros((self._num_workers, 1), np.float32)
    self._hidden = {
      name: agent.reset_hidden_state(self._num_workers)
      for name, agent in self.agents.items()
    }
    if 'rewards' in self._normalizers:
      self._normalizers['rewards'].reset()
    self._was_reset = True

  def _observe(self, chunk, time):
    for path, value in self._observations.items():
      chunk.put(time, f'/observations/{path}', value)
    chunk.put(time, '/masks', self._masks)

  def _act(self, chunk, time):
    """Store observations and actions; return the actions by agent."""
    self._observe(chunk, time)
    actions = {}
    for name, agent in self.agents.items():
      if self.timesteps < self._settings.warm_start:
        result = agent.random_action_generator(self._envs, self._num_workers)
      else:
        result = agent.action_generator(
          self._observations,
          self._hidden[name],
          self._masks,
          self._settings.deterministic,
        )
      actions[name] = self._read_actions(name, result)
      chunk.put(time, f'/agents/{name}/actions', actions[name])
      chunk.put(time, f'/agents/{name}/hidden_state', self._hidden[name])
      for key, value in (result.get('artifacts') or {}).items():
        chunk.put(time, f'/agents/{name}/artifacts/{key}', value)
      self._hidden[name] = result['hidden_state']
    return actions

  def _has_enough(self, finished):
    """Whether the episodes that each worker has finished suffice."""
    if self._settings.quota:
      return finished.min() >= self._settings.share
    return finished.sum() >= self._settings.n_episodes

  def _end_with_half_step(self, chunk, time):
    """Store the observations that the next update starts with."""
    if self._settings.final_action:
      hidden = dict(self._hidden)
      self._act(chunk, time)
      # The next update acts on the same observation.
      self._hidden = hidden
    else:
      self._observe(chunk, time)
    for key in ('/terminals', '/truncations'):
      chunk.put(time, key, np.zeros((self._num_workers, 1), np.float32))

  def _receive(
    self, chunk, time, finished, observations, rewards, dones, infos
  ):
    """Store the results of a step."""
    self.timesteps += self._num_workers
    terminals, truncations = np.zeros((2, self._num_workers, 1), np.float32)
    for row, info in enumerate(infos):
      for key, value in info.get('infos', {}).items():
        chunk.put_row(time, f'/infos/{key}', row, value)
      if dones[row]:
        ends = truncations if info['truncated'] else terminals
        ends[row] = 1
        self._note_end(chunk, time, row, info, finished)
    self._masks = 1 - terminals - truncations
    normalizer = self._normalizers.get('rewards')
    if normalizer:
      if self.mode == 'train':
        normalizer.update(rewards, dones)
      rewards = normalizer.transform(rewards)
    if self.mode == 'train':
      for agent in self.agents.values():
        agent.remember(self._observations, rewards)
    chunk.put(time, '/rewards', rewards[:, None])
    chunk.put(time, '/terminals', terminals)
    chunk.put(time, '/truncations', truncations)
    self._set_observations(observations)

  def _note_end(self, chunk, time, row, info, finished):
    final = info['final']
    if 'observations' in self._normalizers:
      final = self._normalizers['observations'].transform(final)
    for path, value in final.items():
      chunk.put_row(time, f'/final_observations/{path}', row, value)
    finished[row] += 1
    # Episodes beyond the share of a worker do not count.
    share = self._settings.share
    if not share or self.mode == 'train' or finished[row] <= share:
      self._report_episode(float(info['infos']['episode/r']))

  def _set_observations(self, observations):
    normalizer = self._normalizers.get('observations')
    if normalizer:
      if self.mode == 'train':
        normalizer.update(observations)
      observations = normalizer.transform(observations)
    self._observations = observations
