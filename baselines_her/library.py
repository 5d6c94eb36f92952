"""HER as a library: iterate over a training.

Example:

  import baselines_her

  training = baselines_her.train('FetchReach-v4', 'logs/reach', 5000, seed=0)
  for record in training:
    print(record['environment_steps'], record['test_success_rate'])
"""

import os
from collections.abc import Mapping
from typing import Any

from agents.run import files, flags, life, mpi, references, schema
from agents.run.training import Training, check_arguments
from baselines_her import run, settings


def train(
  env: Any = None,
  logdir: str | os.PathLike[str] | None = None,
  total_env_steps: float | None = None,
  params: Mapping[str, Any] | settings.Settings | None = None,
  seed: int | None = None,
  *,
  num_env: int = 1,
  trust: references.Trusted = None,
  verbose: bool = False,
) -> Training:
  """Train, or continue the run in a folder.

  Args:
    env: Goal environment: an id, a function without arguments that returns an
      environment, or one of gymnasium, which is stepped in this process. By
      default that of the run, or FetchReach-v1 for a new run.
    logdir: Folder of the run, `--log_path` of the program; by default a
      temporary one.
    total_env_steps: Environment steps of training, summed over all ranks and
      rounded down to whole epochs; by default a million per rank.
    params: Settings of the command line, such as `n_cycles` and `batch_size`.
      `network` is a class like `actor_critic.ActorCritic`, or its name as
      `module:name`. A continued run keeps all settings that are not given.
    seed: Seed of all random numbers.
    num_env: Number of environments.
    trust: Your modules that the run may import: a name or a list of names.
    verbose: Whether to print what the program prints.

  Returns:
    `agents.run.training.Training`, an iterator over a dict per epoch:
    `logdir` of the run, and the values that `her.train_epochs` yields.

  Raises:
    UsageError: If an argument is not valid or does not fit the stored run.
  """
  check_arguments(params)
  args = flags.read(run.define_flags)
  args.log_path = None if logdir is None else files.expand(logdir)
  for name, value in (
    ('seed', seed),
    ('num_env', num_env),
    ('total_env_steps', total_env_steps),
  ):
    if value is not None:
      kind = run.TYPES[name]
      setattr(args, name, schema.convert(kind, value, f'Flag --{name}'))
  args.env, args.trust = env, trust
  if isinstance(params, settings.Settings):
    names = params.model_fields_set - {'rollout_batch_size'}
    params = {name: getattr(params, name) for name in names}
  plan = run.Plan(args, settings.merge(params or {}))
  comm = mpi.world()
  return Training(lambda: life.start(plan.claim, plan.train, comm), verbose)
