"""Episodes of several environments with one policy."""

from collections import deque
from collections.abc import Collection
from typing import Any

import numpy as np

from agents.run import errors
from baselines_her import policies, util

# How often an episode with NaN is played again before the training ends.
_MOST_REPETITIONS = 10


class RolloutWorker:
  """Plays episodes in all environments at once and keeps statistics.

  Args:
    venv: Vector of environments; see `baselines_her.vec_env`. It is reset.
    policy: Agent with `get_actions` and `fixed_weights`.
    dims: Dict of the sizes of `o`, `g`, `u` and `info_*`.
    logger: Has `warn`.
    T: Time limit of the environments.
    rollout_batch_size: Number of environments.
    exploit: Whether to act without exploration.
    use_target_net: Whether the target network acts.
    compute_Q: Whether to keep the values of its actions.
    noise_eps: See `DDPG.get_actions`.
    random_eps: See `DDPG.get_actions`.
    history_len: Number of rollouts in the statistics.
    render: Unused; kept for callers of the original.
    monitor: Unused; kept for callers of the original.
    **kwargs: Ignored.

  Attributes:
    n_episodes: Number of episodes so far.
    success_history: Success rates of the last rollouts.
    Q_history: Mean values of the last rollouts.
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
    **kwargs: Any,
  ):
    self.venv = venv
    self.policy = policy
    self.dims = dims
    self.logger = logger
    self.T = T
    self.rollout_batch_size = rollout_batch_size
    self.exploit = exploit
    self.use_target_net = use_target_net
    self.compute_Q = compute_Q
    self.noise_eps = noise_eps
    self.random_eps = random_eps
    self.info_keys = [
      x.removeprefix('info_') for x in dims if x.startswith('info_')
    ]
    self.success_history: deque[float] = deque(maxlen=history_len)
    self.Q_history: deque[float] = deque(maxlen=history_len)
    self.n_episodes = 0
    self.reset_all_rollouts()

  def reset_all_rollouts(self) -> None:
    """Begin new episodes in all environments."""
    obs = self.venv.reset()
    self.o = np.array(obs['observation'], np.float32)
    self.ag = np.array(obs['achieved_goal'], np.float32)
    self.g = obs['desired_goal']

  def generate_rollouts(self) -> util.Episode:
    """Play one episode in each environment.

    As in the original, the last of the T steps is taken but not stored, as
    the environments are reset within it, and success is that of the step
    before.

    Returns:
      Dict of arrays [environments, time, size]: `o` and `ag` of T time steps,
      `u`, `g` and `info_*` of T - 1.

    Raises:
      EnvError: If the environments return NaN again and again, or not what
        they did before, or their episodes have other lengths.
    """
    episode, successes, Qs = self._play_without_nan()
    self.success_history.append(np.mean(successes[-1]))
    if self.compute_Q:
      self.Q_history.append(np.mean(Qs))
    self.n_episodes += self.rollout_batch_size
    return util.convert_episode_to_batch_major(episode)

  def clear_history(self) -> None:
    """Begin new statistics."""
    self.success_history.clear()
    self.Q_history.clear()

  def current_success_rate(self) -> float:
    """Return the mean success of the last rollouts."""
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
    if prefix and not prefix.endswith('/'):
      prefix += '/'
    return [(prefix + key, value) for key, value in values]

  def state_dict(self) -> dict[str, Any]:
    """Return counters and statistics, for checkpoints."""
    return {
      'n_episodes': self.n_episodes,
      'success_history': list(self.success_history),
      'Q_history': list(self.Q_history),
    }

  def load_state_dict(self, state: dict[str, Any]) -> None:
    """Undo `state_dict`."""
    self.n_episodes = state['n_episodes']
    self.clear_history()
    self.success_history.extend(state['success_history'])
    self.Q_history.extend(state['Q_history'])

  def _play_without_nan(self) -> tuple[dict[str, list], list, list]:
    """Play until there is no NaN, as the original does, but not for ever."""
    problem = ''
    for _ in range(_MOST_REPETITIONS):
      self.reset_all_rollouts()
      try:
        with self.policy.fixed_weights(self.use_target_net):
          return self._play()
      except FloatingPointError as error:
        problem = str(error)
        self.logger.warn(
          'NaN caught during rollout generation. Trying again...'
        )
    raise errors.EnvError(
      f'Environment {self._name} returns NaN as {problem}, in '
      f'{_MOST_REPETITIONS} episodes in a row; mend it.'
    )

  def _play(self) -> tuple[dict[str, list], list, list]:
    """Step until the end.

    Raises:
      FloatingPointError: If an observation is NaN; says which.
    """
    episode: dict[str, list] = {key: [] for key in ('o', 'u', 'g', 'ag')}
    episode.update({f'info_{key}': [] for key in self.info_keys})
    successes: list[list[float]] = []
    Qs: list[np.ndarray] = []
    _check_numbers(self.o, self.ag, self.g, 0)
    for step in range(1, self.T + 1):
      u = self._act(Qs)
      obs, _, dones, infos = self.venv.step(u)
      if dones.any() or step == self.T:
        self._check_end(dones, step)
        break
      self._check_shapes(obs, step)
      _check_numbers(
        obs['observation'], obs['achieved_goal'], obs['desired_goal'], step
      )
      successes.append([float(x.get('is_success', 0.0)) for x in infos])
      for key in self.info_keys:
        values = [np.ravel(x[key]) for x in infos]
        episode[f'info_{key}'].append(np.array(values, np.float32))
      for key, value in (
        ('o', self.o),
        ('ag', self.ag),
        ('u', u),
        ('g', self.g),
      ):
        episode[key].append(value.copy())
      self.o[...] = obs['observation']
      self.ag[...] = obs['achieved_goal']
    episode['o'].append(self.o.copy())
    episode['ag'].append(self.ag.copy())
    return episode, successes, Qs

  def _check_end(self, dones: np.ndarray, step: int) -> None:
    """Make sure that all episodes end in step T, which the replay relies on."""
    if step == self.T and dones.all():
      return
    what = 'ends' if dones.any() else 'does not end'
    raise errors.EnvError(
      f'Environment {self._name} {what} an episode in step {step}, but HER '
      f'needs episodes of T = {self.T} steps; let it end by its time limit '
      'only (max_episode_steps), and set --T if the limit is another one.'
    )

  def _check_shapes(self, obs: dict[str, np.ndarray], step: int) -> None:
    for key, value in (('observation', self.o), ('achieved_goal', self.ag)):
      if obs[key].shape != value.shape:
        raise errors.EnvError(
          f'Environment {self._name} returns {key} of shape '
          f'{obs[key].shape[1:]} in step {step}, but of {value.shape[1:]} '
          'before; its observations have to keep their shapes.'
        )

  @property
  def _name(self) -> str:
    return getattr(getattr(self.venv, 'spec', None), 'id', 'without a name')

  def _act(self, Qs: list[np.ndarray]) -> np.ndarray:
    """Choose actions [environments, size] for the current observations."""
    result = self.policy.get_actions(
      self.o,
      self.ag,
      self.g,
      compute_Q=self.compute_Q,
      noise_eps=0.0 if self.exploit else self.noise_eps,
      random_eps=0.0 if self.exploit else self.random_eps,
      use_target_net=self.use_target_net,
    )
    if self.compute_Q:
      u, Q = result
      Qs.append(Q)
    else:
      u = result
    return u.reshape(1, -1) if u.ndim == 1 else u


def _check_numbers(
  o: np.ndarray, ag: np.ndarray, g: np.ndarray, step: int
) -> None:
  """Raise a FloatingPointError that says what is NaN, if anything is."""
  values = {'observation': o, 'achieved_goal': ag, 'desired_goal': g}
  for key, value in values.items():
    if np.isnan(np.vdot(value, value)):
      when = f'in step {step}' if step else 'when it is reset'
      raise FloatingPointError(f'{key} {when}')


def _mean(values: Collection[float]) -> Any:
  return np.mean(list(values)) if values else np.nan
