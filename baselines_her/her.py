"""Training with hindsight experience replay: rollouts, updates, evaluation."""

import os
from collections.abc import Callable
from collections.abc import Iterable
from typing import TYPE_CHECKING
from typing import Any

import numpy as np

from agents.run import errors
from agents.run import mpi
from agents.run import stopping
from baselines_her import config
from baselines_her import logger
from baselines_her import mpi as her_mpi
from baselines_her import reports
from baselines_her.checkpoints import Checkpoints
from baselines_her.checkpoints import list_checkpoints
from baselines_her.rollout import RolloutWorker

if TYPE_CHECKING:
  from baselines_her.ddpg import DDPG


def learn(
  *,
  network: Any,
  env: Any,
  total_timesteps: float,
  seed: int | None = None,
  eval_env: Any = None,
  replay_strategy: str = 'future',
  policy_save_interval: int = 5,
  clip_return: bool = True,
  demo_file: str | None = None,
  override_params: dict[str, Any] | None = None,
  load_path: str | None = None,
  save_path: str | None = None,
  checkpoint_dir: str | None = None,
  mirrors: Iterable[Any] = (),
  **kwargs: Any,
) -> 'DDPG':
  """Train an agent and return it.

  Args:
    network: Has no effect; baselines passes it to all algorithms.
    env: Vector of goal environments; see `baselines_her.vec_env`.
    total_timesteps: Number of steps in all environments of this rank.
    seed: Seed of everything but the environments.
    eval_env: Environments for evaluation; `env` by default.
    replay_strategy: As for all others, see `declarations.Arguments`.
    save_path: Folder for pickled policies; see `PolicySaver`.
    checkpoint_dir: Folder of checkpoints, to continue from if there is one.
    mirrors: See `agents.run.log.MetricsWriter`.
    **kwargs: Further settings, such as `gamma`. As in the original, those of
      `declarations.Agent` have an effect in `override_params` only.

  Raises:
    UsageError: If a run that is continued had other settings.
    StopRequested: If the user asked to stop, after a checkpoint.
  """
  from baselines_her import tf_util

  offset = 1000000 * mpi.world().Get_rank()
  tf_util.set_global_seeds(None if seed is None else seed + offset)
  task = _find_name(env), replay_strategy, override_params
  given = {**kwargs, 'seed': seed, 'clip_return': clip_return}
  given.update(demo_file=demo_file, load_path=load_path)
  _store_or_compare(config.run_settings(*task, **given), checkpoint_dir)
  params = config.define_params(*task)
  params = _complete_params(params, env.num_envs, demo_file, kwargs)
  dims = config.configure_dims(params)
  agent: Any = {'dims': dims, 'params': params, 'clip_return': clip_return}
  policy = config.configure_ddpg(**agent)
  if load_path is not None:
    tf_util.load_variables(load_path, sess=policy.sess)
  return train(
    policy=policy,
    **_make_workers(env, eval_env or env, policy, dims, params),
    **_count(params, total_timesteps, env.num_envs),
    policy_save_interval=policy_save_interval,
    save_path=save_path,
    demo_file=demo_file,
    checkpoint_dir=checkpoint_dir,
    mirrors=mirrors,
  )


def train(
  *,
  policy: 'DDPG',
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
  mirrors: Iterable[Any] = (),
  **kwargs: Any,
) -> 'DDPG':
  """Alternate between cycles of rollouts with updates, and evaluation.

  All ranks have to call it with the same arguments.

  Args:
    policy: The `DDPG` agent, which is returned.
    rollout_worker: Worker that explores.
    evaluator: Worker that exploits.
    n_epochs: Number of epochs in total.
    n_test_rollouts: Number of rollouts of each evaluation.
    n_cycles: Number of cycles per epoch.
    n_batches: Number of updates per cycle.
    policy_save_interval: See `PolicySaver`, as for `save_path`.
    demo_file: Demonstrations, needed if the agent has `bc_loss`.
    checkpoint_dir: Folder for checkpoints, or None; `mirrors` as for `learn`.
    **kwargs: Ignored.

  Raises:
    UsageError: If the agent has `bc_loss`, but there are no demonstrations.
    StopRequested: If the user asked to stop, after a checkpoint.
  """
  logger.info('Training...')
  _load_demonstrations(policy, demo_file)
  checkpoints = Checkpoints(checkpoint_dir, policy, rollout_worker, evaluator)
  state = _restore(checkpoints, checkpoint_dir)
  saver = PolicySaver(save_path, policy_save_interval, evaluator.save_policy)
  report = reports.Report(
    rollout_worker, n_epochs, n_cycles, n_batches, state, mirrors
  )
  with report:
    if state['epoch'] >= n_epochs > 0:
      _tell_finished(state['epoch'], n_cycles, rollout_worker)
    while state['epoch'] < n_epochs:
      _train_epoch(
        policy, rollout_worker, n_cycles, n_batches, state, report, checkpoints
      )
      _evaluate(evaluator, n_test_rollouts, report)
      _log_epoch(state['epoch'], policy, rollout_worker, evaluator, report)
      rate = float(mpi_average(evaluator.current_success_rate()))
      best = saver.save(state['epoch'], rate, state['best_success_rate'])
      check_seeds(mpi.world())
      state.update(epoch=state['epoch'] + 1, cycle=0, best_success_rate=best)
      checkpoints.save(state, forced=state['epoch'] == n_epochs)
      _stop_if_requested(mpi.world(), state, checkpoints)
  policy.check_synced()
  return policy


