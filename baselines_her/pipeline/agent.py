"""DDPG with hindsight as an agent of the pipeline."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from agents.pipeline import session as session_lib
from agents.pipeline.agent import AgentBase
from agents.run import errors, references
from baselines_her import config, her, replay_buffer, rollout
from baselines_her.pipeline import memory as memory_lib


@references.nameable
class HERAgent(AgentBase):
  """Holds a `DDPG` agent, which learns as `baselines_her.her.train` does.

  Args:
    session: Session that the agent runs in.
    memory: Dict with a `HERMemory` as `train`.
    name: Name in the tree of parameters.
    env: Dict of the `name` and the `dims` of the environment.
    settings: Dict of settings of `config.DEFAULT_PARAMS`.
    clip_return: Whether values are limited to what discounting allows.
    policy_save_interval: Epochs between two policies that are kept in the
      folder `policies`, beside the best one; 0 for none.
    demo_file: Demonstrations to imitate, or None. The file is a pickle, which
      can run any program, so it must be trusted.
    policy: Partial of a class such as `ActorCritic`, with the arguments that
      the settings of the environment leave open; by default the settings name
      it.
    sampler: Function from the function of rewards to one that samples
      transitions, see `baselines_her.her_sampler`; by default that of the
      memory.

  Attributes:
    policy: The `DDPG` agent.

  Raises:
    UsageError: If a setting is unknown, or the demonstrations are unreadable.
  """

  def __init__(
    self,
    session: session_lib.Session,
    memory: dict[str, memory_lib.HERMemory],
    name: str = 'agent',
    *,
    env: dict[str, Any],
    settings: dict[str, Any],
    clip_return: bool = True,
    policy_save_interval: int = 5,
    demo_file: str | None = None,
    policy: functools.partial | None = None,
    sampler: Callable[..., replay_buffer.Sampler] | None = None,
  ):
    super().__init__(session, memory, name)
    named, network_args = _describe_networks(policy)
    make_env, buffer = memory['train'].make_env, memory['train'].buffer
    params = memory_lib.prepare_params(
      env, {**settings, **named}, make_env=make_env
    )
    if network_args:
      params['ddpg_params']['network_args'] = network_args
    if sampler:
      buffer.sample_transitions = sampler(config.find_reward(make_env))
    if demo_file:
      params['bc_loss'] = 1
    self._noise = {x: params[x] for x in ('noise_eps', 'random_eps')}
    self._test_with_polyak = params['test_with_polyak']
    self._n_batches = params['n_batches']
    self._interval = policy_save_interval
    self._epoch = 0
    self._best = -1.0
    self._success_rate = np.nan
    self.policy = config.configure_ddpg(
      env['dims'], params, clip_return=clip_return, buffer=buffer
    )
    if self.policy.sess is not session.tf_session():
      raise errors.UsageError(
        f'The scope {self.policy.settings.scope!r} is taken by another agent, '
        f'so that {name!r} would not be saved; give it another one in its '
        'settings.'
      )
    if demo_file and not session.is_playing:
      self.policy.init_demo_buffer(demo_file)
    size, limit = self.policy.dimu, self.policy.settings.max_u
    limits = [[-limit] * size, [limit] * size]
    self.action_space = {'typ': 'Box', 'dim': [size], 'lim': limits}

  def action_generator(
    self,
    observations: Mapping[str, np.ndarray],
    hidden_state: np.ndarray,
    masks: np.ndarray,
    deterministic: bool = False,
  ) -> dict[str, Any]:
    """Choose actions; observations are those of goal environments.

    Args:
      observations: Dict of `observation`, `achieved_goal` and `desired_goal`,
        arrays [workers, size].
      hidden_state: Is returned as it is.
      masks: Has no effect.
      deterministic: Act without exploration.

    Returns:
      Dict of `actions` [workers, size], `hidden_state`, and `artifacts` with
      the values `Q` [workers, 1].
    """
    noise = dict.fromkeys(self._noise, 0.0) if deterministic else self._noise
    with self.session.profiler('graph'):
      actions, Q = self.policy.get_actions(
        observations['observation'],
        observations['achieved_goal'],
        observations['desired_goal'],
        use_target_net=deterministic and self._test_with_polyak,
        compute_Q=True,
        **noise,
      )
    # A single action comes without the dimension of workers.
    actions = actions.reshape(-1, self.policy.dimu)
    return {
      'actions': actions,
      'hidden_state': hidden_state,
      'artifacts': {'Q': Q},
    }

  def step(self) -> dict[str, float]:
    loss, values = self.policy.train()
    return {'loss_critic': float(loss), 'q': float(np.mean(values))}

  def update(self) -> None:
    """Learn from the episodes stored last, then from all of them."""
    profiler, policy = self.session.profiler, self.policy
    with profiler('graph'):
      policy.update_stats(self.memory['train'].last_episodes)
    # Many steps in one run of the graph, with the numbers of `step`.
    with profiler('sample'):
      batches = policy.sample_batches(self._n_batches)
    with profiler('graph'):
      losses = policy.train_on(batches)
      policy.update_target_net()
    for loss in losses:
      self.session.monitor('/update/loss_critic', loss)

  def report_test(self, success_rate: float) -> None:
    """Note the result of a test, which says how good the policy is."""
    self._success_rate = success_rate

  def epoch_done(self) -> None:
    """Keep the policy if it is good, and compare the ranks.

    Success counts for the best policy only in epochs with a test.
    """
    for name, value in self.policy.logs():
      self.session.monitor(f'/{name}', value)
    saver = her.PolicySaver(
      self.session.folder('policies'),
      self._interval,
      functools.partial(rollout.save_policy, self.policy),
      self.session.logger.info,
    )
    rate = float(her.mpi_average(self._success_rate))
    self._success_rate = np.nan
    self._best = saver.save(self._epoch, rate, self._best)
    her.check_seeds(self.session.comm)
    self.policy.check_synced()
    self._epoch += 1

  def state_dict(self) -> dict[str, Any]:
    optimisers = self.policy.Q_adam, self.policy.pi_adam
    return {
      'adam': [x.get_slots() for x in optimisers],
      'epoch': self._epoch,
      'best_success_rate': self._best,
    }

  def load_state_dict(self, state: Mapping[str, Any]) -> None:
    optimisers = self.policy.Q_adam, self.policy.pi_adam
    for optimiser, slots in zip(optimisers, state['adam']):
      optimiser.set_slots(slots)
    self._epoch = state['epoch']
    self._best = state['best_success_rate']


def _describe_networks(
  policy: functools.partial | None,
) -> tuple[dict[str, Any], dict[str, Any]]:
  """Return settings that name a class of networks, and its other arguments.

  A policy that is saved names its networks in this way.
  """
  if policy is None:
    return {}, {}
  args = dict(policy.keywords)
  name = f'{policy.func.__module__}:{policy.func.__qualname__}'
  settings: dict[str, Any] = {'network_class': name}
  for key in ('hidden', 'layers'):
    if key in args:
      settings[key] = args.pop(key)
  return settings, args
