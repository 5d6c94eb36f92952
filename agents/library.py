"""PPO as a library: a training to iterate over.

Example:

  import agents

  params = {'env': 'Pendulum-v1', 'steps': 600000}
  for record in agents.train('logs/pendulum', params=params, seed=0):
    print(record['environment_steps'], record['test_return'])
"""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from agents import runs, train_ppo
from agents.run import references
from agents.run.silence import Record, silence


def train(
  logdir: str | None = None,
  config: str = 'default',
  params: Mapping[str, Any] | None = None,
  seed: int | None = None,
  env_processes: bool = True,
  trust: references.Trust = references.NOTHING,
  verbose: bool = False,
) -> Iterator[Record]:
  """Train, or continue a run with the same settings.

  Closing the generator, as leaving the loop does, writes a checkpoint. One
  training at a time: a process has one default graph.

  Args:
    logdir: Folder of runs; None to keep nothing.
    config: Name of a function of `agents.configs`.
    params: Other values of the configuration, such as `env` and `steps`.
    seed: Seed of all random numbers.
    env_processes: Whether to step environments in processes of their own.
    trust: `agents.run.references.Trust` in what a stored run may name.
    verbose: Whether to print what the program prints.

  Yields:
    Dict of each epoch, which is a training phase and an evaluation: `logdir`
    of the run, `epoch` from 1, `global_step`, `environment_steps`, which are
    the same and count those of evaluation, and `train_return` and
    `test_return`.

  Raises:
    UsageError: If the parameters are wrong or do not fit the stored run.
  """
  overrides = {**(params or {}), **({} if seed is None else {'seed': seed})}
  records = _train(
    runs.claim(config, logdir, None, overrides, trust), env_processes
  )
  yield from records if verbose else silence(records)


def _train(claimed, env_processes):
  from agents import display

  with claimed as run:
    config = run.config
    shown = []

    def observers():
      last_step = runs.total_steps(config)
      shown.append(display.Display(config, run.step, last_step))
      return shown

    scores = train_ppo.train(
      config, env_processes, observers=observers, run=run
    )
    last = 'eval' if config.eval_episodes else 'train'
    with contextlib.closing(scores):  # type: ignore[type-var]
      for _ in scores:
        if shown[0].phase == last:
          yield {'logdir': config.logdir, **shown[0].values}
