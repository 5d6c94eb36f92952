"""Load trained PlaNet agents.

Example:

  import planet

  with planet.load('logs/cartpole/00001') as agent:
    print(planet.evaluate(agent, episodes=3).mean)
"""

from collections.abc import Mapping
from typing import Any

from agents.run import errors, references
from planet.scripts.resume import Restored as Restored
from planet.scripts.resume import restore as restore
from planet.training import playing


def load(
  logdir: str,
  checkpoint: str | None = None,
  params: Mapping[str, Any] | None = None,
  task: str | None = None,
  seed: int | None = None,
  trust: references.Trusted = None,
) -> playing.PlaNet:
  """Load the agent of a training run.

  Args:
    logdir: Folder of the run, or folder that contains a single run.
    checkpoint: Name such as `model.ckpt-1000`, or `best` for the checkpoint
      with the best test return; the newest by default.
    params: Dict of parameters of the planner and the environment that replace
      those of the run.
    task: Name of the task, for runs with several tasks.
    seed: Seed of the planner and of the environments of `make_env`.
    trust: Your modules that the run may import: a name or a list of names.

  Returns:
    `PlaNet`.

  Raises:
    UsageError: If there is no run, no checkpoint or no such task, or a
      parameter is not one of those that playing may change.
  """
  restored = restore(logdir, checkpoint, params, seed, trust)
  config = restored.config
  names = {x.task.name: key for key, x in config.test_collects.items()}
  task = task or next(iter(names))
  name = errors.find('Task of the run', task, names)
  return playing.PlaNet(restored.path, config, restored.shapes, name)
