r"""Train an agent with batch PPO.

Example:

  ppo-train --config=cartpole --logdir=~/logdir

To continue a run that was stopped or killed, repeat the command. A different
--seed starts a new run, and so do most parameters; learning rate, discounts, KL
target and cutoff may change. To train with several processes, use mpirun -n N
ppo-train ...
"""

import contextlib
import functools
import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from agents import configs, display, runs, tools, utility
from agents.envs import adapters
from agents.run import (
  entry,
  flags,
  folder,
  life,
  mpi,
  random_state,
  references,
  schema,
  stopping,
  wandb_mirror,
)
from agents.tools import continuous, graph_errors, wrappers
from agents.tools.lazy_tf import tf

# `python -m` gives this module another name.
_logger = logging.getLogger('agents.train_ppo')


FLAGS = tf.app.flags.FLAGS


def define_flags(flag_values: Any = FLAGS) -> None:
  """Define the flags of `ppo-train`."""
  into = {'flag_values': flag_values}
  tf.app.flags.DEFINE_string(
    'logdir', None, 'Folder for the runs. If omitted, nothing is saved.', **into
  )
  tf.app.flags.DEFINE_string(
    'timestamp',
    None,
    'Timestamp of the run to start or continue. By default, continue the '
    'newest unfinished run with the same settings that no other process is '
    'using; if all are finished, there is nothing to do; start a new run if '
    'there is none.',
    **into,
  )
  tf.app.flags.DEFINE_string(
    'config',
    None,
    'Configuration, see below; or module:function of yours, see docs/ppo.md.',
    **into,
  )
  tf.app.flags.DEFINE_boolean(
    'env_processes',
    True,
    'Step the environments in separate processes.',
    **into,
  )
  tf.app.flags.DEFINE_string(
    'env',
    None,
    'Id, or module:function. Overrides the environment of the configuration.',
    **into,
  )
  tf.app.flags.DEFINE_integer('seed', None, 'Random seed.', **into)
  tf.app.flags.DEFINE_float(
    'total_env_steps',
    None,
    'Number of environment steps to train, summed over all environments and '
    'processes, without evaluation. Overrides the configuration.',
    **into,
  )
  tf.app.flags.DEFINE_float(
    'steps',
    None,
    'Same as --total_env_steps, under its original name.',
    **into,
  )
  tf.app.flags.DEFINE_integer(
    'threads',
    None,
    'Number of threads for updates. By default, one per core.',
    **into,
  )
  tf.app.flags.DEFINE_string(
    'params',
    '{}',
    'YAML mapping of parameters that override the configuration, such as '
    "'{num_agents: 10, network: recurrent_gaussian}'.",
    **into,
  )
  tf.app.flags.DEFINE_string('wandb', None, flags.WANDB, **into)
  tf.app.flags.DEFINE_multi_string('trust', None, references.HELP, **into)
  flags.limit('timestamp', schema.FileName, **into)
  flags.limit('seed', schema.Seed, **into)
  flags.limit('threads', schema.Threads, **into)


