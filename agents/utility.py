"""What PPO, HER and PlaNet share: environments, savers, variables, settings.

Functions import TensorFlow only when they need it, after arguments have been
checked.
"""

import logging
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from agents.run import errors, files, folder, references
from agents.run.checkpoint import find_variables
from agents.run.messages import set_up_logging as set_up_logging
from agents.tools import attr_dict

if TYPE_CHECKING:
  from agents.tools import in_graph_batch_env
  from agents.tools.tf1 import tf


def define_simulation_graph(
  batch_env: Any,
  algo_cls: Callable[..., Any] | str,
  config: 'attr_dict.AttrDict',
  comm: Any = None,
) -> 'attr_dict.AttrDict':
  """Build the graph of an algorithm that acts in environments.

  Args:
    batch_env: In-graph batch environment of N environments.
    algo_cls: Constructor of the algorithm, see `agents.ppo.PPOAlgorithm`, or
      its name.
    config: AttrDict, passed on to the algorithm.
    comm: MPI communicator, passed on to it if there are several processes.

  Returns:
    AttrDict of the variable `step`, the bool placeholders `is_training`,
    `should_log`, `do_report` and `force_reset`, the object `algo`, and the
    tensors `done` bool [N], `score` float32 [N] and `summary`.
  """
  from agents import configs
  from agents.tools import simulate
  from agents.tools.tf1 import tf

  step = tf.Variable(0, False, dtype=tf.int64, name='global_step')
  is_training = tf.placeholder(tf.bool, (), 'is_training')
  should_log = tf.placeholder(tf.bool, (), 'should_log')
  do_report = tf.placeholder(tf.bool, (), 'do_report')
  force_reset = tf.placeholder(tf.bool, (), 'force_reset')
  several = comm is not None and comm.Get_size() > 1
  more = {'comm': comm} if several else {}
  make = configs.find(algo_cls)
  algo = make(batch_env, step, is_training, should_log, config, **more)
  done, score, summary = simulate(batch_env, algo, should_log, force_reset)
  if several:
    with tf.control_dependencies([done, score, summary]):
      ended = tf.cond(do_report, algo.end_phase, str)
    summary = tf.summary.merge([summary, ended])
  return attr_dict.AttrDict(
    step=step,
    is_training=is_training,
    should_log=should_log,
    do_report=do_report,
    force_reset=force_reset,
    algo=algo,
    done=done,
    score=score,
    summary=summary,
  )


def define_batch_env(
  constructor: Any,
  num_agents: int,
  env_processes: bool,
  make: Callable[[list, int | None], Any] | None = None,
) -> 'in_graph_batch_env.InGraphBatchEnv':
  """Create environments as part of the graph.

  Args:
    constructor: Function without arguments that returns an environment with
      32 bit observations and rewards, or a list with one per environment.
    num_agents: Number of environments.
    env_processes: Whether to step them in processes, one per core.
    make: Constructor of the batch of environments, from the list of
      constructors and the number of processes, None for one per core; by
      default `agents.envs.batch_env.VectorEnv`.

  Returns:
    `InGraphBatchEnv`.
  """
  from agents.envs import batch_env as batch_env_lib
  from agents.tools import in_graph_batch_env

  make = make or batch_env_lib.VectorEnv
  constructors = constructor
  if callable(constructor):
    constructors = [constructor] * num_agents
  batch_env = make(constructors, None if env_processes else 0)
  try:
    return in_graph_batch_env.InGraphBatchEnv(batch_env)
  except BaseException:
    batch_env.close()
    raise


def save_config(
  config: Any,
  logdir: str | None = None,
  plain: Mapping[str, Any] | None = None,
  filename: str = 'config.yaml',
) -> Any:
  """Store a configuration as plain data in a folder.

  Args:
    config: Configuration; for PPO an AttrDict, see `agents.configs`.
    logdir: Folder to create; `config.logdir` by default. If that is None,
      nothing is stored.
    plain: What to store, if that is not the configuration of PPO.
    filename: Name of the file, which may end in `.json`.

  Returns:
    The configuration; that of PPO with its logdir, locked.
  """
  logger = logging.getLogger(__name__)
  logdir = logdir or config.get('logdir')
  if not logdir:
    logger.info('Write no summaries and checkpoints; there is no logdir.')
    return config
  if plain is None:
    from agents import configs

    logger.info('Write summaries and checkpoints to %s.', logdir)
    with config.unlocked:
      config.logdir = logdir
    plain = configs.to_plain(config)
  plain = references.to_plain(dict(plain))
  files.write_plain(os.path.join(logdir, filename), plain)
  return config


