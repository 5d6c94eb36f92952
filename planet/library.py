"""PlaNet as a library: a training to iterate over.

Example:

  import planet

  params = {'tasks': ['cartpole_balance']}
  for record in planet.train('logs/cartpole', 'cpu', params, seed=0):
    print(record['environment_steps'], record.get('test_return'))
"""

import contextlib
import types
from collections.abc import Iterator, Mapping
from typing import Any

from agents.run import references
from agents.run.silence import Record, silence
from planet.scripts import train as program


def train(
  logdir: str,
  config: str = 'default',
  params: Mapping[str, Any] | None = None,
  seed: int | None = None,
  trust: references.Trust = references.NOTHING,
  verbose: bool = False,
) -> Iterator[Record]:
  """Train, or continue the run in a folder.

  Closing the generator, as leaving the loop does, writes a checkpoint.

  Args:
    logdir: Folder of the experiment, whose only run is in `00001`.
    config: `default`, `debug` or `cpu`.
    params: Parameters, such as `tasks` and `max_steps`.
    seed: Seed of all random numbers.
    trust: `agents.run.references.Trust` in what a stored run may name.
    verbose: Whether to print what the program prints.

  Yields:
    Dict of each epoch: `logdir` of the run, `epoch` from 1, `global_step`,
    `episodes` and `environment_steps` recorded for training, and, if episodes
    have ended, `train_return` and `test_return`.

  Raises:
    UsageError: If the parameters are wrong or do not fit the stored run.
  """
  args = types.SimpleNamespace(
    logdir=logdir,
    num_runs=1,
    config=config,
    params=dict(params or {}),
    ping_every=0,
    resume_runs=True,
    seed=seed,
    trust=trust,
  )
  records = _train(args)
  yield from records if verbose else silence(records)


def _train(args):
  for run in program.make_experiment(args):
    with contextlib.closing(iter(run)) as epochs:
      for values in epochs:
        yield {'logdir': run.logdir, **values}
