"""DDPG with hindsight as an agent of the pipeline."""

import numpy as np

from agents.pipeline.agent import AgentBase
from agents.run import errors
from agents.run import references
from baselines_her import config
from baselines_her import her
from baselines_her.pipeline import memory as memory_lib


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

  Attributes:
    policy: The `DDPG` agent.
    explorers: Dict from mode to `HERExplorer`, which add themselves.

  Raises:
    UsageError: If a setting is unknown, or the demonstrations are unreadable.
  """

  def __init__(
    self,
    session,
    memory,
    name='agent',
    *,
    env,
    settings,
    clip_return=True,
    policy_save_interval=5,
    demo_file=None,
  ):
    super().__init__(session, memory, name)
    memory_lib.check_names(session, env, settings)
    if demo_file and not session.is_playing:
      references.check_pickle(demo_file, session.trust)
    params = memory_lib.prepare_params(
      env, settings, make_env=memory['train'].make_env
    )
    if demo_file:
      params['bc_loss'] = 1
    self._noise = {x: params[x] for x in ('noise_eps', 'random_eps')}
    self._test_with_polyak = params['test_with_polyak']
    self._n_batches = params['n_batches']
    self._interval = policy_save_interval
    self._epoch = 0
    self._best = -1.0
    self.explorers = {}
    self.policy = config.configure_ddpg(
      env['dims'],
      params,
      clip_return=clip_return,
      buffer=memory['train'].buffer,
    )
    if self.policy.sess is not session.tf_session():
      raise errors.UsageError(
        f'The scope {self.policy.scope!r} is taken by another agent, so that '
        f'{name!r} would not be saved; give it another one in its settings.'
      )
    if demo_file and not session.is_playing:
      self.policy.init_demo_buffer(demo_file)

  def action_generator(
    self, observations, hidden_state, masks, deterministic=False
  ):
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
    keys = ('observation', 'achieved_goal', 'desired_goal')
    noise = dict.fromkeys(self._noise, 0.0) if deterministic else self._noise
    with self.session.profiler('graph'):
      actions, Q = self.policy.get_actions(
        *(observations[key] for key in keys),
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

  def random_action_generator(self, num_workers):
    limit = self.policy.max_u
    shape = (num_workers, self.policy.dimu)
    return {
      'actions': np.random.uniform(-limit, limit, shape),
      'hidden_state': self.reset_hidden_state(num_workers),
      'artifacts': {},
    }

  def step(self):
    loss, values = self.policy.train()
    return {'loss_critic': float(loss), 'q': float(np.mean(values))}

  def update(self):
    """Learn from the episodes stored last, then from all of them."""
    profiler, policy = self.session.profiler, self.policy
    with profiler('graph'):
      policy.update_stats(self.memory['train'].last_chunk())
    # Many steps in one run of the graph, with the numbers of `step`.
    with profiler('sample'):
      batches = policy.sample_batches(self._n_batches)
    with profiler('graph'):
      losses = policy.train_on(batches)
      policy.update_target_net()
    for loss in losses:
      self.session.monitor('/update/loss_critic', loss)

  def epoch_done(self):
    """Keep the policy if it is good; compare the ranks; begin new statistics.

    Success counts for the best policy only in epochs with a test.
    """
    tester = self.explorers.get('test') or self.explorers['train']
    tested = 'test' in self.explorers
    rate = tester.worker.current_success_rate() if tested else np.nan
    for name, value in self.policy.logs():
      self.session.monitor(f'/{name}', value)
    saver = her.PolicySaver(
      self.session.folder('policies'),
      self._interval,
      tester.worker,
      self.session.logger.info,
    )
    rate = float(her.mpi_average(rate))
    self._best = saver.save(self._epoch, rate, self._best)
    her.check_seeds(self.session.comm)
    self.policy.check_synced()
    self._epoch += 1
    for explorer in self.explorers.values():
      explorer.worker.clear_history()

  def state_dict(self):
    optimisers = self.policy.Q_adam, self.policy.pi_adam
    return {
      'adam': [x.get_slots() for x in optimisers],
      'epoch': self._epoch,
      'best_success_rate': self._best,
    }

  def load_state_dict(self, state):
    optimisers = self.policy.Q_adam, self.policy.pi_adam
    for optimiser, slots in zip(optimisers, state['adam']):
      optimiser.set_slots(slots)
    self._epoch = state['epoch']
    self._best = state['best_success_rate']