def load_config(
  logdir: str,
  trust: references.Trusted = None,
  parse: Callable[[dict[str, Any]], Any] | None = None,
  filename: str = 'config.yaml',
) -> Any:
  """Read a configuration stored by `save_config`.

  Args:
    logdir: Log directory of the run.
    trust: Modules that the file may name, in addition to those of this project:
      a name or a list of names.
    parse: Function from plain data to the configuration, if that is not one of
      PPO.
    filename: Name of the file.

  Returns:
    For PPO, a locked AttrDict with this folder as `logdir`, and with functions
    and classes in place of their names.

  Raises:
    MissingFile: If there is no file, an `IOError` as in the original.
    UsageError: See `agents.configs.from_plain`; also if the file is damaged.
  """
  if not logdir:
    raise errors.MissingFile('There is no run without a log directory.')
  logdir = files.expand(logdir)
  stored = folder.read_settings(logdir, filename)
  if parse:
    return parse(stored)
  from agents import configs

  config = configs.from_plain(stored, references.parse(trust), logdir)
  return attr_dict.AttrDict(configs.find_all(config), logdir=logdir)


def define_saver(
  exclude: Iterable[str] | None = None, variables: Any = None, **kwargs: Any
) -> Any:
  """Create a saver for variables.

  Args:
    exclude: List of regular expressions of variables to leave out, matched
      from the start of their names.
    variables: Iterable of variables, or dict from their stored names; by
      default all global variables of the default graph.
    **kwargs: Passed on to `tf.train.Saver`.

  Returns:
    `agents.tools.saver.Saver` that keeps five checkpoints, and permanently one
    every five hours; None without variables.
  """
  from agents.tools import saver
  from agents.tools.tf1 import tf

  if variables is None:
    variables = tf.global_variables()
  if not isinstance(variables, dict):
    variables = [
      x
      for x in variables
      if not any(re.match(pattern, x.name) for pattern in exclude or ())
    ]
  kwargs = {
    'keep_checkpoint_every_n_hours': 5,  # of the original
    'save_relative_paths': True,
    **kwargs,
  }
  return saver.Saver(variables, **kwargs) if variables else None


def initialize_variables(
  sess: 'tf.Session',
  saver: Any,
  logdir: str | None,
  checkpoint: str | None = None,
  resume: bool | None = None,
  variables: 'Iterable[tf.Variable] | None' = None,
) -> None:
  """Initialize variables, then restore a checkpoint if there is one.

  Args:
    sess: Session of the graph.
    saver: Saver of the variables to restore.
    logdir: Folder in which to find the newest checkpoint, or None.
    checkpoint: Name of the checkpoint to restore, relative to the logdir.
    resume: True if a checkpoint must exist, False if none may exist.
    variables: Variables to initialize; by default all of the graph. Then it is
      the default graph.

  Raises:
    ValueError: If `resume` is True without a checkpoint to resume.
    RuntimeError: If `resume` is False, but a checkpoint exists.
    UsageError: If the checkpoint is damaged or does not have these variables.
  """
  from agents.tools.tf1 import tf

  if variables is None:
    sess.run(
      [tf.global_variables_initializer(), tf.local_variables_initializer()]
    )
  else:
    sess.run([x.initializer for x in variables])
  path = find_variables(logdir, checkpoint) if logdir else None
  if resume is False and path:
    raise RuntimeError(f'Found unexpected checkpoint {path}.')
  if resume and not path:
    raise ValueError(f'There is no checkpoint to resume in {logdir}.')
  if path:
    saver.restore(sess, path)