def train(
  config: Any,
  env_processes: bool,
  comm: Any = None,
  observers: Callable[[], list] = list,
  threads: int | None = None,
  run: folder.Run | None = None,
) -> Iterator[float]:
  """Train, and evaluate after each update.

  Args:
    config: Configuration, see `agents.configs`; with the log directory as
      `logdir`, None to write nothing.
    env_processes: Whether to step environments in separate processes.
    comm: MPI communicator; several processes then train together.
    observers: Function that returns a list of `agents.tools.phases.Observer`,
      called once the graph is built.
    threads: Number of threads for large operations; by default one per core,
      shared by the processes of MPI.
    run: Value yielded by `runs.claim`; the first process stores its
      configuration once the checkpoint is restored.

  Yields:
    Mean scores of training and evaluation in turn.

  Raises:
    UsageError: If the environment cannot be used, or the configuration lacks
      names or has unknown ones, such as those of other versions.
    NotFinite: If weights or scores are infinite or NaN.
  """
  configs.check(config)
  comm = comm or mpi.SingleComm()
  rank, size = comm.Get_rank(), comm.Get_size()
  for name in ('num_agents', 'update_every'):
    mpi.check_even(size, name, config[name])
  stored = run or folder.Run(config.logdir if rank == 0 else None)
  first_step = comm.bcast(stored.step)
  own = config.num_agents // size
  tf.reset_default_graph()
  env_seed = None
  if config.seed is not None:
    tf.set_random_seed(random_state.seed_of_rank(config.seed, first_step, rank))
    env_seed = 1000 * config.seed + first_step + own * rank
  # MPI ranks and environment objects step in this process.
  here = size > 1 or adapters.is_environment(config.env)
  images = configs.sees_images(config)
  constructors = continuous.constructors(config, own, env_seed, images)
  make = lambda made, workers: continuous.ScaledVectorEnv(
    made, config.max_length, workers, images
  )
  with (
    contextlib.ExitStack() as stack,
    tf.device('/cpu:0'),
    graph_errors.unwrapped(),
  ):

    def create_env():
      env = utility.define_batch_env(
        constructors, own, env_processes and not here, make
      )
      stack.callback(env.close)
      return env

    env = mpi.on_all_ranks(comm, create_env)
    graph = utility.define_simulation_graph(env, config.algorithm, config, comm)
    made = observers()
    for observer in made:
      stack.callback(observer.close)
    loop = _define_loop(
      graph, stored.folder, *runs.epoch_steps(config), made, comm
    )
    yield from _run(loop, graph, config, comm, threads, stored)


def main(_: Any) -> None:
  """Train according to `tf.app.flags.FLAGS`; called by `tf.app.run`.

  Raises:
    UsageError: If a flag is not valid; nothing on disk has changed in this
      case.
    StopRequested: If the user asks to stop.
  """
  given = flags.read(define_flags, FLAGS)
  comm = mpi.world()
  utility.set_up_logging()
  with stopping.handle_signals():
    claim = functools.partial(_claim, given)
    work = functools.partial(_train, given, comm)
    try:
      for told in life.start(claim, work, comm):
        if isinstance(told, str):
          _logger.info('%s', told)
      stopping.check()
    except stopping.StopRequested as stop:
      if not given.logdir:
        stop.advice = 'Nothing was saved, as there is no --logdir.'
      raise


@contextlib.contextmanager
def _claim(given):
  """Return the context of the run that the flags select."""
  wandb_mirror.check(given.wandb, given.logdir)
  example = '{num_agents: 10, learning_rate: 3e-4}'
  overrides = schema.parse_mapping(given.params, 'params', example)
  for name in ('env', 'seed', 'steps'):
    if getattr(given, name) is not None:
      overrides[name] = getattr(given, name)
  overrides = runs.add_budget(overrides, given.total_env_steps)
  trust = references.parse(given.trust)
  with runs.claim(
    given.config,
    given.logdir,
    given.timestamp,
    overrides,
    trust,
    given.env_processes,
  ) as run:
    _logger.info('%s', run.reason)
    yield run


def _train(given, comm, run):
  """Train; the first rank prints the progress."""
  from agents.tools import devices

  config = run.config
  _logger.info('%s', devices.describe(config.use_gpu))
  if comm.Get_size() > 1:
    _logger.info('%d processes train together.', comm.Get_size())

  def observers():
    if comm.Get_rank():
      return []
    shown = configs.to_plain(config)
    mirrors = wandb_mirror.make_mirrors(given.wandb, run.folder, shown)
    return [display.Display(config, run.step, mirrors=mirrors)]

  return train(
    config,
    given.env_processes,
    comm,
    observers=observers,
    threads=given.threads,
    run=run,
  )


def _create_environment(config):
  """Environment of a configuration with the wrappers of the original.

  For programs of users; trainings do the same for all environments at once.
  """
  env = continuous.make(config.env, settings=config.env_settings)
  if config.max_length:
    env = wrappers.LimitDuration(env, config.max_length)
  env = wrappers.ClipAction(wrappers.RangeNormalize(env))
  return wrappers.CacheSpaces(wrappers.ConvertTo32Bit(env))