def mpi_average(value: Any) -> np.ndarray:
  """Return the mean of a number, or of all entries of a list, over all ranks.

  Ranks may have lists of different lengths, also empty ones, which count as
  one entry of zero, as do lists of zeros.
  """
  values = [
    np.ravel(x) for x in (value if isinstance(value, list) else [value])
  ]
  flat = np.concatenate(values) if values else np.zeros(0)
  if not flat.any():
    flat = np.zeros(1)
  return np.asarray(her_mpi.mpi_moments(flat)[0])


class PolicySaver:
  """Writes pickled policies, from the first rank only.

  Args:
    folder: Folder, created if needed; None to write nothing.
    interval: Epochs between two policies that are kept; 0 for none.
    save_policy: Function that writes the policy to a path.
    tell: Function of a line for the user.
  """

  def __init__(
    self,
    folder: str | None,
    interval: int,
    save_policy: Callable[[str], None],
    tell: Callable[[str], None] = logger.info,
  ):
    is_root = mpi.world().Get_rank() == 0
    self._folder = os.path.expanduser(folder) if folder and is_root else None
    self._interval = interval
    self._save_policy = save_policy
    self._tell = tell

  def save(self, epoch: int, success_rate: float, best: float) -> float:
    """Write what is due after an epoch; return the best success rate."""
    # Ties count as better, since the later policy has learned more.
    better = success_rate >= best
    if self._folder and better:
      path = os.path.join(self._folder, 'policy_best.pkl')
      self._tell(
        f'New best success rate: {success_rate}. Saving policy to {path} ...'
      )
      self._save_policy(path)
      self._save_policy(os.path.join(self._folder, 'policy_latest.pkl'))
    due = self._interval > 0 and epoch % self._interval == 0
    if self._folder and due:
      path = os.path.join(self._folder, f'policy_{epoch}.pkl')
      self._tell(f'Saving periodic policy to {path} ...')
      self._save_policy(path)
    return success_rate if better else best


def _train_epoch(
  policy: 'DDPG',
  worker: RolloutWorker,
  n_cycles: int,
  n_batches: int,
  state: dict[str, Any],
  report: reports.Report,
  checkpoints: Checkpoints,
) -> None:
  """Do all cycles of an epoch that are left."""
  if state['cycle'] == 0:
    worker.clear_history()
  report.training(state['epoch'], state['cycle'])
  while state['cycle'] < n_cycles:
    policy.store_episode(worker.generate_rollouts())
    policy.train_many(n_batches)
    policy.update_target_net()
    state['cycle'] += 1
    report.cycle_done()
    _stop_if_requested(mpi.world(), state, checkpoints)


def _evaluate(
  evaluator: RolloutWorker, n_test_rollouts: int, report: reports.Report
) -> None:
  """Play episodes without exploration, which are not stored."""
  report.evaluating()
  evaluator.clear_history()
  for _ in range(n_test_rollouts):
    evaluator.generate_rollouts()


def _log_epoch(
  epoch: int,
  policy: 'DDPG',
  rollout_worker: RolloutWorker,
  evaluator: RolloutWorker,
  report: reports.Report,
) -> None:
  """Write the row of an epoch, means over all ranks."""
  logger.record_tabular('epoch', epoch)
  for key, value in (
    evaluator.logs('test') + rollout_worker.logs('train') + policy.logs()
  ):
    logger.record_tabular(key, mpi_average(value))
  report.epoch_done(mpi.world())


def _load_demonstrations(policy: 'DDPG', demo_file: str | None) -> None:
  if policy.settings.bc_loss == 0:
    return
  if demo_file is None:
    raise errors.UsageError(
      'Setting bc_loss needs demonstrations; give their file as demo_file.'
    )
  policy.init_demo_buffer(demo_file)


