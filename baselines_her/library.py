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

from agents.run import flags
from agents.run.silence import Record, silence
from baselines_her import run, settings


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
  args = types.SimpleNamespace(**settings.Flags.defaults())
  args.env, args.log_path, args.num_timesteps = env, logdir, num_timesteps
  args.seed, args.num_env = seed, num_env
  flags.check(settings.Flags, args)
  values = settings.Settings.make(env, settings.merge(params or {}))
  records = _train(args, values)
  yield from records if verbose else silence(records)


def _train(args, values):
  from baselines_her import her

  training = run.Training(args, values)
  with training.start() as arguments:
    records = her.train_epochs(**arguments)
    with contextlib.closing(records):  # type: ignore[type-var]
      for record in records:
        yield {'logdir': training.folder, **record}
