"""PPO as a library: iterate over a training.

Example:

  import agents

  training = agents.train('Pendulum-v1', 'logs/pendulum', 600000, seed=0)
  for record in training:
    print(record['environment_steps'], record['test_return'])
"""

import contextlib
import functools
import os
from collections.abc import Mapping
from typing import Any

from agents import configs, display, runs, train_ppo
from agents.run import life, mpi, references
from agents.run.training import Training, check_arguments


def train(
  env: Any = None,
  logdir: str | os.PathLike[str] | None = None,
  total_env_steps: float | None = None,
  config: str = 'default',
  params: Mapping[str, Any] | configs.Config | None = None,
  seed: int | None = None,
  *,
  env_processes: bool = True,
  trust: references.Trusted = None,
  verbose: bool = False,
) -> Training:
  """Train, or continue a run with the same settings.

  Args:
    env: Id of an environment, function without arguments that creates one, or
      an environment, which is only stepped in this process; by default, that
      of the configuration.
    logdir: Folder of runs, or of a run to continue; None to write nothing.
    total_env_steps: Environment steps of training, not counting evaluation; by
      default, those of the configuration.
    config: Name of a function in `agents.configs`, or `module:function`.
    params: Values that override the configuration. `network` may be a function.
    seed: Seed of all random numbers.
    env_processes: Whether to step environments in separate processes.
    trust: Your modules that a stored run may import: a name or a list of names.
    verbose: Whether to print what the program prints.

  Returns:
    `Training`, an iterator of dicts, one per epoch of a training phase and an
    evaluation: `logdir` of the run; `epoch` from 1; total training
    `environment_steps`, `episodes` and `updates` (optimizer steps) so far; mean
    returns of the episodes of this epoch, `return` in training and
    `test_return` in evaluation, NaN if none has ended or the last steps are
    not followed by one; `loss/value` and `loss/policy` of the last update in
    this epoch, NaN without one; and `seconds` of this epoch.

  Raises:
    UsageError: If an argument is not valid; raised by the first iteration if an
      argument does not fit the stored run.
    EnvError: If the environment breaks its interface or raises an error.
  """
  check_arguments(params, config or '')
  if isinstance(params, configs.Config):
    params = {x: getattr(params, x) for x in params.model_fields_set}
  given = {'env': env, 'seed': seed}
  overrides = {**(params or {})}
  overrides.update((k, x) for k, x in given.items() if x is not None)
  overrides = runs.add_budget(overrides, total_env_steps)
  trusted = references.parse(trust)
  claimed = runs.claim(config, logdir, None, overrides, trusted, env_processes)
  train = functools.partial(_train, env_processes)
  comm = mpi.SingleComm()
  return Training(lambda: life.start(lambda: claimed, train, comm), verbose)


def _train(env_processes, run):
  shown = []

  def observers():
    shown.append(display.Display(run.config, run.step))
    return shown

  scores = train_ppo.train(
    run.config, env_processes, observers=observers, run=run
  )
  with contextlib.closing(scores):  # type: ignore[type-var]
    for _ in scores:
      if record := shown[0].record.take():
        yield record
