"""Training with hindsight experience replay: rollouts, updates, evaluation."""

import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from agents.run import errors, mpi, stopping
from agents.run.silence import Record
from baselines_her import logger, preparation, reports
from baselines_her import mpi as her_mpi
from baselines_her.checkpoints import Checkpoints
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
  return train(
    **preparation.prepare(
      env=env,
      total_timesteps=total_timesteps,
      seed=seed,
      eval_env=eval_env,
      policy_save_interval=policy_save_interval,
      save_path=save_path,
      checkpoint_dir=checkpoint_dir,
      replay_strategy=replay_strategy,
      clip_return=clip_return,
      demo_file=demo_file,
      override_params=override_params,
      load_path=load_path,
      **kwargs,
    ),
    mirrors=mirrors,
  )


def learn_epochs(
  *, mirrors: Iterable[Any] = (), **arguments: Any
) -> Iterator[Record]:
  """Do what `learn` does, with a record after each epoch.

  Args:
    mirrors: See `learn`.
    **arguments: Those of `learn`, `network` aside.

  Yields:
    See `train_epochs`.
  """
  prepared = preparation.prepare(**arguments)
  yield from train_epochs(**prepared, mirrors=mirrors)


def train(*, policy: 'DDPG', **arguments: Any) -> 'DDPG':
  """Train an agent and return it.

  Args:
    policy: The `DDPG` agent.
    **arguments: Further ones of `train_epochs`.

  Raises:
    UsageError: See `train_epochs`, as for `StopRequested`.
  """
  for _ in train_epochs(policy=policy, **arguments):
    pass
  return policy


def train_epochs(
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
) -> Iterator[Record]:
  """Alternate between cycles of rollouts with updates, and evaluation.

  All ranks have to call it with the same arguments.

  Args:
    policy: The `DDPG` agent.
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

  Yields:
    Dict of each epoch: `epoch` from 1, `updates`, `environment_steps` of
    exploration, `success_rate` of the evaluation, and `train_success_rate`,
    all over all ranks.

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
      means = _log_epoch(
        state['epoch'], policy, rollout_worker, evaluator, report
      )
      rate = means['test/success_rate']
      best = saver.save(state['epoch'], rate, state['best_success_rate'])
      check_seeds(mpi.world())
      state.update(epoch=state['epoch'] + 1, cycle=0, best_success_rate=best)
      checkpoints.save(state, forced=state['epoch'] == n_epochs)
      with stopping.on_close(lambda: checkpoints.save(state, forced=True)):
        yield {
          'epoch': state['epoch'],
          'updates': report.updates,
          'environment_steps': report.env_steps,
          'success_rate': rate,
          'train_success_rate': means['train/success_rate'],
        }
      _stop_if_requested(mpi.world(), state, checkpoints)
  policy.check_synced()


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
) -> dict[str, float]:
  """Write the row of an epoch and return it, means over all ranks."""
  logs = evaluator.logs('test') + rollout_worker.logs('train') + policy.logs()
  means = {key: float(mpi_average(value)) for key, value in logs}
  for key, value in {'epoch': epoch, **means}.items():
    logger.record_tabular(key, value)
  report.epoch_done(mpi.world())
  return means


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
