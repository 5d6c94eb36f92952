"""Train an agent with hindsight experience replay.

Example:

  her-train --env=FetchReach-v4 --num_timesteps=5000 --log_path=logs/reach

Repeat the command to continue an interrupted run. Prefix it with mpirun -n N
to train one agent with N processes (ranks).
"""

import argparse
import contextlib
import functools
import glob
import os
import subprocess
import sys
import types
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from agents.envs import adapters, registry, window
from agents.run import (
  entry,
  errors,
  files,
  flags,
  life,
  messages,
  mpi,
  references,
  schema,
  stopping,
  training,
  wandb_mirror,
)
from agents.run import folder as run_folder
from agents.tools.lazy_tf import tf
from baselines_her import (
  checkpoints,
  config,
  demonstrations,
  envs,
  logger,
  monitor,
  settings,
  util,
  vec_env,
  video_recorder,
)

if TYPE_CHECKING:
  from baselines_her.ddpg import DDPG

FLAGS = tf.app.flags.FLAGS

# Flags of Baselines that do nothing, except for a network of the user's own.
_IGNORED = ('env_type', 'network', 'gamestate')
# Flags that have no effect without another one.
_NEEDED = {
  'play_episodes': 'play',
  'save_video_length': 'save_video_interval',
}
_IGNORED_MEANING = 'ignored; accepted for compatibility with Baselines'
# Types of the flags that are checked.
TYPES = {
  'alg': Literal['her'],
  'seed': schema.Seed,
  'num_timesteps': schema.FiniteAmount,
  'total_env_steps': schema.FiniteAmount,
  'num_env': schema.Positive,
  'reward_scale': schema.Finite,
  'save_video_interval': schema.Count,
  'save_video_length': schema.Positive,
  'play_episodes': schema.Count,
  'num_cpu': schema.Positive,
}


def define_flags(flag_values: Any = FLAGS) -> None:
  """Define the flags that are not settings; `_define_all` adds those."""
  into = {'flag_values': flag_values}
  tf.app.flags.DEFINE_string(
    'alg', 'her', 'algorithm; for PPO use ppo-train', **into
  )
  tf.app.flags.DEFINE_string(
    'env', settings.ENV, 'environment id, or module:function', **into
  )
  tf.app.flags.DEFINE_string('env_type', None, _IGNORED_MEANING, **into)
  tf.app.flags.DEFINE_integer('seed', None, 'random seed', **into)
  tf.app.flags.DEFINE_float(
    'num_timesteps',
    1e6,
    'environment steps of training of each rank, in whole epochs',
    **into,
  )
  tf.app.flags.DEFINE_float(
    'total_env_steps',
    None,
    'the same over all ranks together, instead of num_timesteps',
    **into,
  )
  tf.app.flags.DEFINE_string(
    'network',
    None,
    'custom network, module:name; other values have no effect',
    **into,
  )
  tf.app.flags.DEFINE_string('gamestate', None, _IGNORED_MEANING, **into)
  tf.app.flags.DEFINE_integer(
    'num_env', None, 'environments per rank (default 1)', **into
  )
  tf.app.flags.DEFINE_float(
    'reward_scale', 1.0, 'factor applied to logged rewards', **into
  )
  tf.app.flags.DEFINE_string(
    'save_path', None, 'file for all variables, at the end', **into
  )
  tf.app.flags.DEFINE_integer(
    'save_video_interval', 0, 'steps between videos; 0 for none', **into
  )
  tf.app.flags.DEFINE_integer(
    'save_video_length', 200, 'length of each video in steps', **into
  )
  tf.app.flags.DEFINE_string(
    'log_path',
    None,
    'folder of the run, also --logdir (default a temporary folder)',
    **into,
  )
  tf.app.flags.DEFINE_boolean(
    'play', False, 'play the trained agent after training', **into
  )
  tf.app.flags.DEFINE_integer(
    'play_episodes',
    None,
    'episodes to play; 0 plays until stopped (default 0 in a window, 5 in a '
    'video)',
    **into,
  )
  tf.app.flags.DEFINE_string(
    'policy_dir',
    None,
    'folder of saved policies (default <log_path>/policies)',
    **into,
  )
  tf.app.flags.DEFINE_boolean(
    'resume',
    None,
    'true requires a run in log_path, false requires that there is none '
    '(default: continue the run if there is one)',
    **into,
  )
  tf.app.flags.DEFINE_integer(
    'num_cpu', 1, 'ranks to start with mpirun', **into
  )
  tf.app.flags.DEFINE_multi_string('trust', None, references.HELP, **into)
  tf.app.flags.DEFINE_string('wandb', None, flags.WANDB, **into)
  for name, kind in TYPES.items():
    flags.limit(name, kind, **into)