def _restore(
  checkpoints: Checkpoints, checkpoint_dir: str | None
) -> dict[str, Any]:
  """Return the counters of a training that begins or is continued."""
  state: dict[str, Any] = {'epoch': 0, 'cycle': 0, 'best_success_rate': -1.0}
  state.update(checkpoints.restore())
  if checkpoint_dir:
    reports.forget_epochs(logger.get_dir(), state['epoch'])
  return state


def _tell_finished(epochs: int, n_cycles: int, worker: RolloutWorker) -> None:
  """Say that a run is finished, and how to go on."""
  steps = (epochs + 1) * n_cycles * worker.T * worker.rollout_batch_size
  logger.info(
    f'There is nothing to do: the run in {logger.get_dir()} has finished its '
    f'{epochs} epochs. To train it for longer, raise --num_timesteps to '
    f'{steps} or more.'
  )


def _stop_if_requested(
  comm: Any, state: dict[str, Any], checkpoints: Checkpoints
) -> None:
  """Save and stop if the user asked any of the ranks to."""
  requested = stopping.requested()
  if comm.Get_size() > 1:
    requested = any(comm.allgather(requested))
  if requested:
    checkpoints.save(state, forced=True)
    raise stopping.StopRequested('The user asked to stop.')


def check_seeds(comm: Any) -> None:
  """Make sure that ranks explore differently, by one draw of each."""
  local = np.random.uniform(size=(1,))
  root = local.copy()
  comm.Bcast(root, root=0)
  if comm.Get_rank() != 0:
    assert local[0] != root[0], 'two ranks draw the same random numbers'


def _store_or_compare(
  settings: dict[str, Any], checkpoint_dir: str | None
) -> None:
  """Store the settings of a new run, compare those of one that goes on."""
  folder = logger.get_dir()
  if folder is None:
    return
  if checkpoint_dir and list_checkpoints(checkpoint_dir):
    config.check_params(settings, folder)
  elif mpi.world().Get_rank() == 0:
    config.write_params(settings, folder)


def _complete_params(
  params: dict[str, Any],
  num_envs: int,
  demo_file: str | None,
  kwargs: dict[str, Any],
) -> dict[str, Any]:
  """Add what follows from the environment and what was given by name."""
  params = config.prepare_params(params)
  params['rollout_batch_size'] = num_envs
  if demo_file is not None:
    params['bc_loss'] = 1
  params.update(kwargs)
  config.log_params(params)
  _warn_about_single_worker(mpi.world())
  return params


def _find_name(env: Any) -> str:
  """Return the id of the environments of a vector."""
  return (getattr(env, 'specs', None) or [env.spec])[0].id


def _count(
  params: dict[str, Any], total_timesteps: float, num_envs: int
) -> dict[str, Any]:
  """Return the counts of `train`; warn if there is no whole epoch."""
  steps = params['n_cycles'] * params['T'] * num_envs
  epochs = int(total_timesteps) // steps
  if not epochs:
    logger.warn(
      f'Nothing to train: an epoch has {steps} steps, but there are only '
      f'{int(total_timesteps)}.'
    )
  names = ('n_test_rollouts', 'n_cycles', 'n_batches')
  return {'n_epochs': epochs, **{name: params[name] for name in names}}


def _make_workers(
  env: Any,
  eval_env: Any,
  policy: 'DDPG',
  dims: dict[str, int],
  params: dict[str, Any],
) -> dict[str, Any]:
  """Create the worker that explores and the one that exploits."""
  shared = {
    name: params[name]
    for name in ('T', 'rollout_batch_size', 'noise_eps', 'random_eps')
  }
  rollout_worker = RolloutWorker(env, policy, dims, logger, **shared)
  evaluator = RolloutWorker(
    eval_env,
    policy,
    dims,
    logger,
    exploit=True,
    use_target_net=params['test_with_polyak'],
    compute_Q=True,
    **shared,
  )
  return {'rollout_worker': rollout_worker, 'evaluator': evaluator}


def _warn_about_single_worker(comm: Any) -> None:
  if comm.Get_size() > 1:
    return
  for line in (
    '',
    '*** Warning ***',
    'You are running HER with a single MPI worker. The published results were '
    'obtained with 19 workers (--num_cpu 19; arXiv 1802.09464, issue 314 of '
    'openai/baselines), which makes a difference beyond speed: gradients and '
    'statistics come from more episodes. Use mpirun -n N.',
    '****************',
    '',
  ):
    logger.warn(line)