def _define_loop(
  graph, logdir, train_steps, eval_steps, observers=(), comm=None
):
  """Loop that alternates training and evaluation."""
  loop = tools.Loop(
    logdir,
    graph.step,
    graph.should_log,
    graph.do_report,
    graph.force_reset,
    comm=comm,
    best_phase='eval',
    # Little is lost when a process is killed.
    checkpoint_secs=60,
    saves_at_end=True,
    observers=observers,
    should_stop=getattr(graph.algo, 'should_stop', stopping.requested),
  )
  for name, steps, checkpoint_every in (
    ('train', train_steps, None),
    ('eval', eval_steps, 10),
  ):
    loop.add_phase(
      name,
      graph.done,
      graph.score,
      graph.summary,
      steps,
      report_every=steps,
      log_every=steps // 2,
      checkpoint_every=checkpoint_every and checkpoint_every * steps,
      feed={graph.is_training: name == 'train'},
      repeat=name == 'eval',
    )
  return loop


def _run(loop, graph, config, comm, threads, stored):
  """Run the loop in a session."""
  from agents.tools import mpi_ops

  if config.update_every % config.num_agents:
    _logger.warning('Number of agents should divide episodes per update.')
  if 0 < config.eval_episodes < config.num_agents:
    _logger.warning('Fewer evaluation episodes than agents: few or none end.')
  weights = tools.count_weights()
  _logger.info('Graph contains %s trainable weights.', f'{weights:,}')
  saver = utility.define_saver(exclude=(r'.*_temporary.*',))
  # Episodes that count in the next score belong to one process.
  shared = [x for x in tf.global_variables() if 'streaming_mean' not in x.name]
  broadcast = mpi_ops.define_broadcast(shared, comm)
  begin = graph.algo.begin_together() if comm.Get_size() > 1 else ()
  options = _session_options(mpi.find_share(comm).threads, threads)
  # Leaving a session would start a thread, which fails at the very end.
  with (
    contextlib.closing(tf.Session(config=options)) as sess,
    sess.as_default(),
  ):
    utility.initialize_variables(sess, None, None)
    if stored.checkpoint:
      saver.restore(sess, stored.checkpoint)
      saver.continue_in(stored.folder)
    if stored.config and comm.Get_rank() == 0:
      # The run was claimed, and its checkpoint, if any, fits.
      runs.store(stored)
    broadcast(sess)
    sess.run(begin)
    yield from loop.run(sess, saver, runs.total_steps(config))


def _session_options(usual, threads=None):
  """Return session options: one operation at a time, large ones on all cores.

  Only operations of an update are large enough to split; acting stays in one
  thread. Measured in results/ppo/speed.md. The environment variables of
  TensorFlow set other numbers of threads.

  Args:
    usual: Number of threads for an operation, see `mpi.HostShare`.
    threads: The number that the user wants instead, None for none.
  """
  from agents.tools import devices

  options = devices.session_options()
  if threads or 'TF_NUM_INTRAOP_THREADS' not in os.environ:
    options.intra_op_parallelism_threads = threads or usual
  if 'TF_NUM_INTEROP_THREADS' not in os.environ:
    options.inter_op_parallelism_threads = 1
    # Later sessions of the process, of PlaNet for example, have their own.
    options.use_per_session_threads = True
  # Threads that wait for work would take the cores of the environments.
  options.experimental.disable_thread_spinning = True
  return options


def run(argv: Sequence[str] | None = None) -> int:
  """Run the program; return the exit code.

  Args:
    argv: List of arguments; those of the process by default.
  """

  def start():
    more = configs.describe
    with flags.parsed('ppo-train', __doc__, define_flags, argv, more) as words:
      tf.app.run(main, words)

  return entry.run(start)


if __name__ == '__main__':
  sys.exit(run())