def _define_all(flag_values):
  """Define all flags: those of `define_flags`, and one for each setting."""
  define_flags(flag_values)
  into = {'flag_values': flag_values}
  tf.app.flags.DEFINE_alias('logdir', 'log_path', **into)
  for name in ('params', 'override_params', *settings.Settings.names()):
    tf.app.flags.DEFINE(flags.Literal(), name, None, '', **into)


class Plan:
  """A training that is ready to start: all checked, nothing written yet.

  Args:
    args: Object with an attribute per flag, see `define_flags`; the environment
      may also be an object that `envs.make` accepts, or None for that of the
      run.
    given: Settings by name.

  Attributes:
    folder: Folder of the run, the same for all ranks.

  Raises:
    UsageError: If an argument is not valid.
  """

  def __init__(self, args: Any, given: dict[str, Any]):
    self.args, self._given = args, given
    wandb_mirror.check(args.wandb)
    self.folder = logger.choose_dir(args.log_path)
    policies = args.policy_dir or os.path.join(self.folder, 'policies')
    self._policies = files.absolute(policies)
    if args.save_path:
      args.save_path = files.absolute(args.save_path)
    self._usual: dict[str, Any] = {}
    self._unseen: list[str] = []
    self._run = checkpoints.Run(self.folder)
    comm = mpi.world()
    # Twice: what is not trusted is refused before the environment is created,
    # which may suggest other defaults.
    self._use(mpi.on_first_rank(comm, self._settle))
    self._env = self._params['env_name'] if args.env is None else args.env
    limit = self._settings.T
    self._task = mpi.on_all_ranks(comm, lambda: config.Task(self._env, limit))
    self._usual = comm.bcast(self._task.usual)
    if self._usual:
      self._use(mpi.on_first_rank(comm, self._settle))
    self._check_task()
    self._check_pictures()
    self._check_paths()

  @contextlib.contextmanager
  def claim(self) -> Iterator[run_folder.Run]:
    """Lock the run and settle what another process may have changed.

    Yields:
      The run, see `agents.run.life.start`.

    Raises:
      UsageError: If another process is using the run, or has changed it so that
        the settings do not fit any more.
    """
    run = self._run
    with run:
      run.claim()
      with (
        run_folder.removed_if_refused(
          self.folder, run.missing, self._has_begun
        ),
        logger.scoped_configure(self.folder),
      ):
        if run.was_changed:
          self._use(self._settle())
        run.config = self._params, self._settings, run.checkpoint
        run.changes = self.notes
        yield run

  def train(
    self,
    run: run_folder.Run,
    finish: Callable[['DDPG'], object] = lambda policy: None,
  ) -> Generator[training.Record | str, None, None]:
    """Create the environments and the agent, and train.

    Args:
      run: See `agents.run.life.start`.
      finish: Function that is called with the trained agent before its
        environments and its session are closed.

    Yields:
      See `her.train_epochs`.
    """
    from baselines_her import her, tf_util

    args, folder, rank = self.args, self.folder, mpi.world().Get_rank()
    params, values, newest = run.config
    if args.log_path:
      # The default is temporary, which machines need not share.
      mpi.check_shared(mpi.world(), folder)
    with contextlib.ExitStack() as stack:
      if rank:
        stack.enter_context(logger.scoped_configure(folder, []))
      self._describe()
      if not newest:
        monitor.begin_anew(folder, rank)
      # More threads would make the order of sums, and thus numbers, random.
      stack.enter_context(tf_util.own_graph())
      env, seed = self._env, params['seed']
      own = types.SimpleNamespace(**args.flag_values_dict())
      own.env, own.seed = env, seed
      with messages.muted(registry.__name__):
        env = build_env(own, values.T)
      if args.save_video_interval:
        interval, videos = args.save_video_interval, f'{folder}/videos'
        logger.info(f'Writing videos to {videos}.')
        env = video_recorder.VecVideoRecorder(
          env, videos, lambda x: x % interval == 0, args.save_video_length
        )
      stack.callback(env.close)
      mirrors = wandb_mirror.make_mirrors(
        None if rank else args.wandb, folder, params
      )
      for mirror in mirrors:
        stack.callback(mirror.close)
      steps, total = args.num_timesteps, args.total_env_steps
      if total is not None:
        steps = total // mpi.world().Get_size()
      arguments = her.prepare(values, self._task, env, steps, seed)
      try:
        yield from her.train_epochs(
          **arguments,
          save_path=self._policies,
          checkpoint_dir=self._run.checkpoints,
          checkpoint=newest,
          begin=functools.partial(config.write_params, params, folder),
          mirrors=mirrors,
        )
      except stopping.StopRequested as stop:
        logger.info(f'Saved in {folder}.')
        if not args.log_path:
          stop.advice = f'Add --log_path={folder} to continue.'
        raise
      finish(arguments['policy'])

  @property
  def notes(self) -> list[str]:
    """Sentences for the user about the settings and the environment."""
    notes = [*self._run.damaged, *self._changes]
    for flag, other in _NEEDED.items():
      if self.args[flag].present and not getattr(self.args, other):
        notes.append(f'Flag --{flag} has no effect without --{other}.')
    return [*notes, *self._task.notes(self._settings), *self._unseen]

  def _use(self, settled):
    self._params, self._settings, self._changes = settled

  def _settle(self):
    """Inspect the folder; return the result of `settings.settle`."""
    args = self.args
    continues = self._run.checkpoint is not None
    if not continues:
      run_folder.check_free(self.folder)
      config.check_free(self.folder)
    if args.resume is not None and args.resume != continues:
      found = 'a run' if continues else 'no run to continue'
      raise errors.UsageError(
        f'There is {found} in {self.folder}; choose another --log_path, or '
        'omit --resume and --noresume.'
      )
    return settings.settle(
      None if args.env is None else adapters.name_of(args.env),
      args.seed,
      self._given,
      self._run,
      references.parse(args.trust),
      self._usual,
    )

  def _has_begun(self) -> bool:
    """Return whether there is anything to keep, such as a whole episode."""
    begun = bool(self._run.list_checkpoints())
    pattern = os.path.join(glob.escape(self.folder), '*' + monitor.Monitor.EXT)
    for path in glob.glob(pattern):
      with open(path) as file_:
        begun |= len(file_.readlines()) > 2  # after two of header
    return begun

  def _check_task(self) -> None:
    """Check that flags and settings fit one another and the environment."""
    args, values = self.args, self._settings
    if adapters.is_environment(self._env) and (args.num_env or 1) > 1:
      raise errors.UsageError(
        f'A single environment object cannot serve as {args.num_env} '
        'environments; pass a function that creates them, or num_env=1.'
      )
    size = self._task.dims['u']
    if isinstance(values.max_u, list) and len(values.max_u) != size:
      raise errors.UsageError(
        f'Setting --max_u has {len(values.max_u)} values, but actions have '
        f'{size}; give a number or one for each.'
      )
    if args.total_env_steps is not None and args['num_timesteps'].present:
      raise errors.UsageError(
        'Flags --total_env_steps and --num_timesteps exclude each other; give '
        'one of them.'
      )
    if values.demo_file:
      # Loads all demonstrations, and compares the first.
      limit = values.T or self._task.time_limit
      demos = values.demo_file, values.num_demo, limit, self._task.dims
      next(demonstrations.load(*demos), None)

  def _check_pictures(self) -> None:
    """Check that videos can be written; note if `--play` will show nothing."""
    args = self.args
    if args.play:
      # At the top, the package would import it before `python -m` runs it.
      from baselines_her import play

      if problem := play.find_problem(
        self._env, window.has_display(), self._settings.T
      ):
        self._unseen = [f'--play will show no pictures: {problem}']
    if args.save_video_interval:
      flag, how = 'Flag --save_video_interval', errors.how_to_install('viz')
      errors.check_installed('imageio_ffmpeg', flag, how, 'omit the flag')

  def _check_paths(self) -> None:
    """Check that the files and folders of the flags can be created."""
    if self.args.save_path:
      files.check_creatable_file(self.args.save_path)
    for folder in (self.folder, self._policies):
      files.check_creatable(folder)

  def _describe(self) -> None:
    args, name = self.args, self._params['env_name']
    used = envs.resolve(name) if isinstance(self._env, str) else name
    shown = used if used == name else f'{used}, successor of {name},'
    logger.info(f'Training {args.alg} on {shown} in {self.folder}.')
    for flag in _IGNORED:
      value = getattr(args, flag)
      if value is not None and not settings.own_network(value):
        logger.warn(f'Flag --{flag} has no effect.')


