"""Train an agent with hindsight experience replay.

Example:

  her-train --env=FetchReach-v1 --num_timesteps=5000 --log_path=logs/reach

Repeat the command to continue an interrupted run. Prefix it with mpirun -n N
to train one agent with N processes (ranks).
"""

import contextlib
import os
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from agents import utility
from agents.run import entry, errors, flags, mpi, stopping, wandb_mirror
from baselines_her import (
  checkpoints,
  cmd_util,
  config,
  demonstrations,
  envs,
  logger,
  monitor,
  settings,
  util,
  vec_env,
)

common_arg_parser = cmd_util.common_arg_parser
hold = checkpoints.hold
parse_args = settings.parse_args
parse_cmdline_kwargs = settings.parse_cmdline_kwargs


def main(argv: list[str]) -> Any:
  """Train, save and play as the command line says.

  Args:
    argv: List that begins with the name of the program.

  Returns:
    The trained agent.

  Raises:
    UsageError: If something is wrong with the arguments; nothing on disk has
      changed then.
    StopRequested: If the user asks to stop.
  """
  args, unknown = parse_args(argv)
  return work(args, prepare(args, parse_cmdline_kwargs(unknown)))


def work(args: types.SimpleNamespace, kwargs: dict[str, Any]) -> Any:
  """Do what `main` does once the arguments are known to be right.

  Args:
    args: Flags of `parse_args`.
    kwargs: Further arguments of `learn`.

  Returns:
    The trained agent.
  """
  with hold(args.log_path):
    return _train_and_play(args, kwargs)


def prepare(
  args: types.SimpleNamespace, extra: dict[str, Any]
) -> dict[str, Any]:
  """Check everything that can be checked before the work begins.

  Args:
    args: Flags of `parse_args`.
    extra: Dict of `parse_cmdline_kwargs`.

  Returns:
    Dict of further arguments of `learn`.

  Raises:
    UsageError: If something is wrong.
  """
  settings.check_flags(args)
  size = mpi.world().Get_size()
  kwargs = settings.split_settings(extra)
  limit = [None, kwargs['T']] if 'T' in kwargs else []
  env = envs.make(args.env, *limit)
  try:
    # Looks at a step, too.
    dims = config.find_dims(env)
  finally:
    env.close()
  if kwargs.get('demo_file'):
    number = kwargs.get('override_params', {}).get('num_demo', 100)
    steps = env._max_episode_steps
    # Reads all of them, and compares the first.
    next(demonstrations.load(kwargs['demo_file'], number, steps, dims), None)
  folder = args.log_path and checkpoints.find_folder(args.log_path)
  exists = bool(folder and checkpoints.list_checkpoints(folder))
  if args.resume and not exists:
    raise errors.UsageError(
      f'There is no run to continue in --log_path={args.log_path}; leave '
      '--resume away to start one.'
    )
  if args.resume is False and exists:
    raise errors.UsageError(
      f'There is a run in {args.log_path} already; choose another --log_path, '
      'or leave --noresume away to continue it.'
    )
  if exists:
    checkpoints.check(folder, size)
    config.check_params(
      config.run_settings(args.env, seed=args.seed, **kwargs),
      os.path.expanduser(args.log_path),
    )
  settings.check_paths(args, kwargs)
  return kwargs


def train(args: types.SimpleNamespace, kwargs: dict[str, Any]) -> Any:
  """Build the environments and train in them.

  Args:
    args: Flags of `parse_args`.
    kwargs: Further arguments of `learn`.

  Returns:
    The trained agent.
  """
  learn = get_learn_function(args.alg)
  env_type, _ = get_env_type(args)
  kwargs = {**get_learn_function_defaults(args.alg, env_type), **kwargs}
  with learning(args, kwargs) as arguments:
    return learn(
      network=args.network or get_default_network(env_type), **arguments
    )


@contextlib.contextmanager
def learning(
  args: types.SimpleNamespace, kwargs: dict[str, Any]
) -> Iterator[dict[str, Any]]:
  """Build the environments of a training, which are closed at the end.

  Args:
    args: Flags of `parse_args`.
    kwargs: Further arguments of `learn`.

  Yields:
    Dict of all arguments of `learn`, `network` aside.
  """
  env_type, env_id = get_env_type(args)
  print_root(f'env_type: {env_type}')
  folder = logger.get_dir()
  assert folder, 'configure the logger before training'
  if not checkpoints.list_checkpoints(checkpoints.find_folder(folder)):
    monitor.begin_anew(folder, mpi.world().Get_rank())
  env: Any = build_env(args, kwargs.get('T'))
  try:
    if args.save_video_interval:
      env = _record(env, args, folder)
    print_root(
      f'Training {args.alg} on {env_type}:{env_id} with arguments \n{kwargs}'
    )
    yield {
      'env': env,
      'seed': args.seed,
      'total_timesteps': int(args.num_timesteps),
      'save_path': args.policy_dir or os.path.join(folder, 'policies'),
      'checkpoint_dir': checkpoints.find_folder(folder),
      'mirrors': _make_mirrors(args, folder, kwargs),
      **kwargs,
    }
  except stopping.StopRequested:
    logger.info(
      f'Saved in {folder}; continue with --log_path={folder} and the same '
      'settings.'
    )
    raise
  finally:
    env.close()


