"""HER as a library: a training to iterate over.

Example:

  import baselines_her

  training = baselines_her.train('FetchReach-v1', 'logs/reach', 5000, seed=0)
  for record in training:
    print(record['environment_steps'], record['success_rate'])
"""

import contextlib
import types
from collections.abc import Iterator, Mapping
from typing import Any

from agents.run.silence import Record, silence
from baselines_her import logger, run, settings
from baselines_her.declarations import Flags


def train(
  env: str,
  logdir: str | None = None,
  num_timesteps: float = 1e6,
  params: Mapping[str, Any] | None = None,
  seed: int | None = None,
  num_env: int = 1,
  verbose: bool = False,
) -> Iterator[Record]:
  """Train, or continue the run in a folder.

  Closing the generator, as leaving the loop does, writes a checkpoint. One
  training at a time: a process has one default graph.

  Args:
    env: Id of a goal environment.
    logdir: Folder of the run, `--log_path` of the program; by default a
      temporary one.
    num_timesteps: Environment steps of this process.
    params: Settings of the command line, such as `n_cycles` and `batch_size`.
    seed: Seed of all random numbers.
    num_env: Number of environments.
    verbose: Whether to print what the program prints.

  Yields:
    Dict of each epoch: `logdir` of the run, and what `her.train_epochs`
    yields.

  Raises:
    UsageError: If the parameters are wrong or do not fit the stored run.
  """
  args = types.SimpleNamespace(**{x: Flags.default(x) for x in Flags.names()})
  args.env, args.log_path, args.num_timesteps = env, logdir, num_timesteps
  args.seed, args.num_env = seed, num_env
  records = _train(args, dict(params or {}))
  yield from records if verbose else silence(records)


def _train(args, params):
  from agents.tools.tf1 import tf
  from baselines_her import her, tf_util

  settings.check_flags(args)
  kwargs = run.prepare(args, params)
  with contextlib.ExitStack() as stack:
    stack.enter_context(run.hold(args.log_path))
    stack.enter_context(logger.scoped_configure(args.log_path))
    stack.enter_context(tf.Graph().as_default())
    stack.enter_context(tf_util.single_threaded_session())
    arguments = stack.enter_context(run.learning(args, kwargs))
    folder = logger.get_dir()
    records = her.learn_epochs(**arguments)
    with contextlib.closing(records):  # type: ignore[type-var]
      for record in records:
        yield {'logdir': folder, **record}
