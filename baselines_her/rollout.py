"""Episodes of several environments with a single policy."""

import contextlib
from collections import defaultdict, deque
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from agents.envs import contract, guard
from agents.run import errors
from baselines_her import policies, util, vec_env

# How often an episode with NaN is played again before the training ends.
_MOST_REPETITIONS = 10
_HISTORIES = 'success_history', 'Q_history', 'return_history'

Profiler = Callable[[str], contextlib.AbstractContextManager[Any]]


class RolloutWorker:
  """Plays episodes in all environments at once and keeps statistics.

  Args:
    venv: Vector of environments; see `baselines_her.vec_env`. It is reset.
    policy: Agent with `get_actions`, and perhaps `fixed_weights`.
    dims: Dict of the sizes of `o`, `g`, `u` and `info_*`.
    logger: Object with a method `warn`.
    T: Time limit of the environments.
    rollout_batch_size: Number of environments.
    exploit: Whether to act without exploration.
    use_target_net: Whether to act with the target network.
    compute_Q: Whether to record the values of the actions.
    noise_eps: See `DDPG.get_actions`.
    random_eps: See `DDPG.get_actions`.
    history_len: Number of rollouts in the statistics.
    render: Unused, kept from the original.
    monitor: Unused, kept from the original.
    profiler: Function from `graph` or `envstep` to a context around choosing
      actions or stepping environments.
    **kwargs: Ignored.

  Attributes:
    n_episodes: Number of episodes so far.
    returns: Sums of rewards [environments] of the last rollout.
    success_history: Success rates of the last rollouts.
    Q_history: Mean values of the last rollouts.
    return_history: Mean returns of the last rollouts.
  """

  def __init__(
    self,
    venv: Any,
    policy: Any,
    dims: dict[str, int],
    logger: Any,
    T: int,
    rollout_batch_size: int = 1,
    exploit: bool = False,
    use_target_net: bool = False,
    compute_Q: bool = False,
    noise_eps: float = 0,
    random_eps: float = 0,
    history_len: int = 100,
    render: bool = False,
    monitor: bool = False,
    *,
    profiler: Profiler = contextlib.nullcontext,
    **kwargs: Any,
  ):
    self.venv, self.policy, self.dims = venv, policy, dims
    self.logger = logger
    self.T, self.rollout_batch_size = T, rollout_batch_size
    self.exploit = exploit
    self.use_target_net = use_target_net
    self.compute_Q = compute_Q
    self.noise_eps, self.random_eps = noise_eps, random_eps
    self.info_keys = [
      x.removeprefix('info_') for x in dims if x.startswith('info_')
    ]
    self.success_history: deque[Any] = deque(maxlen=history_len)
    self.Q_history: deque[Any] = deque(maxlen=history_len)
    self.return_history: deque[Any] = deque(maxlen=history_len)
    self.n_episodes = 0
    self._profiler = profiler
    self.reset_all_rollouts()

  def reset_all_rollouts(self) -> None:
    """Start new episodes in all environments."""
    with self._profiler('envstep'):
      obs = self.venv.reset()
    self.o = np.array(obs['observation'], np.float32)
    self.ag = np.array(obs['achieved_goal'], np.float32)
    self.g = obs['desired_goal']
    self.returns = np.zeros(len(self.g))

  def generate_rollouts(self) -> util.Episode:
    """Play one episode in each environment.

    As in the original, the last of the T steps is taken but not stored, because
    it resets the environments, and success is that of the step before. Where
    that does not tell success, it is that of the last one.

    Episodes that end before step T are stored with their last step, and filled
    with their last state and actions of zero; success is that of their last
    step.

    Returns:
      Dict of arrays [environments, time, size]: `o` and `ag` with T time steps,
      `u`, `g` and `info_*` with T - 1. If an episode has ended before step T,
      also `length` [environments], the numbers of transitions.

    Raises:
      EnvError: If the environments return NaN repeatedly, change their
        interface, or do not end episodes in step T.
    """
    fix = getattr(self.policy, 'fixed_weights', contextlib.nullcontext)
    for _ in range(_MOST_REPETITIONS):
      self.reset_all_rollouts()
      try:
        with fix(self.use_target_net):
          episode, successes, Qs, lengths = self._play()
        break
      except FloatingPointError as error:
        problem = error.args[0]
        self.logger.warn(
          'NaN caught during rollout generation. Trying again...'
        )
    else:
      raise errors.EnvError(
        f'Environment {self._name} returned NaN as {problem}, in '
        f'{_MOST_REPETITIONS} episodes in a row; fix the environment.'
      )
    guard.check_finite(self.returns, 'reward', self._name)
    guard.check_finite(np.array(successes), 'success', self._name)
    self.success_history.append(np.mean(successes))
    self.return_history.append(np.mean(self.returns))
    if self.compute_Q:
      self.Q_history.append(np.mean(np.concatenate(Qs)))
    self.n_episodes += self.rollout_batch_size
    result = util.convert_episode_to_batch_major(episode)
    if (lengths < self.T - 1).any():
      result['length'] = lengths
    return result

  def clear_history(self) -> None:
    """Clear the statistics."""
    for history in self._histories.values():
      history.clear()

  def current_success_rate(self) -> float:
    """Return the mean success rate of the last rollouts."""
    return _mean(self.success_history)

  def current_mean_Q(self) -> float:
    """Return the mean value of the last rollouts."""
    return _mean(self.Q_history)

  def save_policy(self, path: str) -> None:
    """Write the policy, see `policies.save`."""
    policies.save(self.policy, path)

  def logs(self, prefix: str = 'worker') -> list[tuple[str, float]]:
    """Return names and values of the statistics."""
    values = [('success_rate', self.current_success_rate())]
    if self.compute_Q:
      values.append(('mean_Q', self.current_mean_Q()))
    values.append(('episode', self.n_episodes))
    start = f'{prefix.rstrip("/")}/' if prefix else ''
    return [(start + key, value) for key, value in values]

  def state_dict(self) -> dict[str, Any]:
    """Return counters and statistics for checkpoints."""
    histories = {name: list(x) for name, x in self._histories.items()}
    return {'n_episodes': self.n_episodes, **histories}

  def load_state_dict(self, state: dict[str, Any]) -> None:
    """Restore the result of `state_dict`."""
    self.n_episodes = state['n_episodes']
    self.clear_history()
    for name, history in self._histories.items():
      history.extend(state[name])

  def _play(self) -> tuple[dict[str, list], list[float], list, np.ndarray]:
    """Step until the episodes end.

    Returns:
      Tuple of lists over time by key, of the successes of the episodes, of the
      values of all actions, and of the numbers of transitions.

    Raises:
      FloatingPointError: If an observation is NaN; says which.
    """
    episode: dict[str, list] = defaultdict(list)
    successes: list[float | None] = []
    Qs: list[Any] = []
    ends = _Ends(len(self.o), self.T)
    now = dict(zip(contract.GOAL_KEYS, (self.o, self.ag, self.g)))
    self._check_observation(now, 'in reset')
    for step in range(1, self.T + 1):
      with self._profiler('graph'):
        u, Q = self._act()
      u = np.where(ends.ended[:, None], 0, u)
      if Q is not None:
        Qs.append(Q[~ends.ended])
      with self._profiler('envstep'):
        obs, rewards, dones, infos = self.venv.step(u)
      self.returns += np.where(ends.ended, 0, rewards)
      if step == self.T:
        self._check_end(dones | ends.ended)
        successes = [
          contract.find_success(info) if told is None and not over else told
          for info, told, over in zip(infos, successes, ends.ended)
        ]
        break
      obs, infos = ends.hold(step, obs, dones, infos)
      self._check_observation(obs, f'in step {step}')
      successes = [contract.find_success(x) for x in infos]
      for key in self.info_keys:
        episode[f'info_{key}'].append(self._read_info(infos, key, step))
      row = {'o': self.o, 'ag': self.ag, 'u': u, 'g': self.g}
      for key, value in row.items():
        episode[key].append(value.copy())
      self.o[...] = obs['observation']
      self.ag[...] = obs['achieved_goal']
      if ends.ended.all():
        self._fill(episode, self.T - 1 - step)
        break
    episode['o'].append(self.o.copy())
    episode['ag'].append(self.ag.copy())
    return episode, [x or 0.0 for x in successes], Qs, ends.lengths

  def _fill(self, episode: dict[str, list], count: int) -> None:
    """Append the same number of entries to all lists over time."""
    now = {'o': self.o, 'ag': self.ag}
    for key, values in episode.items():
      value = np.zeros_like(values[-1]) if key == 'u' else values[-1]
      values.extend([now.get(key, value).copy() for _ in range(count)])

  def _act(self) -> tuple[np.ndarray, np.ndarray | None]:
    """Return actions [environments, size] and, if wanted, their values."""
    result = self.policy.get_actions(
      self.o,
      self.ag,
      self.g,
      compute_Q=self.compute_Q,
      noise_eps=0.0 if self.exploit else self.noise_eps,
      random_eps=0.0 if self.exploit else self.random_eps,
      use_target_net=self.use_target_net,
    )
    u, Q = result if self.compute_Q else (result, None)
    return u.reshape(len(self.o), -1), Q

  def _check_end(self, dones: np.ndarray) -> None:
    """Check that all episodes have ended in step T, as the replay requires."""
    if not dones.all():
      raise errors.EnvError(
        f'Environment {self._name} does not end an episode in step {self.T}, '
        f'but HER needs episodes of at most T = {self.T} steps; set --T to its '
        'time limit (max_episode_steps).'
      )

  def _read_info(self, infos, key, step):
    size = self.dims[f'info_{key}']
    rows = [
      contract.read_numbers(x, key, size, self._name, step) for x in infos
    ]
    return np.array(rows, np.float32)

  def _check_observation(self, obs: dict[str, np.ndarray], when: str) -> None:
    for key in contract.GOAL_KEYS:
      if np.isnan(np.vdot(obs[key], obs[key])):
        raise FloatingPointError(f'{key} {when}')

  @property
  def _histories(self):
    return {x: vars(self)[x] for x in _HISTORIES}

  @property
  def _name(self) -> str:
    return guard.find_name(self.venv)


