"""Train a PlaNet agent: collect episodes, learn a model, plan with it.

Example:

  planet-train --logdir ~/logdir --config default \\
      --params '{tasks: [cheetah_run]}'

Repeat the command to resume a run that stopped or failed. Raise max_steps to
extend a finished run. Prefix the command with mpirun -n N to train in N
processes, see docs/clusters.md.
"""

import contextlib
import dataclasses
import datetime
import functools
import logging
import os
import sys
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from agents.run import (
  entry,
  errors,
  files,
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
from planet.scripts import presets
from planet.scripts.arguments import Arguments as Arguments

if TYPE_CHECKING:
  from planet.training.ranks import Ranks

_logger = logging.getLogger('planet.scripts.train')


def process(
  logdir: str, args: Arguments, ranks: 'Ranks | None' = None
) -> Generator[dict[str, Any] | str, None, None]:
  """Train one run, which this worker has to own.

  Args:
    logdir: Folder of the run.
    args: Arguments of the program, or an object with some of their attributes.
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
  if not isinstance(args, Arguments):
    # Any object, as programs of users pass it.
    given = dataclasses.replace(Arguments.of(args), logdir=logdir)
    args = check(given, ranks.size)
  config = resume.define_config(logdir, args)
  config = resume.check(config, logdir, ranks.size)
  yield from config.report

  def begin():
    utility.save_config(config, logdir)
    for marker in ('FAIL', 'DONE'):
      folder.unmark(logdir, marker)

  resumes = bool(config.checkpoint_to_load)
  if not resumes:
    begin()
  _logger.info('Train in %s.', logdir)
  ranks.comm.bcast((logdir, config))
  mpi.check_shared(ranks.comm, logdir)
  mirrors = wandb_mirror.make_mirrors(
    args.wandb, logdir, {'config': args.config, **args.params}
  )
  with contextlib.ExitStack() as stack:
    for mirror in mirrors:
      stack.callback(mirror.close)
    path = os.path.join(logdir, 'log.txt')
    stack.enter_context(messages.write_messages(path))
    # A checkpoint that cannot be restored leaves the run as it was.
    on_start = begin if resumes else None
    yield from _train_graph(config, logdir, ranks, mirrors, on_start)
  if ranks.should_stop() and resume.is_unfinished(logdir, config):
    raise stopping.StopRequested('The user asked to stop.')


def _train_graph(config, logdir, ranks, mirrors=(), on_start=None):
  """Collect the initial episodes, then train; yield after each epoch."""
  from agents.tools import devices
  from planet import training
  from planet.tools import numpy_episodes
  from planet.training import episode_folder, running, utility
  from planet.training import ranks as ranks_lib
  from planet.training.display import Display

  utility.collect_initial_episodes(config, ranks)
  statistics = None
  # A checkpoint contains statistics; the first rank sends its own to others.
  needed = ranks.is_first and not config.checkpoint_to_load
  if needed and config.observation != 'image':
    keys = [x for x in config.observation_keys if x != 'image']
    statistics = episode_folder.read_statistics(config.train_dir, keys)
  config = config.replace(
    began=ranks.comm.bcast(datetime.datetime.now()),
    vector_statistics=statistics,
  )
  tf.reset_default_graph()
  seed = random_state.seed_of_rank(config.seed, config.first_step, ranks.rank)
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
    shuffle_buffer=config.shuffle_buffer,
    preprocess_fn=None if config.xla else config.preprocess_fn,
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
    training.define_model, dataset, logdir, config, displays, ranks, on_start
  )
  with contextlib.ExitStack() as stack:
    for display in displays:
      stack.callback(display.close)
    stack.enter_context(contextlib.closing(scores))
    for _ in scores:
      try:
        yield displays[0].record.take() if displays else {}
      except (GeneratorExit, running.WorkerConflict, locks.Lost) as error:
        # If the first rank ends here, all others stop, too.
        with contextlib.suppress(stopping.StopRequested):
          ranks.sync(True)
        scores.throw(error)
      ranks.sync()


def main(args: Arguments) -> None:
  """Train the runs of an experiment.

  Args:
    args: Arguments of the program.

  Raises:
    UsageError: If the arguments are wrong or do not fit an existing run, which
      is left unchanged.
    StopRequested: If the user asks to stop.
  """
  comm = mpi.world()
  args = check(Arguments.of(args), comm.Get_size())
  from planet.training import utility
  from planet.training.ranks import Ranks

  utility.set_up_logging(args.verbose)
  ranks = Ranks(comm)
  if not ranks.is_first:
    _serve_rank(ranks)
    return
  trained = False
  for event in train_experiment(args, ranks):
    if isinstance(event, str):
      print(event, flush=True)
    else:
      trained = True
  if trained and args.config == 'debug':
    print(
      'It works: the configuration debug has run to its end and saved. To '
      'learn something, use --config cpu, or default on a GPU.'
    )


def check(args: Arguments, size: int = 1) -> Arguments:
  """Check the parameters of a new run before TensorFlow is imported.

  Parameters for a stored run are checked together with what it stored, once
  this worker owns it.

  Args:
    args: Arguments of the program.
    size: Number of processes that train together.

  Returns:
    Arguments with the preset and the parameters that a user's function chooses.

  Raises:
    UsageError: If a parameter is wrong.
  """
  from planet.scripts import added, parameters

  if args.config not in presets.PRESETS:
    place = 'planet.scripts.configs'
    if ':' not in args.config and not added.may_have(place, args.config):
      presets.find(args.config)
    from planet.scripts import configs

    own = {x: y for x, y in args.objects.items() if x in parameters.OWN}
    given = {**args.params, **own}
    preset, chosen = configs.call(args.config, given, _find_first(args.logdir))
    params, objects = parameters.name_objects(chosen)
    args = dataclasses.replace(
      args, config=preset, params=params, objects={**args.objects, **objects}
    )
  if not folder.is_run(_find_first(args.logdir)):
    new, _ = args.new
    mpi.check_even(size, 'batch_shape[0]', new.batch_shape[0])
  return args


def train_experiment(
  args: Arguments, ranks: 'Ranks | None' = None
) -> Generator[dict[str, Any] | str, None, None]:
  """Train the runs of an experiment one after the other.

  Args:
    args: Arguments of the program.
    ranks: See `process`.

  Yields:
    See `process`.
  """
  from planet.scripts import resume
  from planet.training import running
  from planet.training.ranks import Ranks

  ranks, worked = ranks or Ranks(), False
  experiment = running.Experiment(
    args.logdir,
    process_fn=functools.partial(process, args=args, ranks=ranks),
    num_runs=args.num_runs,
    ping_every=args.ping_every,
    resume_runs=args.resume_runs,
    may_reopen=lambda logdir: (
      folder.has(logdir, 'FAIL') or resume.is_unfinished(logdir, args.params)
    ),
  )
  for run in experiment:
    worked = True
    # The log has reported that another worker owns the run now.
    with (
      contextlib.suppress(running.WorkerConflict),
      contextlib.closing(iter(run)) as events,
    ):
      yield from events
    if ranks.should_stop():
      return
  ranks.comm.bcast(None)
  stopping.check()
  if not worked:
    yield _explain_idle(args)


def _explain_idle(args):
  """Check the parameters against the first run; return why nothing was done."""
  from planet.scripts import resume

  logdir = _find_first(args.logdir)
  if folder.is_run(logdir):
    resume.define_config(logdir, args)
  if not args.resume_runs:
    return (
      f'Nothing to do: all runs in {args.logdir} have begun; omit '
      '--resume_runs False to continue them, or raise --num_runs.'
    )
  return (
    f'Nothing to do: all runs in {args.logdir} are finished or belong to other '
    'workers; raise total_env_steps or max_steps to continue training.'
  )


def _find_first(logdir):
  """Return the folder of the first run, which may not exist yet."""
  logdir = files.expand(logdir)
  is_run = folder.is_run(logdir)
  return logdir if is_run else os.path.join(logdir, '00001')


def _serve_rank(ranks):
  """Train the runs that the first rank chooses."""
  while run := ranks.comm.bcast(None):
    logdir, config = run
    mpi.check_shared(ranks.comm, logdir)
    with contextlib.suppress(stopping.StopRequested):
      for _ in _train_graph(config, logdir, ranks):
        pass
    if ranks.should_stop():
      return


def parse_args(argv: list[str] | None = None) -> Arguments:
  """Return the first result of `parse_known_args`."""
  return parse_known_args(argv)[0]


def parse_known_args(
  argv: list[str] | None = None,
) -> tuple[Arguments, list[str]]:
  """Parse the command line.

  Args:
    argv: List of arguments; `sys.argv[1:]` by default.

  Returns:
    Arguments, and those that are ignored, for `tf.app.run`; the first of these
    is the name of the program.

  Raises:
    UsageError: If a flag is unknown or its value is not allowed.
  """
  parser = entry.Parser(
    prog='planet-train',
    description=__doc__,
    epilog=_describe_params,
  )
  add = parser.add_argument
  text = 'experiment folder; runs go to 00001, 00002, ...'
  add('--logdir', type='path', required=True, help=text)
  text = 'number of runs in the experiment; 0 for unlimited'
  add('--num_runs', type='count', default=1, help=text)
  text = (
    f'preset: {", ".join(presets.PRESETS)}, see below; or module:function of '
    'yours, see docs/parts.md'
  )
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
  given = vars(args)
  params = parse_params(given.pop('params'))
  if (total := given.pop('total_env_steps')) is not None:
    params['total_env_steps'] = total
  resume_runs = given.pop('resume_runs') == 'True'
  del given['ignore_unknown']
  parsed = Arguments(**given, params=params, resume_runs=resume_runs)
  return parsed, [parser.prog, *unknown]


def _describe_params():
  from planet.scripts import parameters, table

  settings = table.describe_settings()
  return f'{table.describe()}\n\n{parameters.describe()}\n{settings}'


def parse_params(text: str) -> dict[str, Any]:
  """Parse the value of `--params`.

  Raises:
    UsageError: If the text is not a YAML mapping.
  """
  example = '{tasks: [cheetah_run], batch_shape: [50, 50]}'
  return schema.parse_mapping(text.replace('#', ','), 'params', example)


def run(argv: list[str] | None = None) -> int:
  """Run the program; return the exit code."""

  def train():
    args, remaining = parse_known_args(argv)
    with stopping.handle_signals():
      tf.app.run(lambda _: main(args), remaining)

  return entry.run(train)


if __name__ == '__main__':
  sys.exit(run())
