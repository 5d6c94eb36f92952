"""Training with hindsight experience replay: rollouts, updates, evaluation."""

import functools
from collections.abc import Callable, Generator, Iterable
from typing import Any

import numpy as np

from agents.run import files, life, mpi, stopping
from agents.run.training import Record
from baselines_her import config, logger, reports, settings, tf_util
from baselines_her.checkpoints import Checkpoints, Run
from baselines_her.ddpg import DDPG
from baselines_her.mpi import check_seeds, mpi_average
from baselines_her.policies import PolicySaver
from baselines_her.rollout import RolloutWorker, make_worker

_SINGLE_WORKER = (
  '',
  '*** Warning ***',
  'You are running HER with a single MPI worker. The published results used 19 '
  'workers (--num_cpu 19; arXiv 1802.09464, issue 314 of openai/baselines), '
  'which changes more than the speed: gradients and statistics come from '
  'more episodes. Use mpirun -n N.',
  '****************',
  '',
)


def learn(
  *,
  network: Any,
  env: Any,
  total_timesteps: float,
  seed: int | None = None,
  eval_env: Any = None,
  override_params: dict[str, Any] | None = None,
  save_path: str | None = None,
  checkpoint_dir: str | None = None,
  **kwargs: Any,
) -> DDPG:
  """Train an agent and return it.

  Args:
    network: Custom network, see `settings.own_network`. Other values, which
      baselines passes to all algorithms, have no effect.
    env: Vector of goal environments; see `baselines_her.vec_env`.
    total_timesteps: Number of steps in all environments of this rank.
    seed: Seed of everything except the environments.
    eval_env: Environments for evaluation; `env` by default.
    override_params: Settings by name, see `settings.Settings`.
    save_path: Folder for policies; see `PolicySaver`.
    checkpoint_dir: Folder of checkpoints; continues from one if it exists.
    **kwargs: Further settings, such as `replay_strategy` and `gamma`. As in the
      original, those of `settings.Agent` have no effect here.

  Raises:
    UsageError: If a setting is not allowed, or does not fit a run to continue.
    StopRequested: If the user asked to stop, after writing a checkpoint.
  """
  for name in set(kwargs) & set(settings.Agent.names()):
    logger.warn(f'Setting {name} has no effect; put it in override_params.')
    del kwargs[name]
  spec = (getattr(env, 'specs', None) or [env.spec])[0]
  task = config.Task(spec.id, getattr(spec, 'max_episode_steps', None))
  given = {**(override_params or {}), **kwargs, **settings.own_network(network)}
  checkpoint_dir = checkpoint_dir and files.expand(checkpoint_dir)
  run = Run(checkpoint_dir, checkpoint_dir) if checkpoint_dir else None
  params, values, changes = settings.settle(
    task.name, seed, given, run, usual=task.usual
  )
  damaged = run.damaged if run else []
  for note in [*changes, *damaged, *task.notes(values)]:
    logger.warn(note)

  def begin():
    for folder in filter(None, {logger.get_dir(), checkpoint_dir}):
      config.write_params(params, folder)

  return train(
    **prepare(values, task, env, total_timesteps, seed, eval_env),
    save_path=save_path,
    checkpoint_dir=checkpoint_dir,
    checkpoint=run and run.checkpoint,
    begin=begin,
  )