class _Ends:
  """Episodes that end before step T.

  Their environments are stepped on, but not looked at.

  Args:
    count: Number of environments.
    T: Number of steps of whole episodes.

  Attributes:
    ended: Whether the episode of each environment has ended early.
    lengths: Number of transitions of each.
  """

  def __init__(self, count: int, T: int):
    self.ended = np.zeros(count, bool)
    self.lengths = np.full(count, T - 1)
    self._last: list[dict[str, Any]] = [{}] * count

  def hold(
    self,
    step: int,
    obs: dict[str, np.ndarray],
    dones: np.ndarray,
    infos: list[dict[str, Any]],
  ) -> tuple[dict[str, np.ndarray], list[dict[str, Any]]]:
    """Return observations and infos, the last ones of ended episodes."""
    for index in np.flatnonzero(dones & ~self.ended):
      self.ended[index], self.lengths[index] = True, step
      self._last[index] = infos[index]
    if not self.ended.any():
      return obs, infos
    infos = [self._last[i] if x else infos[i] for i, x in enumerate(self.ended)]
    # New arrays, as those of first observations may be of integers.
    obs = {
      key: np.array(
        [
          infos[i][vec_env.LAST][key] if x else values[i]
          for i, x in enumerate(self.ended)
        ]
      )
      for key, values in obs.items()
    }
    return obs, infos


def make_worker(
  policy: Any,
  venv: Any,
  logger: Any,
  exploit: bool = False,
  profiler: Profiler = contextlib.nullcontext,
) -> RolloutWorker:
  """Create the worker of a `DDPG` agent, for exploration or evaluation."""
  settings = policy.settings
  return RolloutWorker(
    venv,
    policy,
    policy.input_dims,
    logger,
    policy.T,
    venv.num_envs,
    exploit=exploit,
    use_target_net=exploit and settings.test_with_polyak,
    compute_Q=exploit,
    noise_eps=settings.noise_eps,
    random_eps=settings.random_eps,
    profiler=profiler,
  )


def _mean(values: Collection[float]) -> Any:
  return np.mean(list(values)) if values else np.nan
