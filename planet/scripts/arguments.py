"""Arguments of a training, and the new run that they describe."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agents.run import references

if TYPE_CHECKING:
  from planet.envs.constructors import Task
  from planet.scripts.parameters import Parameters


@dataclasses.dataclass(frozen=True)
class Arguments:
  """Arguments of the program, as flags or from Python.

  Attributes:
    logdir: Folder of the experiment or of a run.
    config: Name of the preset or of a function, see
      `planet.scripts.configs.call`.
    params: Given parameters, not yet checked.
    objects: The user's own objects by parameter, see
      `planet.scripts.parameters.name_objects`; as `tasks`, the environment or
      a function that returns it.
    seed: Seed.
    trust: Modules that a stored run may import.
    num_runs: Number of runs, 0 for unlimited.
    ping_every: Seconds between heartbeats, 0 for none.
    resume_runs: Whether to resume existing runs.
    wandb: See `agents.run.flags.WANDB`.
    verbose: Whether to print what the log contains.
  """

  logdir: str = ''
  config: str = 'default'
  params: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  objects: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  seed: int | None = None
  trust: references.Trusted = None
  num_runs: int = 1
  ping_every: int = 0
  resume_runs: bool = True
  wandb: str | None = None
  verbose: bool = False

  @classmethod
  def of(cls, args: Any) -> 'Arguments':
    """Return the arguments in any object, such as the original's namespace."""
    if isinstance(args, cls):
      return args
    names = [x.name for x in dataclasses.fields(cls)]
    return cls(**{x: getattr(args, x) for x in names if hasattr(args, x)})

  @functools.cached_property
  def new(self) -> 'tuple[Parameters, list[Task]]':
    """Parameters and tasks of a new run, however many runs begin.

    Raises:
      UsageError: If they are wrong.
    """
    from planet.scripts import parameters, tasks

    params = parameters.build(self.config, self.params)
    return params, tasks.define_all(params, self.objects.get('tasks'))