def prepare(
  values: settings.Settings,
  task: config.Task,
  env: Any,
  total_timesteps: float,
  seed: int | None = None,
  eval_env: Any = None,
) -> dict[str, Any]:
  """Seed everything except the environments; create the agent and workers.

  Args:
    values: Settings of the training.
    task: Task of the environments.
    env: See `learn`, also for the other arguments.

  Returns:
    Dict of arguments of `train`.
  """
  comm = mpi.world()
  offset = 1000000 * comm.Get_rank()  # as in the original
  tf_util.set_global_seeds(None if seed is None else seed + offset)
  values = values.complete(task.time_limit, env.num_envs)
  config.log_params({'env_name': task.name, **dict(values)})
  if comm.Get_size() == 1:
    for line in _SINGLE_WORKER:
      logger.detail(line)
  policy = DDPG(
    values,
    task.dims,
    sample_transitions=task.make_sampler(values),
    info=task.info,
  )
  if values.load_path is not None:
    tf_util.load_variables(values.load_path, sess=policy.sess)
  worker = make_worker(policy, env, logger)
  evaluator = make_worker(policy, eval_env or env, logger, exploit=True)
  steps = values.n_cycles * worker.T * env.num_envs
  return {
    'policy': policy,
    'rollout_worker': worker,
    'evaluator': evaluator,
    # Ranks that train for longer than others would wait for them.
    'n_epochs': comm.bcast(int(total_timesteps) // steps),
    'n_test_rollouts': values.n_test_rollouts,
    'n_cycles': values.n_cycles,
    'n_batches': values.n_batches,
    'policy_save_interval': values.policy_save_interval,
    'loaded': values.load_path is not None,
    'demo_file': values.demo_file,
  }


def train(*, policy: DDPG, **arguments: Any) -> DDPG:
  """Train an agent and return it.

  Args:
    policy: `DDPG` agent.
    **arguments: Other arguments of `train_epochs`.

  Raises:
    UsageError: See `train_epochs`, also for `StopRequested`.
  """
  for record in train_epochs(policy=policy, **arguments):
    if isinstance(record, str):
      logger.warn(record)
  return policy


def train_epochs(
  *,
  policy: DDPG,
  rollout_worker: RolloutWorker,
  evaluator: RolloutWorker,
  n_epochs: int,
  n_test_rollouts: int,
  n_cycles: int,
  n_batches: int,
  policy_save_interval: int,
  save_path: str | None,
  demo_file: str | None,
  checkpoint_dir: str | None = None,
  checkpoint: str | None = None,
  loaded: bool = False,
  begin: Callable[[], object] = lambda: None,
  mirrors: Iterable[Any] = (),
  **kwargs: Any,
) -> Generator[Record | str, None, None]:
  """Alternate between cycles of rollouts with updates, and evaluation.

  All ranks must call it with the same arguments.

  Args:
    policy: `DDPG` agent.
    rollout_worker: Worker that explores.
    evaluator: Worker that exploits.
    n_epochs: Total number of epochs.
    n_test_rollouts: Number of rollouts per evaluation.
    n_cycles: Number of cycles per epoch.
    n_batches: Number of updates per cycle.
    policy_save_interval: See `PolicySaver`, also for `save_path`.
    demo_file: Demonstrations, required by an agent with `bc_loss`.
    checkpoint_dir: Folder for checkpoints, or None.
    checkpoint: Path of the checkpoint to continue from, or None.
    loaded: Whether the agent begins with the variables of a file. Without any
      epochs, its policy is saved.
    begin: Function that the first rank calls once the checkpoint has proved to
      fit.
    mirrors: See `agents.run.log.MetricsWriter`.
    **kwargs: Ignored.

  Yields:
    Dict per epoch, with numbers over all ranks: `logdir`, `epoch` from 1,
    `environment_steps` and `episodes` of exploration, `updates`, `return` and
    `test_return`, mean undiscounted returns of episodes, `success_rate` and
    `test_success_rate`, `loss/critic`, and `seconds`. Or a sentence for the
    user if there is nothing to do.

  Raises:
    UsageError: If the demonstrations do not fit.
    StopRequested: If the user asked to stop, after writing a checkpoint.
  """
  logger.info('Training...')
  if policy.demo_buffer is not None:
    assert demo_file, 'bc_loss needs demonstrations'
    policy.init_demo_buffer(demo_file)
  state: dict[str, Any] = {'epoch': 0, 'cycle': 0, 'best_success_rate': -1.0}
  checkpoints = Checkpoints(checkpoint_dir, policy, rollout_worker, evaluator)
  state.update(checkpoints.restore(checkpoint))
  folder = checkpoint_dir and logger.get_dir()
  if mpi.world().Get_rank() == 0:
    begin()
    if folder:
      epoch = state['epoch']
      reports.forget_epochs(folder, epoch, epoch * n_cycles * n_batches)
  saver = PolicySaver(policy, save_path, policy_save_interval, logger.info)

  def run_epochs():
    while state['epoch'] < n_epochs:
      report.begin_epoch()
      losses: list[np.ndarray] = []
      if state['cycle'] == 0:
        rollout_worker.clear_history()
      while state['cycle'] < n_cycles:
        policy.store_episode(rollout_worker.generate_rollouts())
        losses.append(policy.train_many(n_batches))
        policy.update_target_net()
        state['cycle'] += 1
        report.end_cycle()
        checkpoints.check_finite()
        yield None

      # Episodes without exploration, which are not stored.
      report.begin_evaluation()
      evaluator.clear_history()
      for _ in range(n_test_rollouts):
        evaluator.generate_rollouts()

      logs = evaluator.logs('test') + rollout_worker.logs('train')
      means = {k: float(mpi_average(x)) for k, x in logs + policy.logs()}
      lists = {
        'return': rollout_worker.return_history,
        'test_return': evaluator.return_history,
        'loss/critic': losses,
      }
      report.end_epoch(
        means, {k: float(mpi_average(list(x))) for k, x in lists.items()}
      )
      rate = means['test/success_rate']
      best = saver.save(state['epoch'], rate, state['best_success_rate'])
      check_seeds(mpi.world())
      state.update(epoch=state['epoch'] + 1, cycle=0, best_success_rate=best)
      yield report.record.take()

  def save(forced):
    if state['cycle'] and not forced:
      return False
    return checkpoints.save(state, forced or state['epoch'] == n_epochs)

  with reports.Report(
    rollout_worker, n_epochs, n_cycles, n_batches, state, mirrors
  ) as report:
    if loaded and not n_epochs and not checkpoint:
      saver.save_loaded()
    if state['epoch'] >= n_epochs:
      yield report.explain_end()
    comm = mpi.world()
    asked = functools.partial(life.is_asked, comm)
    if (yield from life.run(run_epochs(), save, comm, asked)):
      raise stopping.StopRequested('The user asked to stop.')
  policy.check_synced()
