"""What a training needs, made from the arguments of `her.learn`."""

from typing import TYPE_CHECKING, Any

from agents.run import mpi
from baselines_her import config, logger
from baselines_her.checkpoints import list_checkpoints
from baselines_her.rollout import RolloutWorker

if TYPE_CHECKING:
  from baselines_her.ddpg import DDPG


def prepare(
  *,
  env: Any,
  total_timesteps: float,
  seed: int | None = None,
  eval_env: Any = None,
  policy_save_interval: int = 5,
  save_path: str | None = None,
  checkpoint_dir: str | None = None,
  **settings: Any,
) -> dict[str, Any]:
  """Seed everything but the environments; create agent and workers.

  Args:
    env: See `her.learn`, as for the arguments that follow.
    **settings: Its other arguments, `network` aside.

  Returns:
    Dict of arguments for `her.train_epochs`.

  Raises:
    UsageError: If a run that is continued had other settings.
  """
  from baselines_her import tf_util

  offset = 1000000 * mpi.world().Get_rank()
  tf_util.set_global_seeds(None if seed is None else seed + offset)
  task = (
    _find_name(env),
    settings.pop('replay_strategy', 'future'),
    settings.pop('override_params', None),
  )
  given = {
    **{'clip_return': True, 'demo_file': None, 'load_path': None},
    **settings,
  }
  _store_or_compare(
    config.run_settings(*task, **given, seed=seed), checkpoint_dir
  )
  clip_return, demo_file, load_path = (
    given.pop(x) for x in ('clip_return', 'demo_file', 'load_path')
  )
  params = config.define_params(*task)
  params = _complete_params(params, env.num_envs, demo_file, given)
  dims = config.configure_dims(params)
  policy = config.configure_ddpg(
    dims=dims, params=params, clip_return=clip_return
  )
  if load_path is not None:
    tf_util.load_variables(load_path, sess=policy.sess)
  return {
    'policy': policy,
    **_make_workers(env, eval_env or env, policy, dims, params),
    **_count(params, total_timesteps, env.num_envs),
    'policy_save_interval': policy_save_interval,
    'save_path': save_path,
    'demo_file': demo_file,
    'checkpoint_dir': checkpoint_dir,
  }


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
