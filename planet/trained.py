"""A trained PlaNet agent, apart from training.

Example:

  import planet

  with planet.load('logs/cartpole/00001') as agent:
    print(planet.evaluate(agent, episodes=3).mean)
"""

from collections.abc import Iterable, Mapping
from typing import Any

from agents.run import errors, references
from planet.scripts.resume import restore as restore
from planet.training import playing


def load(
  logdir: str,
  checkpoint: str | None = None,
  params: Mapping[str, Any] | None = None,
  task: str | None = None,
  seed: int | None = None,
  trust: Iterable[str] | references.Trust = (),
) -> playing.PlaNet:
  """Load the agent of a run of `planet.scripts.train`.

  Args:
    logdir: Folder of the run, or one that has a single run.
    checkpoint: Such as `model.ckpt-1000`, or `best` for the one with the best
      return of a test phase; the newest one by default.
    params: Dict of parameters of the planner that differ from the training.
    task: Name of the task, for runs that have learned several.
    seed: Seed of the planner and of the environments of `make_env`.
    trust: Modules of your own that the run may name.

  Returns:
    `PlaNet`.

  Raises:
    UsageError: If there is no run, no checkpoint or no such task, or a
      parameter does not belong to the planner.
  """
  restored = restore(logdir, checkpoint, params, seed, trust)
  names = {x.task.name: key for key, x in restored[1].test_collects.items()}
  task = task or next(iter(names))
  if task not in names:
    raise errors.UsageError(
      f'The run has not learned the task {task!r}. '
      f'{errors.suggest(task, list(names))}'
    )
  return playing.PlaNet(*restored, names[task])