def build_env(
  args: types.SimpleNamespace, time_limit: int | None = None
) -> vec_env.VecEnv:
  """Build the environments of the flags of `parse_args`.

  As in the original, a default session of one thread is created before, if
  there is none.

  Args:
    args: What `parse_args` returns.
    time_limit: Number of steps of an episode; by default that of the id.
  """
  from baselines_her import tf_util

  tf_util.get_session(tf_util.single_threaded_config())
  env_type, env_id = get_env_type(args)
  return vec_env.make_vec_env(
    env_id,
    env_type,
    args.num_env or 1,
    args.seed,
    args.reward_scale,
    render='rgb_array' if args.save_video_interval else None,
    time_limit=time_limit,
  )


def get_env_type(args: types.SimpleNamespace) -> tuple[str, str]:
  """Return type and id of the environment of the flags of `parse_args`."""
  return args.env_type or 'robotics', args.env


def get_learn_function(alg: str) -> Callable:
  """Return the function that trains with an algorithm.

  Raises:
    UsageError: If there is no such algorithm.
  """
  settings.check_algorithm(alg)
  from baselines_her import her

  return her.learn


def get_learn_function_defaults(alg: str, env_type: str) -> dict[str, Any]:
  """Return what `learn` gets unless the user says otherwise.

  Nothing for HER: its defaults are in `config` and depend on the environment,
  not on its type.
  """
  return {}


def get_default_network(env_type: str) -> str:
  """Return the name of a network, which the original passes to `learn`.

  It is always `mlp`, as types of environments with images are not here.
  """
  return 'mlp'


def print_root(text: str) -> None:
  """Print a line in the first rank only."""
  if mpi.world().Get_rank() == 0:
    print(text, flush=True)


def run(argv: list[str] | None = None) -> int:
  """Run the program; return the exit code."""
  argv = list(sys.argv if argv is None else argv)
  if flags.HELP & set(argv[1:]):
    others = [x for x in argv[1:] if x not in flags.HELP]
    text = f'{__doc__}\nflags:\n{settings.describe(others)}'
    return entry.run(lambda: print(text))

  # Ranks that wait leave the cores to others; Open MPI reads this.
  os.environ.setdefault('OMPI_MCA_mpi_yield_when_idle', '1')

  def start() -> int:
    args, unknown = parse_args(argv)
    settings.check_flags(args)
    extra = parse_cmdline_kwargs(unknown)
    settings.split_settings(extra)
    try:
      if util.mpi_fork(args.num_cpu, ['--oversubscribe']) == 'parent':
        return 0
    except subprocess.CalledProcessError as error:
      # The ranks have said why.
      return error.returncode
    with stopping.handle_signals(
      'Stopping after this cycle; press Ctrl-C again to exit at once.'
    ):
      kwargs = prepare(args, extra)
      flags.run_app(lambda rest: work(args, kwargs), argv)
    return 0

  return entry.run(start)


def _train_and_play(args: types.SimpleNamespace, kwargs: dict[str, Any]) -> Any:
  _configure_logger(args)
  if envs.resolve(args.env) != args.env:
    logger.warn(
      f'{args.env} is not runnable any more, using {envs.resolve(args.env)}.'
    )

  from agents.tools.tf1 import tf
  from baselines_her import play, tf_util

  utility.set_up_logging()
  with tf.Graph().as_default():
    # More threads would make the order of sums, and thus numbers, random.
    with tf_util.single_threaded_session().as_default():
      model = train(args, kwargs)
      if args.save_path and mpi.world().Get_rank() == 0:
        model.save(os.path.expanduser(args.save_path))
      if args.play and mpi.world().Get_rank() == 0:
        logger.log('Running trained model')
        play.show(
          model,
          args.env,
          args.play_episodes,
          args.seed,
          os.path.join(logger.get_dir() or '', 'play.mp4'),
          kwargs.get('T'),
        )
  return model


def _configure_logger(args: types.SimpleNamespace) -> None:
  """Log to one folder; only the first rank writes."""
  comm = mpi.world()
  if comm.Get_rank() == 0:
    logger.configure(args.log_path)
    comm.bcast(logger.get_dir())
  else:
    logger.configure(comm.bcast(None), format_strs=[])


def _record(env: Any, args: types.SimpleNamespace, folder: str) -> Any:
  from baselines_her import video_recorder

  videos = os.path.join(folder, 'videos')
  print_root(f'Videos go to {videos}.')
  return video_recorder.VecVideoRecorder(
    env,
    videos,
    lambda step: step % args.save_video_interval == 0,
    args.save_video_length,
  )


def _make_mirrors(
  args: types.SimpleNamespace, folder: str, kwargs: dict[str, Any]
) -> list[wandb_mirror.WandbMirror]:
  if mpi.world().Get_rank() > 0:
    return []
  settings = {'env': args.env, 'seed': args.seed, **kwargs}
  return wandb_mirror.make_mirrors(args.wandb, folder, settings)


if __name__ == '__main__':
  sys.exit(run())
