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
from collections.abc import Iterator
from typing import Any

from agents.run import (
  checkpoint,
  entry,
  errors,
  files,
  flags,
  messages,
  mpi,
  stopping,
  wandb_mirror,
)
from agents.run import folder as run_folder
from baselines_her import (
  config,
  demonstrations,
  envs,
  logger,
  monitor,
  settings,
  util,
  vec_env,
)

common_arg_parser = settings.common_arg_parser
parse_args = settings.parse_args
parse_cmdline_kwargs = settings.parse_cmdline_kwargs


class Training:
  """A training that can begin: everything is checked, nothing is written.

  Args:
    args: Flags of `parse_args`.
    values: Settings.

  Attributes:
    folder: Folder of the run, the same for all ranks.
    task: `config.Task`.

  Raises:
    UsageError: If something is wrong.
  """

  def __init__(self, args: types.SimpleNamespace, values: settings.Settings):
    self.args = args
    self.settings = values
    wandb_mirror.check(args.wandb)
    self.folder = logger.choose_dir(args.log_path)
    self.task = config.Task(args.env)
    self._params = config.run_params(args.env, args.seed, values)
    if values.demo_file:
      # Reads all of them, and compares the first.
      limit = values.T or self.task.time_limit
      demos = values.demo_file, values.num_demo, limit, self.task.dims
      next(demonstrations.load(*demos), None)
    self._checkpoints = os.path.join(self.folder, 'checkpoints')
    self._continues = bool(self._find_newest())
    self._check_folder()
    self._check_paths()

  @contextlib.contextmanager
  def start(self) -> Iterator[dict[str, Any]]:
    """Lock the folder, log to it, and build environments and agent.

    Yields:
      Dict of arguments of `her.train`, in whose graph and session this is.

    Raises:
      UsageError: If another process works on the run.
    """
    rank = mpi.world().Get_rank()
    with contextlib.ExitStack() as stack:
      if rank == 0:
        missing = files.first_missing(self.folder)
        stack.enter_context(run_folder.Run.open(self.folder))
        stack.enter_context(
          run_folder.removed_if_refused(
            self.folder, missing, lambda: bool(self._find_newest())
          )
        )
      from agents.tools.tf1 import tf
      from baselines_her import her, tf_util

      stack.enter_context(
        logger.scoped_configure(self.folder, [] if rank else None)
      )
      self._warn()
      if not self._continues:
        monitor.begin_anew(self.folder, rank)
        if rank == 0:
          config.write_params(self._params, self.folder)
      stack.enter_context(tf.Graph().as_default())
      # More threads would make the order of sums, and thus numbers, random.
      stack.enter_context(tf_util.single_threaded_session().as_default())
      env = self._build_env()
      stack.callback(env.close)
      try:
        yield {
          **her.prepare(
            self.settings,
            self.task,
            env,
            self.args.num_timesteps,
            self.args.seed,
            save_path=self.args.policy_dir
            or os.path.join(self.folder, 'policies'),
          ),
          'checkpoint_dir': self._checkpoints,
          'mirrors': wandb_mirror.make_mirrors(
            None if rank else self.args.wandb, self.folder, self._params
          ),
        }
      except stopping.StopRequested:
        logger.info(
          f'Saved in {self.folder}; continue with --log_path={self.folder} and '
          'the same settings.'
        )
        raise

  def _find_newest(self):
    return checkpoint.choose_newest(
      checkpoint.list_folders(self._checkpoints).values()
    )

  def _check_folder(self):
    args = self.args
    if args.resume and not self._continues:
      raise errors.UsageError(
        f'There is no run to continue in --log_path={args.log_path}; omit '
        '--resume to start one.'
      )
    if args.resume is False and self._continues:
      raise errors.UsageError(
        f'There is a run in {args.log_path} already; choose another '
        '--log_path, or omit --noresume to continue it.'
      )
    if self._continues:
      config.check_params(self._params, self.folder)

  def _check_paths(self):
    args = self.args
    if self.settings.load_path is not None:
      path = os.path.expanduser(self.settings.load_path)
      if not os.access(path, os.R_OK):
        raise errors.UsageError(
          f'Cannot read {path!r} of --load_path; give a file that was written '
          'by --save_path.'
        )
    if args.save_video_interval:
      try:
        import imageio_ffmpeg  # noqa: F401
      except ImportError:
        raise errors.UsageError(
          'Videos need the extra viz: pip install "reference-agents[viz]".'
        ) from None
    folders = [self.folder, args.policy_dir]
    if args.save_path:
      if os.path.isdir(os.path.expanduser(args.save_path)):
        raise errors.UsageError(
          f'Flag --save_path is the folder {args.save_path!r}; give a file '
          'within it.'
        )
      folders.append(os.path.dirname(os.path.abspath(args.save_path)))
    for folder in filter(None, folders):
      files.check_creatable(os.path.expanduser(folder))

  def _warn(self):
    args = self.args
    logger.info(f'Training {args.alg} on robotics:{args.env}.')
    for name in settings.IGNORED:
      if getattr(args, name) is not None:
        logger.warn(f'Flag --{name} has no effect.')
    if envs.resolve(self.task.name) != self.task.name:
      logger.warn(
        f'{self.task.name} is not runnable any more, using '
        f'{envs.resolve(self.task.name)}.'
      )

  def _build_env(self):
    env = build_env(self.args, self.settings.T)
    if not self.args.save_video_interval:
      return env
    from baselines_her import video_recorder

    videos = os.path.join(self.folder, 'videos')
    logger.info(f'Videos go to {videos}.')
    interval = self.args.save_video_interval
    return video_recorder.VecVideoRecorder(
      env,
      videos,
      lambda step: step % interval == 0,
      self.args.save_video_length,
    )


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
  return train(args, settings.from_words(args.env, unknown))


def train(args: types.SimpleNamespace, values: settings.Settings) -> Any:
  """Do what `main` does, once the command line is parsed."""
  return _train(Training(args, values))


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
  from agents.tools.tf1 import tf
  from baselines_her import tf_util

  if not tf.get_default_session():
    tf_util.make_session(num_cpu=1, make_default=True)
  return vec_env.make_vec_env(
    args.env,
    'robotics',
    args.num_env or 1,
    args.seed,
    args.reward_scale,
    render='rgb_array' if args.save_video_interval else None,
    time_limit=time_limit,
  )


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
    values = settings.from_words(args.env, unknown)
    try:
      if util.mpi_fork(args.num_cpu, ['--oversubscribe']) == 'parent':
        return 0
    except subprocess.CalledProcessError as error:
      # The ranks have said why.
      return error.returncode
    with stopping.handle_signals(
      'Stopping after this cycle; press Ctrl-C again to exit at once.'
    ):
      training = Training(args, values)
      flags.run_app(lambda rest: _train(training), argv)
    return 0

  return entry.run(start)


def _train(training: Training) -> Any:
  args = training.args
  is_root = mpi.world().Get_rank() == 0
  messages.set_up_logging()
  with training.start() as arguments:
    from baselines_her import her, play

    model = her.train(**arguments)
    if args.save_path and is_root:
      model.save(os.path.expanduser(args.save_path))
    if args.play and is_root:
      logger.log('Running trained model')
      play.show(
        model,
        args.env,
        args.play_episodes,
        args.seed,
        os.path.join(training.folder, 'play.mp4'),
        training.settings.T,
      )
  return model


if __name__ == '__main__':
  sys.exit(run())