def main(argv: list[str]) -> Any:
  """Train, save and play according to `tf.app.flags.FLAGS`.

  Args:
    argv: List of arguments, starting with the program name. They are parsed,
      as in the original, if there are more than that; `tf.app.run` has done
      so.

  Returns:
    The trained agent.

  Raises:
    UsageError: If an argument is not valid; nothing on disk has changed in
      this case.
    StopRequested: If the user asks to stop.
  """
  if argv[1:]:
    with flags.parsed('her-train', __doc__, _define_all, argv[1:]) as words:
      return main(words)
  return _train(Plan(*_read()))


def _read():
  """Return the flags and settings; `env` is None if it is not given."""
  args = flags.read(_define_all, FLAGS)
  own = settings.own_network(args.network)
  names = ('params', 'override_params', *settings.Settings.names())
  given = {x: args[x].value for x in names if args[x].present}
  given = settings.merge({**given, **own})
  if not args['env'].present:
    args.env = None
  return args, given


def _describe():
  """Return the lines of `--help` about settings."""
  args, values = flags.read(_define_all), None
  with contextlib.suppress(errors.UsageError):
    args = flags.read(_define_all, FLAGS)
    values = settings.Settings.make(args.env, _read()[1])
  return settings.describe(args.env, values)


# The original's way to read a command line, for those who call it.


