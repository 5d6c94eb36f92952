"""Train a PlaNet agent: collect episodes, learn a model, plan with it.

Example:

  planet-train --logdir ~/logdir --config default \\
      --params '{tasks: [cheetah_run]}'

Repeat the command to resume a run that stopped or failed. Raise max_steps to
extend a finished run. Prefix the command with mpirun -n N to train in N
processes, see docs/clusters.md.
"""

import argparse
import contextlib
import datetime
import functools
import logging
import os
import socket
import sys
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from agents.run import (
  entry,
  errors,
  flags,
  folder,
  locks,
  messages,
  mpi,
  random_state,
  references,
  schema,
  stopping,
  wandb_mirror,
)
from agents.tools.lazy_tf import tf

if TYPE_CHECKING:
  from planet.training.ranks import Ranks

_logger = logging.getLogger('planet.scripts.train')


def process(
  logdir: str, args: Any, ranks: 'Ranks | None' = None
) -> Generator[dict[str, Any] | str, None, None]:
  """Train one run, which this worker has to own.

  Args:
    logdir: Folder of the run.
    args: Object with `config`, `params` and optionally `seed`, `trust`,
      `objects` and `wandb`.
    ranks: Processes that train together; this one has to be the first. Only
      this process by default.

  Yields:
    Messages for the user, and after each epoch the record that
    `planet.library.train` describes.

  Raises:
    UsageError: If the arguments or the episodes do not fit the run.
    EnvError: If an environment fails.
  """
  from planet.scripts import resume
  from planet.training import utility
  from planet.training.ranks import Ranks

  ranks = ranks or Ranks()
  config = resume.define_config(logdir, args)
  resume.check(config, logdir, ranks.size)
  yield from config.report
  utility.save_config(config, logdir)
  _logger.info('Train in %s.', logdir)
  for marker in ('FAIL', 'DONE'):
    folder.unmark(logdir, marker)
  ranks.comm.bcast((logdir, config))
  mirrors = wandb_mirror.make_mirrors(
    getattr(args, 'wandb', None), logdir, {'config': args.config, **args.params}
  )
  with messages.write_messages(os.path.join(logdir, 'log.txt')):
    yield from _work(config, logdir, ranks, mirrors)
  if ranks.should_stop() and resume.is_unfinished(logdir, config):
    raise stopping.StopRequested('The user asked to stop.')