def common_arg_parser() -> argparse.ArgumentParser:
  """Return an argparse parser of all flags, without those of settings."""
  parser = argparse.ArgumentParser(allow_abbrev=False)
  defined = flags.read(define_flags)
  for name in defined:
    flag = defined[name]
    kind = flag.flag_type()
    special = {'bool': 'store_true', 'multi string': 'append'}
    types_ = {'int': int, 'float': float}
    more: dict[str, Any] = {'type': types_.get(kind, str)}
    if kind in special:
      more = {'action': special[kind]}
    parser.add_argument(
      f'--{name}', default=flag.default, help=flag.help, **more
    )
  return parser


def parse_args(
  argv: Sequence[str],
) -> tuple[argparse.Namespace, list[str]]:
  """Split a command line into flags and the remaining arguments.

  Args:
    argv: List of arguments, starting with the program name.
  """
  return common_arg_parser().parse_known_args(argv[1:])


def parse_cmdline_kwargs(unknown: Sequence[str]) -> dict[str, Any]:
  """Parse settings of the form `--name=value` or `--name value`.

  Parses values as Python literals or YAML if possible. As in the original,
  names without a value and words without a name are dropped.
  """
  result, name = {}, ''
  for word in unknown:
    if word.startswith('--'):
      name, equals, text = word[2:].partition('=')
      if equals:
        result[name], name = schema.parse_value(text), ''
    elif name:
      result[name], name = schema.parse_value(word), ''
  return result


def build_env(args: Any, time_limit: int | None = None) -> vec_env.VecEnv:
  """Create the environments for the flags of `define_flags`.

  As in the original, first creates a default session with one thread if there
  is none.

  Args:
    args: Object with an attribute per flag.
    time_limit: Number of steps of an episode; by default that of the id.
  """
  from baselines_her import tf_util

  if not tf.get_default_session():
    tf_util.make_session(num_cpu=1, make_default=True)
  return vec_env.make_vec_env(
    args.env,
    'robotics',
    args.num_env or 1,
    args.seed,
    reward_scale=args.reward_scale,
    render='rgb_array' if args.save_video_interval else None,
    time_limit=time_limit,
  )


def _train(plan: Plan) -> Any:
  """Train; return the agent."""
  args, trained = plan.args, []
  messages.set_up_logging()

  def finish(model):
    trained.append(model)
    if mpi.world().Get_rank():
      return
    if args.save_path:
      model.save(args.save_path)
    if args.play:
      from baselines_her import play

      logger.log('Running trained model')
      filename = os.path.join(plan.folder, 'play.mp4')
      play.show(
        model, args.play_episodes, args.seed, filename, main_network=True
      )

  train = functools.partial(plan.train, finish=finish)
  for told in life.start(plan.claim, train, mpi.world()):
    if isinstance(told, str):
      logger.warn(told)
  return trained[0]


def run(argv: Sequence[str] | None = None) -> int:
  """Run the program; return the exit code.

  Args:
    argv: List of arguments, starting with the program name; those of the
      process by default.
  """
  rest = None if argv is None else argv[1:]

  def train(words: list[str]) -> None:
    main(words)

  def start() -> int | None:
    with flags.parsed(
      'her-train', __doc__, _define_all, rest, _describe
    ) as words:
      try:
        if util.mpi_fork(FLAGS.num_cpu, ['--oversubscribe']) == 'parent':
          return 0
      except subprocess.CalledProcessError as error:
        # The ranks have said why.
        return error.returncode
      with stopping.handle_signals('Stopping after this cycle'):
        tf.app.run(train, words)
    return None

  return entry.run(start)


if __name__ == '__main__':
  sys.exit(run())