def _work(config, logdir, ranks, mirrors=()):
  """Collect the initial episodes, then train; yield after each epoch."""
  from agents.tools import devices
  from planet import training
  from planet.tools import numpy_episodes
  from planet.training import episode_folder, running, utility
  from planet.training import ranks as ranks_lib
  from planet.training.display import Display

  utility.collect_initial_episodes(config, ranks)
  with config.unlocked:
    config.began = ranks.comm.bcast(datetime.datetime.now())
  if config.observation == 'vector':
    with config.unlocked:
      config.vector_statistics = episode_folder.read_statistics(
        config.train_dir, config.observation_keys
      )
  tf.reset_default_graph()
  seed = config.seed
  if seed is not None:
    seed += config.first_step + 7919 * ranks.rank
  random_state.set_seeds(seed)
  config = ranks_lib.own_config(config, ranks)
  batch_size, length = config.batch_shape
  dataset = numpy_episodes.numpy_episodes(
    config.train_dir,
    config.test_dir,
    (batch_size // ranks.size, length),
    reader=config.data_reader,
    loader=config.data_loader,
    num_chunks=config.num_chunks,
    preprocess_fn=config.preprocess_fn,
    seed=seed,
  )
  displays = []
  if ranks.is_first:
    displays = [Display(logdir, config, mirrors=mirrors)]
    _logger.info('%s', devices.describe())
    if config.source.config == 'default' and not devices.list_usable():
      _logger.info(
        'Without a GPU, an update takes seconds and an episode minutes. Use '
        '--config cpu for a smaller model and planner.'
      )
    if ranks.size > 1:
      _logger.info('%s', ranks.describe())
  scores = utility.train(
    training.define_model, dataset, logdir, config, displays, ranks
  )
  with contextlib.closing(scores):
    for _ in scores:
      try:
        yield displays[0].values if displays else {}
      except (GeneratorExit, running.WorkerConflict, locks.Lost) as error:
        # If the first rank ends here, all others stop, too.
        with contextlib.suppress(stopping.StopRequested):
          ranks.sync(True)
        scores.throw(error)
      ranks.sync()


def main(args: Any) -> None:
  """Train the runs of an experiment.

  Args:
    args: Object with `logdir`, `num_runs`, `config`, `params`, `ping_every`,
      `resume_runs` and optionally `seed` and `verbose`.

  Raises:
    UsageError: If the arguments are wrong or do not fit an existing run, which
      is left unchanged.
    StopRequested: If the user asks to stop.
  """
  check(args)
  from planet.training import utility
  from planet.training.ranks import Ranks

  utility.set_up_logging(getattr(args, 'verbose', False))
  ranks = Ranks(mpi.world())
  if not ranks.is_first:
    _follow(ranks)
    return
  for told in work(args, ranks):
    if isinstance(told, str):
      print(told, flush=True)


def check(args: Any) -> None:
  """Check the arguments of `main` before TensorFlow is imported.

  Checks that depend on the parameters of a stored run are left to `process`.

  Raises:
    UsageError: If an argument is wrong.
  """
  from planet.scripts import parameters, tasks

  seed = getattr(args, 'seed', None)
  schema.convert(schema.Seed | None, seed, "Argument 'seed'")
  params = parameters.build(args.config, args.params)
  if not folder.has(_find_first(args.logdir), 'config.yaml'):
    parameters.check_together(params)
    tasks.define_all(params)


def work(
  args: Any, ranks: 'Ranks | None' = None
) -> Generator[dict[str, Any] | str, None, None]:
  """Train the runs of an experiment one after the other.

  Args:
    args: See `main`.
    ranks: See `process`.

  Yields:
    See `process`.
  """
  from planet.scripts import parameters, resume
  from planet.training import running
  from planet.training.ranks import Ranks

  ranks, worked = ranks or Ranks(), False
  given = parameters.check(args.params)
  experiment = running.Experiment(
    args.logdir,
    process_fn=functools.partial(process, args=args, ranks=ranks),
    num_runs=args.num_runs,
    ping_every=args.ping_every,
    resume_runs=args.resume_runs,
    may_reopen=lambda logdir: (
      folder.has(logdir, 'FAIL') or resume.is_unfinished(logdir, given)
    ),
  )
  for run in experiment:
    worked = True
    # The log has reported that another worker owns the run now.
    with (
      contextlib.suppress(running.WorkerConflict),
      contextlib.closing(iter(run)) as told,
    ):
      yield from told
    if ranks.should_stop():
      return
  ranks.comm.bcast(None)
  stopping.check()
  if not worked:
    yield _find_nothing(args)


def _find_nothing(args):
  """Check the arguments against the first run; return a message."""
  from planet.scripts import resume

  logdir = _find_first(args.logdir)
  if folder.has(logdir, 'config.yaml'):
    resume.define_config(logdir, args)
  return (
    f'Nothing to do: all runs in {args.logdir} are finished or belong to other '
    'workers; raise total_env_steps or max_steps to continue training.'
  )


def _find_first(logdir):
  """Return the folder of the first run, which may not exist yet."""
  logdir = os.path.expanduser(logdir)
  is_run = folder.has(logdir, 'config.yaml')
  return logdir if is_run else os.path.join(logdir, '00001')


def _follow(ranks):
  """Train the runs that the first rank chooses."""
  for name in ('agents', 'planet'):
    logging.getLogger(name).setLevel(logging.WARNING)
  while run := ranks.comm.bcast(None):
    logdir, config = run
    if not os.path.exists(os.path.join(logdir, 'config.yaml')):
      raise errors.UsageError(
        f'Rank {ranks.rank} of {ranks.size} cannot find the run in {logdir} on '
        f'{socket.gethostname()}; use a folder that all machines share.'
      )
    with contextlib.suppress(stopping.StopRequested):
      for _ in _work(config, logdir, ranks):
        pass
    if ranks.should_stop():
      return


def parse_args(argv: list[str] | None = None) -> argparse.Namespace:
  """Return the first result of `parse_known_args`."""
  return parse_known_args(argv)[0]


def parse_known_args(
  argv: list[str] | None = None,
) -> tuple[argparse.Namespace, list[str]]:
  """Parse the command line.

  Args:
    argv: List of arguments; `sys.argv[1:]` by default.

  Returns:
    Namespace for `main`, and the arguments that are ignored, for `tf.app.run`;
    the first of them is the name of the program.

  Raises:
    UsageError: If a flag is unknown or its value is not allowed.
  """
  from planet.scripts import presets

  parser = entry.Parser(
    prog='planet-train',
    description=__doc__,
    epilog=_describe_params,
  )
  add = parser.add_argument
  text = 'experiment folder; runs go to 00001, 00002, ...'
  add('--logdir', type=os.path.expanduser, required=True, help=text)
  text = 'number of runs in the experiment; 0 for unlimited'
  add('--num_runs', type='count', default=1, help=text)
  text = f'preset: {", ".join(presets.PRESETS)}; see below'
  add('--config', default='default', help=text)
  text = "parameters as a YAML mapping; '#' is read as a comma"
  add('--params', default='{}', help=text)
  text = (
    'heartbeat interval in seconds for workers that share runs, the same for '
    'all of them; 0 to disable'
  )
  add('--ping_every', type='count', default=0, help=text)
  text = 'resume existing runs'
  add('--resume_runs', choices=['True', 'False'], default='True', help=text)
  add('--seed', type='seed', default=None, help='seed for all random numbers')
  text = (
    'environment steps to train for, including initial episodes and repeated '
    'actions; replaces max_steps, which counts examples: batch_shape[0] per '
    'update, collect_every per episode'
  )
  add('--total_env_steps', type='count', default=None, help=text)
  add('--wandb', nargs='?', const='', help=flags.WANDB)
  add('--trust', action='append', help=references.HELP)
  text = 'print losses, phases and recorded files, as in log.txt'
  add('--verbose', action='store_true', help=text)
  text = 'ignore unknown flags, such as those of launchers'
  add('--ignore_unknown', action='store_true', help=text)
  args, unknown = parser.parse_known_args(argv)
  if unknown and args.ignore_unknown:
    print(f'Ignoring unknown arguments: {" ".join(unknown)}', file=sys.stderr)
  elif unknown:
    # The original accepts everything, even misspelt flags.
    known = [f'--{name}' for name in vars(args)]
    raise errors.UsageError(
      f'Argument {unknown[0]!r} is unknown. '
      f'{errors.suggest(unknown[0].partition("=")[0], known)} Use '
      '--ignore_unknown to ignore arguments of other programs.'
    )
  wandb_mirror.check(args.wandb)
  args.params = parse_params(args.params)
  if args.total_env_steps is not None:
    args.params['total_env_steps'] = args.total_env_steps
  args.resume_runs = args.resume_runs == 'True'
  return args, [parser.prog, *unknown]


def _describe_params():
  from planet.scripts import parameters, tasks

  settings = tasks.describe_settings()
  return f'{tasks.describe()}\n\n{parameters.describe()}\n{settings}'


def parse_params(text: str) -> dict[str, Any]:
  """Parse the value of `--params`.

  Raises:
    UsageError: If the text is not a YAML mapping.
  """
  example = '{tasks: [cheetah_run], batch_shape: [50, 50]}'
  return schema.parse_mapping(text.replace('#', ','), 'params', example)


def run(argv: list[str] | None = None) -> int:
  """Run the program; return the exit code."""

  def work():
    args, remaining = parse_known_args(argv)
    with stopping.handle_signals():
      tf.app.run(lambda _: main(args), remaining)

  # Makes ranks of Open MPI yield the CPU while they wait.
  os.environ.setdefault('OMPI_MCA_mpi_yield_when_idle', '1')
  return entry.run(work)


if __name__ == '__main__':
  sys.exit(run())
